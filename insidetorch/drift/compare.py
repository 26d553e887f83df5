"""One release against another: what became of each anchor, ranked by how it may mislead.

What is compared is the definition that an anchor stands for, with the formula of its derivative if
it is an operator. A function that it calls is not followed: whether a change there reaches a
sentence is what executing the chapters on the release tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher, unified_diff

from insidetorch.drift import findings as kinds
from insidetorch.drift.anchors import Anchor, base
from insidetorch.drift.definitions import OPERATORS, Found, definitions, group
from insidetorch.drift.deprecations import deprecation
from insidetorch.drift.findings import Finding
from insidetorch.drift.meaning import same
from insidetorch.drift.names import found_at, given_out, resolve
from insidetorch.drift.signatures import breakages
from insidetorch.drift.trees import UNSHIPPED, Tree
from insidetorch.drift.where import Whereabouts, find_again
from insidetorch.locate.definition import Language
from insidetorch.locate.paths import absence
from insidetorch.locate.yamls import FILES

_OF_THE_PLATFORM = re.compile(
    r"torch/version\.py|torch/include/ATen/(?:Config|RegistrationDeclarations)\.h"
    r"|torch/include/caffe2/core/macros\.h|torch/include/ATen/ops/\w+_(?:native|dispatch)\.h"
)
_MOST_LINES = 300
_DERIVATIVES = FILES["derivatives.yaml"]


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


def touches(was: Found, now: Found, shown: Iterable[tuple[int, int]]) -> bool:
    """Tell whether code on lines that a chapter shows is another one; layout and comments aside.

    Lines that were only added count where the lines on both sides are shown without a gap.

    :param shown: first and last line of each stretch, in the old definition's file.
    """
    language = was.definition.language
    mine, theirs = ([_code(line, language) for line in f.definition.lines] for f in (was, now))
    stretches = list(shown)
    for tag, start, end, _, _ in SequenceMatcher(None, mine, theirs, False).get_opcodes():
        first, last = was.definition.first + start, was.definition.first + end - 1
        if tag == "equal":
            continue
        if start == end and any(a <= last and first <= b for a, b in stretches):
            return True
        numbers = (n for n in range(first, last + 1) if mine[n - was.definition.first])
        if any(a <= n <= b for n in numbers for a, b in stretches):
            return True
    return False


def _code(line: str, language: Language) -> str:
    comment = r"(?:^|\s)//.*" if language == "cpp" else r"(?:^|\s)#.*"
    return "".join(re.sub(comment, "", line).split())


def _finding(anchor: Anchor, old: Tree, new: Tree) -> Finding:
    if anchor.file.endswith(UNSHIPPED):
        if not new.complete:
            return kinds.Unseen(anchor)
        there = definitions(new, anchor.file, anchor.symbol)
        return kinds.Unchanged(anchor, anchor.file) if there else kinds.Gone(anchor)
    was = base(anchor, old)
    if was is None or _OF_THE_PLATFORM.fullmatch(anchor.file):
        return kinds.Unseen(anchor)
    if new.complete and absence(anchor.file) and anchor.file not in new.paths:
        return kinds.Unseen(anchor)
    now, near = counterpart(anchor, was, old, new)
    if now is None:
        if anchor.kind == "api" and (file := given_out(new, anchor.target)):
            return kinds.Lazy(anchor, file, (1, 1))
        return kinds.Gone(anchor, near=near)
    return _judged(anchor, was, now, old, new)


def _judged(anchor: Anchor, was: Found, now: Found, old: Tree, new: Tree) -> Finding:
    file, lines = now.definition.file, (now.definition.first, now.definition.last)
    mark = deprecation(now) if anchor.kind == "api" and not deprecation(was) else ""
    if mark or not same(was, now):
        broken = tuple(breakages(old, was, new, now))
        kind = _kind(anchor, was, now, broken)
        if mark and kind is not kinds.Signature:
            kind = kinds.Deprecated
        diff = difference(was, now, old.release, new.release)
        return kind(anchor, file, lines, broken, diff, deprecated=mark)
    derivative = _derivative(anchor, old, new)
    if derivative:
        return kinds.Derivative(anchor, file, lines, diff=derivative)
    if file != anchor.file:
        return kinds.MovedFile(anchor, file, lines)
    if now.sha256 != was.sha256:
        diff = difference(was, now, old.release, new.release)
        return kinds.Restyled(anchor, file, lines, diff=diff)
    moved = anchor.sha256 and lines != anchor.lines
    return (kinds.MovedWithin if moved else kinds.Unchanged)(anchor, file, lines)


def _kind(anchor: Anchor, was: Found, now: Found, broken: Sequence[str]) -> type[Finding]:
    if anchor.kind != "api":
        return kinds.Shown if touches(was, now, anchor.shown) else kinds.Beside
    if broken:
        member = all(_of_a_member(one, was.definition.symbol) for one in broken)
        return kinds.Member if member else kinds.Signature
    whole = was.definition.language != "python" or "class " in was.definition.signature
    return kinds.Behind if whole else kinds.Body


def _derivative(anchor: Anchor, old: Tree, new: Tree) -> tuple[str, ...]:
    """Return how the derivative of an operator differs, as a unified difference."""
    if anchor.file != OPERATORS:
        return ()
    was, now = (group(tree, _DERIVATIVES, anchor.symbol) for tree in (old, new))
    if was is None or (now is not None and same(was, now)):
        return ()
    if now is None:
        return (f"its entry in {_DERIVATIVES} is gone",)
    return difference(was, now, old.release, new.release)


def _of_a_member(breakage: str, symbol: str) -> bool:
    """Tell whether a breakage of a class concerns a member, which a chapter may not use."""
    own = f"{symbol}."
    return breakage.startswith(own) and not breakage.startswith((f"{own}__init__", f"{own}__new__"))


def _same_file(was: Found, old: Tree, new: Tree) -> bool:
    file = was.definition.file
    return old.text(file) == new.text(file)


def _place(found: Found) -> str:
    return f"{found.definition.file}: {found.definition.symbol}"
