"""The anchors over past releases: what moves, what stands still, how old an excerpt is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import msgspec

from insidetorch.drift import stored
from insidetorch.drift.anchors import Anchor, base
from insidetorch.drift.compare import counterpart
from insidetorch.drift.trees import Tree
from insidetorch.errors import BookError

NAME = "history.jsonl"
SCHEMA = 1
_DIGITS = 12


@dataclass(frozen=True)
class _Head:
    """The first line of the data file."""

    schema: int
    releases: tuple[str, ...]
    pinned: str


@dataclass(frozen=True)
class Row:
    """One anchor over the releases.

    :param spans: for each release in which something is new, the release, the first digits of the
        definition's hash ("" if it is absent), and its file.
    """

    chapter: str
    kind: str
    target: str
    spans: tuple[tuple[str, str, str], ...]

    @property
    def id(self) -> tuple[str, str, str]:
        """The anchor's."""
        return self.chapter, self.kind, self.target


@dataclass(frozen=True)
class History:
    """The anchors over the releases.

    :param releases: in order, oldest first.
    :param pinned: the one that the anchors are locked with.
    """

    releases: tuple[str, ...]
    pinned: str
    rows: tuple[Row, ...]

    def states(self, row: Row) -> list[str]:
        """Return ``same``, ``moved``, ``other`` or ``absent`` for each release, beside pinned."""
        known = self._filled(row)
        here = known[self.releases.index(self.pinned)]
        return [
            "absent"
            if not digest
            else "other"
            if digest != here[0]
            else "moved"
            if file != here[1]
            else "same"
            for digest, file in known
        ]

    def since(self, row: Row) -> str:
        """Return the first release from which on the definition is what it is in the pinned one."""
        states = self.states(row)
        index = self.releases.index(self.pinned)
        while index and states[index - 1] in ("same", "moved"):
            index -= 1
        return self.releases[index]

    def _filled(self, row: Row) -> list[tuple[str, str]]:
        starts = {release: (digest, file) for release, digest, file in row.spans}
        known, filled = ("", ""), []
        for release in self.releases:
            known = starts.get(release, known)
            filled.append(known)
        return filled


def trace(anchors: Iterable[Anchor], pinned: Tree, trees: Sequence[Tree]) -> History:
    """Return the history of anchors over releases; those without a definition have none.

    :param pinned: the release that the anchors are locked with.
    :param trees: the releases, in any order; `pinned` is added if its version is missing.
    """
    by_release = {tree.public: tree for tree in trees} | {pinned.public: pinned}
    ordered = sorted(by_release, key=version)
    rows = []
    for anchor in anchors:
        was = base(anchor, pinned) if anchor.sha256 else None
        if was is None:
            continue
        spans: list[tuple[str, str, str]] = []
        for release in ordered:
            tree = by_release[release]
            found = was if tree is pinned else counterpart(anchor, was, pinned, tree)[0]
            state = (found.sha256[:_DIGITS], found.definition.file) if found else ("", "")
            if not spans or spans[-1][1:] != state:
                spans.append((release, *state))
        rows.append(Row(*anchor.id, tuple(spans)))
    return History(tuple(ordered), pinned.public, tuple(sorted(rows, key=lambda row: row.id)))


def version(release: str) -> tuple[int, ...]:
    """Return a key that sorts releases by age."""
    return tuple(int(part) if part.isdigit() else 0 for part in release.split("."))


def dump(history: History) -> str:
    """Return the text of the data file, one anchor to a line."""
    head = _Head(SCHEMA, history.releases, history.pinned)
    lines = [asdict(head), *map(asdict, history.rows)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def parse(text: str, name: str = NAME) -> History:
    """Read the text of the data file.

    :raises BookError: it cannot be read.
    """
    try:
        head, *rows = text.splitlines() or [""]
        start = stored.read(head.encode(), _Head, SCHEMA, name, "make drift-history")
        found = tuple(msgspec.json.decode(row, type=Row) for row in rows)
        history = History(start.releases, start.pinned, found)
        for row in found:
            history.states(row)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BookError(
            f"{name} cannot be read ({error}); restore it, or write it again with "
            "`make drift-history`."
        ) from None
    return history


def shares(history: History, rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return for each release how many of `rows` are in which state."""
    states = [history.states(row) for row in rows]
    return {
        release: {
            state: sum(1 for row in states if row[index] == state)
            for state in ("same", "moved", "other", "absent")
        }
        for index, release in enumerate(history.releases)
    }
