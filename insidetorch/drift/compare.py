"""One release against another: what became of each anchor.

What is compared is the definition that an anchor stands for, with the formula of its derivative if
it is an operator. A function that it calls is not followed: whether a change there reaches a
sentence is what executing the chapters on the release tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from insidetorch.drift import findings as kinds
from insidetorch.drift import unshipped
from insidetorch.drift.anchors import Anchor, base
from insidetorch.drift.changes import alike, changes
from insidetorch.drift.definitions import OPERATORS, Found, definitions, group, own_name
from insidetorch.drift.deprecations import deprecation
from insidetorch.drift.findings import Finding
from insidetorch.drift.names import found_at, given_out, resolve
from insidetorch.drift.signatures import breakages
from insidetorch.drift.trees import UNSHIPPED, Tree
from insidetorch.drift.where import Whereabouts, find_again
from insidetorch.locate.paths import absence
from insidetorch.locate.yamls import FILES

_OF_THE_PLATFORM = re.compile(
    r"torch/version\.py|torch/include/ATen/(?:Config|RegistrationDeclarations)\.h"
    r"|torch/include/caffe2/core/macros\.h|torch/include/ATen/ops/\w+_(?:native|dispatch)\.h"
)
_DERIVATIVES = FILES["derivatives.yaml"]


def compare(anchors: Sequence[Anchor], old: Tree, new: Tree) -> list[Finding]:
    """Return what became of each anchor, in their order.

    :param old: the release that the anchors were locked with.
    :param new: the other release.
    """
    # By file, so that what was read of one is still at hand for the next anchor.
    by_file = sorted(anchors, key=lambda anchor: (anchor.file, anchor.id))
    found = {anchor.id: _finding(anchor, old, new) for anchor in by_file}
    return [found[anchor.id] for anchor in anchors]


def stale(anchors: Iterable[Anchor], tree: Tree) -> list[Anchor]:
    """Return the anchors that are not what `tree` has, the release they should be locked with."""
    now = [(anchor, base(anchor, tree)) for anchor in anchors]
    return [
        anchor
        for anchor, there in now
        if there is None or (anchor.sha256 and not there.sha256.startswith(anchor.sha256))
    ]


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
    elif not anchor.sha256:
        return (was, ()) if anchor.file in new.paths else (None, ())
    elif _same_file(was, old, new):
        return was, ()
    elif not anchor.symbol:
        whole = definitions(new, anchor.file, "")
        return (whole[0], ()) if whole else (None, ())
    again = find_again(new, was, old, anchor.symbol)
    return again.found, again.near


def _finding(anchor: Anchor, old: Tree, new: Tree) -> Finding:
    if anchor.file.endswith(UNSHIPPED):
        return unshipped.compare(anchor, old, new)
    was = base(anchor, old)
    if was is None or _OF_THE_PLATFORM.fullmatch(anchor.file):
        return kinds.Unseen(anchor, said="it is another file on each platform")
    if new.complete and absence(anchor.file) and anchor.file not in new.paths:
        return kinds.Unseen(anchor, said="it is generated when PyTorch is built")
    now, near = counterpart(anchor, was, old, new)
    if now is None:
        if anchor.kind == "api" and (file := given_out(new, anchor.target)):
            return kinds.Moved(anchor, file, (1, 1), said="given out by its module's __getattr__")
        return kinds.Gone(anchor, near=near)
    return _judged(anchor, was, now, old, new)


def _judged(anchor: Anchor, was: Found, now: Found, old: Tree, new: Tree) -> Finding:
    file, lines = now.definition.file, (now.definition.first, now.definition.last)
    if was.definition.language != now.definition.language:
        return kinds.Moved(anchor, file, lines)  # from an entry to a stub: the name is there
    name = now.definition.symbol
    now = _called(now, was.definition.symbol)
    other = was.definition.lines != now.definition.lines
    mark = deprecation(now) if other and anchor.kind == "api" and not deprecation(was) else ""
    if mark or (other and not alike(was, now)):
        broken = tuple(breakages(old, was, new, now))
        said = f"deprecated there: {mark}" if mark else ""
        differ = tuple(changes(was, now, anchor.shown))
        return kinds.Changed(anchor, file, lines, broken, differ, said=said)
    derivative = _derivative(anchor, old, new)
    if derivative is not None:
        return derivative
    if name != was.definition.symbol and name and anchor.kind == "api":
        return kinds.Moved(anchor, file, lines, said=f"another name for {name}")
    if file != anchor.file:
        return kinds.Moved(anchor, file, lines)
    moved = anchor.sha256 and lines != anchor.lines
    return (kinds.MovedWithin if moved else kinds.Unchanged)(anchor, file, lines)


def _called(found: Found, symbol: str) -> Found:
    """Return a Python definition under another own name, as an alias gives it."""
    what = found.definition
    old, new = (own_name(name, "python") for name in (what.symbol, symbol))
    if what.language != "python" or old == new or not new or found.parts:
        return found
    head = re.compile(rf"^(\s*(?:async def|def|class) ){re.escape(old)}\b")
    lines = tuple(head.sub(rf"\g<1>{new}", line) for line in what.lines)
    signature = head.sub(rf"\g<1>{new}", what.signature)
    renamed = replace(what, symbol=symbol, lines=lines, signature=signature)
    return Found(renamed, found.body)


def _derivative(anchor: Anchor, old: Tree, new: Tree) -> Finding | None:
    """Return how the derivative of an operator differs, if it does."""
    if anchor.file != OPERATORS or _same_text(_DERIVATIVES, old, new):
        return None
    was, now = (group(tree, _DERIVATIVES, anchor.symbol) for tree in (old, new))
    if was is None or (now is not None and alike(was, now)):
        return None
    if now is None:
        return kinds.Derivative(anchor, _DERIVATIVES, said=f"its entry in {_DERIVATIVES} is gone")
    lines = (now.definition.first, now.definition.last)
    return kinds.Derivative(anchor, _DERIVATIVES, lines, changes=tuple(changes(was, now, ())))


def _same_file(was: Found, old: Tree, new: Tree) -> bool:
    return _same_text(was.definition.file, old, new)


def _same_text(file: str, old: Tree, new: Tree) -> bool:
    return old.text(file) == new.text(file)


def _place(found: Found) -> str:
    return f"{found.definition.file}: {found.definition.symbol}"
