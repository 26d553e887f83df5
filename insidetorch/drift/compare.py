"""One release against another: what became of each anchor, ranked by how it may mislead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff

from insidetorch.drift.anchors import Anchor, base
from insidetorch.drift.definitions import Found, definitions
from insidetorch.drift.deprecations import deprecation
from insidetorch.drift.names import found_at, resolve
from insidetorch.drift.signatures import breakages
from insidetorch.drift.trees import UNSHIPPED, Tree
from insidetorch.drift.where import Whereabouts, find_again
from insidetorch.locate.paths import absence

GREEN, LOOK, BROKEN = 0, 1, 2
_OF_THE_PLATFORM = re.compile(
    r"torch/version\.py|torch/include/ATen/(?:Config|RegistrationDeclarations)\.h"
    r"|torch/include/caffe2/core/macros\.h|torch/include/ATen/ops/\w+_(?:native|dispatch)\.h"
)
_MOST_LINES = 300


@dataclass(frozen=True)
class Finding:
    """What became of one anchor in the other release.

    :param verdict: ``unchanged``, ``moved``, ``changed``, ``signature``, ``gone``, or ``unseen``
        (the other release, or its form at hand, does not carry such files).
    :param rank: how much a reader may be misled, 0 the most; see `RANKS`.
    :param file: where it is in the other release; "" if it is gone.
    :param lines: first and last line there.
    :param breakages: what callers notice, one line each.
    :param diff: the unified difference of the two definitions.
    :param near: where it may be now, if it is gone.
    :param deprecated: how the other release says that it is deprecated, if this one does not.
    """

    anchor: Anchor
    verdict: str
    rank: int
    file: str = ""
    lines: tuple[int, int] = (0, 0)
    breakages: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    deprecated: str = ""

    @property
    def moved_file(self) -> bool:
        """Whether it is in another file than before."""
        return bool(self.file) and self.file != self.anchor.file


RANKS = (
    "gone",
    "signature changed",
    "signature of a member changed",
    "deprecated there",
    "changed where it is shown",
    "changed beside what is shown",
    "changed behind its name",
    "moved to another file",
    "not carried",
    "moved within its file",
    "unchanged",
)


def compare(anchors: Sequence[Anchor], old: Tree, new: Tree) -> list[Finding]:
    """Return what became of each anchor, the most misleading of each chapter first.

    :param old: the release that the anchors were locked with.
    :param new: the other release.
    """
    order: dict[str, int] = {}
    for anchor in anchors:
        order.setdefault(anchor.chapter, len(order))
    # By file, so that what was read of one is still at hand for the next anchor.
    by_file = sorted(anchors, key=lambda anchor: (anchor.file, anchor.id))
    findings = [_finding(anchor, old, new) for anchor in by_file]
    return sorted(findings, key=lambda f: (order[f.anchor.chapter], f.rank, f.anchor.id))


def stale(anchors: Iterable[Anchor], tree: Tree) -> list[Anchor]:
    """Return the anchors that are not what `tree` has, the release they should be locked with."""
    return [anchor for anchor in anchors if base(anchor, tree) is None]


def severity(rank: int) -> int:
    """Return what a finding of this rank asks for: nothing (0), a look (1), mending (2)."""
    if rank <= RANKS.index("signature changed"):
        return BROKEN
    return LOOK if rank <= RANKS.index("moved to another file") else GREEN


def counterpart(
    anchor: Anchor, was: Found, old: Tree, new: Tree
) -> tuple[Found | None, tuple[str, ...]]:
    """Return the definition that an anchor stands for in another release, or where it may be.

    An API is followed by its public name, an excerpt by its file and its full name.
    """
    if anchor.kind == "api":
        place = resolve(new, anchor.target)
        if place is None:
            again = Whereabouts(None)
            if anchor.sha256:
                again = find_again(new, was, old, anchor.symbol)
            return None, (_place(again.found),) if again.found else again.near
        if not anchor.sha256:
            return replace(was, definition=replace(was.definition, file=place.file)), ()
        before = resolve(old, anchor.target)
        if before is not None and (before.file, before.symbol) == (anchor.file, anchor.symbol):
            found = was if place == before and _same_file(was, old, new) else found_at(new, place)
            if found is not None:
                return found, ()
    elif _same_file(was, old, new):
        return was, ()
    elif not anchor.symbol:
        whole = definitions(new, anchor.file, "")
        return (whole[0], ()) if whole else (None, ())
    again = find_again(new, was, old, anchor.symbol)
    return again.found, again.near


def difference(was: Found, now: Found, old: str, new: str) -> tuple[str, ...]:
    """Return the unified difference of two definitions, cut off where it gets long."""
    lines = list(
        unified_diff(
            was.definition.lines,
            now.definition.lines,
            f"{was.definition.file} ({old})",
            f"{now.definition.file} ({new})",
            lineterm="",
        )
    )
    if len(lines) <= _MOST_LINES:
        return tuple(lines)
    return (*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines")


def changed_lines(was: Found, now: Found) -> list[tuple[int, int]]:
    """Return the stretches of the old definition's file that the new one changes; layout aside.

    Where lines were only added, the stretch is the two lines around.
    """
    mine, theirs = (["".join(line.split()) for line in f.definition.lines] for f in (was, now))
    first = was.definition.first
    return [
        (first + start, first + end - 1) if end > start else (first + start - 1, first + start)
        for tag, start, end, _, _ in SequenceMatcher(None, mine, theirs, False).get_opcodes()
        if tag != "equal"
    ]


def _finding(anchor: Anchor, old: Tree, new: Tree) -> Finding:
    unseen = Finding(anchor, "unseen", RANKS.index("not carried"))
    if anchor.file.endswith(UNSHIPPED):
        if not new.complete:
            return unseen
        there = definitions(new, anchor.file, anchor.symbol)
        if not there:
            return Finding(anchor, "gone", 0)
        return Finding(anchor, "unchanged", RANKS.index("unchanged"), anchor.file)
    was = base(anchor, old)
    if was is None or _OF_THE_PLATFORM.fullmatch(anchor.file):
        return unseen
    if new.complete and absence(anchor.file) and anchor.file not in new.paths:
        return unseen
    now, near = counterpart(anchor, was, old, new)
    if now is None:
        return Finding(anchor, "gone", 0, near=near)
    return _judged(anchor, was, now, old, new)


def _judged(anchor: Anchor, was: Found, now: Found, old: Tree, new: Tree) -> Finding:
    file, lines = now.definition.file, (now.definition.first, now.definition.last)
    mark = deprecation(now) if anchor.kind == "api" and not deprecation(was) else ""
    broken: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    if now.sha256 != was.sha256:
        broken = tuple(breakages(old, was, new, now))
        diff = difference(was, now, old.release, new.release)
        verdict = "signature" if broken else "changed"
        rank = _rank(anchor, was, now, broken)
    elif file != anchor.file:
        verdict, rank = "moved", "moved to another file"
    elif anchor.sha256 and lines != anchor.lines:
        verdict, rank = "moved", "moved within its file"
    else:
        verdict, rank = "unchanged", "unchanged"
    place = RANKS.index(rank)
    if mark:
        place = min(place, RANKS.index("deprecated there"))
    return Finding(anchor, verdict, place, file, lines, broken, diff, deprecated=mark)


def _rank(anchor: Anchor, was: Found, now: Found, broken: Sequence[str]) -> str:
    if anchor.kind == "api":
        if not broken:
            return "changed behind its name"
        whole = not all(_of_a_member(one, was.definition.symbol) for one in broken)
        return "signature changed" if whole else "signature of a member changed"
    shown = any(
        first <= last_shown and first_shown <= last
        for first, last in changed_lines(was, now)
        for first_shown, last_shown in anchor.shown
    )
    if not shown:
        return "changed beside what is shown"
    return "signature changed" if broken else "changed where it is shown"


def _of_a_member(breakage: str, symbol: str) -> bool:
    """Tell whether a breakage of a class concerns a member, which a chapter may not use."""
    own = f"{symbol}."
    return breakage.startswith(own) and not breakage.startswith((f"{own}__init__", f"{own}__new__"))


def _same_file(was: Found, old: Tree, new: Tree) -> bool:
    file = was.definition.file
    return old.text(file) == new.text(file)


def _place(found: Found) -> str:
    return f"{found.definition.file}: {found.definition.symbol}"
