"""The anchors of the book: what it quotes and names of PyTorch, and what that was when written."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from insidetorch.drift.apis import named_apis
from insidetorch.drift.definitions import Found, fingerprint, group, language_of
from insidetorch.drift.names import Place, found_at, resolve
from insidetorch.drift.trees import UNSHIPPED, Tree
from insidetorch.errors import BookError
from insidetorch.locate import python
from insidetorch.locate.definition import Definition

DIGITS = 32
_OURS = ("torch/", "torchgen/", "functorch/", "aten/", "c10/", "caffe2/", "tools/")
_LONGEST_SIGNATURE = 200


@dataclass(frozen=True)
class Anchor:
    """One thing of PyTorch that a chapter rests on.

    :param chapter: document, e.g. ``notebooks/autograd-engine``.
    :param kind: ``excerpt`` (its code is shown) or ``api`` (a cell names it).
    :param target: what the cell wrote; of an API, its full public name.
    :param cells: the code cells, from 1; empty for what the toolkit names for all chapters.
    :param file: path in the wheel; of what no wheel carries, path in PyTorch's repository.
    :param symbol: the full name in that file, "" for the whole file.
    :param lines: first and last line of the definition in the file.
    :param shown: first and last line of each stretch that the chapter shows; none for an API.
    :param sha256: first digits of the hash of the normalised definition; "" where only its being
        there counts (a module, a file that is not shipped).
    :param signature: what callers see of it.
    """

    chapter: str
    kind: str
    target: str
    cells: tuple[int, ...]
    file: str
    symbol: str
    lines: tuple[int, int]
    shown: tuple[tuple[int, int], ...]
    sha256: str
    signature: str

    @property
    def id(self) -> tuple[str, str, str]:
        """What identifies it; the lock is sorted by this."""
        return self.chapter, self.kind, self.target


@dataclass(frozen=True)
class Source:
    """What anchors of one document are gathered from.

    :param doc: the document.
    :param cells: the sources of its code cells.
    :param records: what they recorded when they ran.
    """

    doc: str
    cells: Sequence[str]
    records: Sequence[Mapping[str, Any]]


def gather(sources: Iterable[Source], tree: Tree) -> list[Anchor]:
    """Return the anchors of the book as it stands, sorted.

    :param tree: the release that the chapters ran on.
    :raises BookError: an excerpt is not what `tree` has there.
    """
    found: dict[tuple[str, str, str], Anchor] = {}
    for source in sources:
        anchors = [
            excerpt(source.doc, record, tree)
            for record in source.records
            if record["kind"] == "excerpt" and _ours(record)
        ]
        names = named_apis(source.cells, tree)
        anchors += [a for name, cells in names.items() if (a := api(source.doc, name, cells, tree))]
        for anchor in anchors:
            key, number = anchor.id, 1
            # One target may stand for several overloads, by the texts it is given with.
            while key in found and found[key].lines != anchor.lines:
                number += 1
                key = (*anchor.id[:2], f"{anchor.target} ({number})")
            known = found.get(key, anchor)
            found[key] = replace(
                anchor,
                target=key[2],
                cells=tuple(sorted({*known.cells, *anchor.cells})),
                shown=tuple(sorted({*known.shown, *anchor.shown})),
            )
    return [found[key] for key in sorted(found)]


def excerpt(doc: str, record: Mapping[str, Any], tree: Tree) -> Anchor:
    """Return the anchor of an excerpt from its record.

    :raises BookError: the release has something else there than what was shown.
    """
    cells = (int(record["cell"]),)
    file = str(record["file"] or record["upstream"])
    if file.endswith(UNSHIPPED):
        target, symbol = record["target"], record["symbol"]
        return Anchor(doc, "excerpt", target, cells, file, symbol, (0, 0), (), "", "")
    first, last = record["defined"]
    sha256 = record["sha256"][:DIGITS]
    text = tree.text(file)
    lines = python.lines_of(text or "")[first - 1 : last]
    now = fingerprint("\n".join(lines), language_of(file))[:DIGITS]
    if text is None or now != sha256:
        raise BookError(
            f"{doc}, code cell {cells[0]}: the excerpt of {record['target']} was not made from "
            f"torch {tree.release}; build the book again with `make book`."
        )
    symbol = record["symbol"]
    # Records that older builds kept know where an excerpt begins and ends, not what it leaves out.
    shown = tuple((a, b) for a, b in record.get("shown") or [record["lines"]])
    whole = symbol in ("", PurePosixPath(file).name)
    return Anchor(
        doc, "excerpt", record["target"], cells, file, "" if whole else symbol, (first, last),
        shown, sha256, record["signature"],
    )  # fmt: skip


def api(doc: str, name: str, cells: Sequence[int], tree: Tree) -> Anchor | None:
    """Return the anchor of a public name, or None if the release does not tell of it."""
    place = resolve(tree, name)
    return _at(doc, name, cells, tree, place) if place else None


def _at(doc: str, name: str, cells: Sequence[int], tree: Tree, place: Place) -> Anchor | None:
    if place.kind == "module":
        return Anchor(doc, "api", name, tuple(cells), place.file, "", (0, 0), (), "", "")
    found = found_at(tree, place)
    if found is None:
        return None
    what = found.definition
    lines = (what.first, what.last)
    return Anchor(
        doc, "api", name, tuple(cells), place.file, place.symbol, lines, (),
        found.sha256[:DIGITS], what.signature if what.siblings == 1 else _short(what.signature),
    )  # fmt: skip


def base(anchor: Anchor, tree: Tree) -> Found | None:
    """Return the definition that an anchor stands for, in the release it was locked with.

    :return: None if that release has nothing there. Where the lock is out of date it is another
        definition than what was locked; `compare.stale` tells.
    """
    first, last = anchor.lines
    language = language_of(anchor.file)
    if not anchor.sha256:
        return Found(Definition(anchor.symbol, anchor.file, language, 1, (), ""))
    if anchor.kind == "api":
        return group(tree, anchor.file, anchor.symbol)
    text = tree.text(anchor.file)
    if text is None:
        return None
    lines = python.lines_of(text)[first - 1 : last]
    definition = Definition(anchor.symbol, anchor.file, language, first, lines, anchor.signature)
    return Found(definition, _has_body(definition))


def against_run(anchors: Iterable[Anchor], tree: Tree) -> tuple[list[Anchor], list[str]]:
    """Check what the sources say of each named API against the torch that is imported here.

    :return: the anchors, each with the place that the running torch tells of, and a sentence for
        each name that the running torch does not have.
    """
    kept, absent = [], []
    for anchor in anchors:
        if anchor.kind != "api":
            kept.append(anchor)
            continue
        try:
            value = python.resolve(anchor.target)
        except BookError:
            if _declared(anchor.target):
                kept.append(anchor)
                continue
            absent.append(
                f"{anchor.chapter}: {anchor.target} is in the sources of torch {tree.release} "
                "but not in the running one; it gets no anchor."
            )
            continue
        kept.append(_as_run(anchor, value, tree))
    return kept, absent


def _declared(target: str) -> bool:
    """Tell whether the name is declared in a class and set on its instances only."""
    owner, _, name = target.rpartition(".")
    try:
        value = python.resolve(owner)
    except BookError:
        return False
    return inspect.isclass(value) and any(
        name in vars(base).get("__annotations__", {}) for base in value.__mro__
    )


def _as_run(anchor: Anchor, value: object, tree: Tree) -> Anchor:
    if not anchor.file.endswith(".py") or inspect.ismodule(value) or not anchor.symbol:
        return anchor
    try:
        file, name = python.origin(value, anchor.target)
    except BookError:
        return anchor
    below = [p for p in tree.modules if file.as_posix().endswith(f"/{p}")]
    path = max(below, key=len, default=None)
    if path is None or "<locals>" in name or (path, name) == (anchor.file, anchor.symbol):
        return anchor
    place = Place(path, name, "function")
    return _at(anchor.chapter, anchor.target, anchor.cells, tree, place) or anchor


def _ours(record: Mapping[str, Any]) -> bool:
    return str(record["file"] or record["upstream"] or "").startswith(_OURS)


def _has_body(definition: Definition) -> bool:
    return definition.language != "cpp" or "{" in definition.text or "=" in definition.text


def _short(signature: str) -> str:
    if len(signature) <= _LONGEST_SIGNATURE:
        return signature
    return signature[: _LONGEST_SIGNATURE - 1] + "…"
