"""`anchors.lock`: the anchors that a person has accepted, one to a line, sorted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from insidetorch.drift.anchors import Anchor
from insidetorch.errors import BookError

NAME = "anchors.lock"
PLACE = Path("data", NAME)
SCHEMA = 1
_Type = TypeVar("_Type")


class Damaged(BookError):
    """A lock of which a line cannot be read."""


@dataclass(frozen=True)
class _Head:
    """The first line of the file."""

    schema: int
    torch: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Lock:
    """The accepted anchors, and the release they were accepted with."""

    torch: str
    commit: str
    anchors: tuple[Anchor, ...]


@dataclass(frozen=True)
class Change:
    """How one anchor differs from the lock.

    :param kind: ``new``, ``stale`` (another definition) or ``unused``; ``placed`` if only lines or
        cells differ.
    """

    kind: str
    anchor: Anchor
    was: Anchor | None = None


def dump(lock: Lock) -> str:
    """Return the text of the file."""
    head = _Head(SCHEMA, lock.torch, lock.commit)
    rows = [asdict(head), *(asdict(a) for a in sorted(lock.anchors, key=lambda anchor: anchor.id))]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parse(text: str | bytes, name: str = NAME) -> Lock:
    """Read the text of a lock.

    :raises Damaged: a line of it cannot be read.
    :raises BookError: it was written by a newer toolkit.
    """
    head, *rows = (text.encode() if isinstance(text, str) else text).splitlines() or [b""]
    found = _line(head, _Head, 1, name)
    if found.schema > SCHEMA:
        raise BookError(
            f"{name} has schema {found.schema} and this toolkit reads up to {SCHEMA}; update the "
            "toolkit, or remove the file and write it again with `make lock`."
        )
    anchors = (_line(row, Anchor, number, name) for number, row in enumerate(rows, start=2))
    return Lock(found.torch, found.commit, tuple(anchors))


def read(path: Path) -> Lock:
    """Read a lock.

    :raises BookError: there is none, or it cannot be read.
    """
    if not path.is_file():
        raise BookError(f"{path} is missing; write it with `make lock` after a build.")
    return parse(path.read_bytes(), path.name)


def changes(lock: Lock, now: Iterable[Anchor]) -> list[Change]:
    """Return how the anchors of the book differ from those accepted."""
    old = {anchor.id: anchor for anchor in lock.anchors}
    new = {anchor.id: anchor for anchor in now}
    found = []
    for key in sorted({*old, *new}):
        if key not in old:
            found.append(Change("new", new[key]))
        elif key not in new:
            found.append(Change("unused", old[key]))
        elif old[key] != new[key]:
            same = old[key].sha256 == new[key].sha256
            found.append(Change("placed" if same else "stale", new[key], old[key]))
    return found


def describe(found: Sequence[Change]) -> list[str]:
    """Return the differences as lines to read, grouped by chapter."""
    words = {"new": "+", "unused": "-", "stale": "!", "placed": "~"}
    lines, chapter = [], ""
    for change in found:
        if change.anchor.chapter != chapter:
            chapter = change.anchor.chapter
            lines.append(chapter)
        lines.append(f"  {words[change.kind]} {change.anchor.kind} {_words(change)}")
    return lines


def sentences(found: Sequence[Change], chapters: Iterable[str]) -> list[str]:
    """Return one sentence for each anchor that a build should not pass over."""
    known = set(chapters)
    gone = sorted({c.anchor.chapter for c in found if c.kind == "unused"} - known)
    said = [
        f"{NAME} holds anchors of {chapter}, which the book no longer has; run `make lock`."
        for chapter in gone
    ]
    for change in found:
        anchor = change.anchor
        where = anchor.chapter
        if anchor.cells:
            plural = "s" if len(anchor.cells) > 1 else ""
            where += f", code cell{plural} {', '.join(map(str, anchor.cells))}"
        if change.kind == "new":
            said.append(f"{where}: {anchor.target} is not in {NAME}; read it and run `make lock`.")
        elif change.kind == "stale":
            said.append(
                f"{where}: {anchor.target} is no longer what {NAME} holds; read what changed and "
                "run `make lock`."
            )
        elif change.kind == "unused" and anchor.chapter in known:
            said.append(
                f"{anchor.chapter} no longer uses {anchor.target}, which {NAME} holds; "
                "run `make lock`."
            )
    return said


def _words(change: Change) -> str:
    anchor, was = change.anchor, change.was
    place = f"{anchor.file}:{anchor.lines[0]}-{anchor.lines[1]}" if anchor.sha256 else anchor.file
    if was is None:
        return f"{anchor.target}  {place}"
    parts = []
    if was.sha256 != anchor.sha256:
        parts.append(f"definition {was.sha256[:8]} → {anchor.sha256[:8]}")
    if was.signature != anchor.signature:
        parts.append(f"signature {was.signature} → {anchor.signature}")
    if (was.file, was.lines) != (anchor.file, anchor.lines):
        parts.append(f"{was.file}:{was.lines[0]}-{was.lines[1]} → {place}")
    if was.cells != anchor.cells:
        parts.append(f"cells {list(was.cells)} → {list(anchor.cells)}")
    return f"{anchor.target}  {'; '.join(parts) or 'other details'}"


def _line(text: bytes, type: type[_Type], number: int, name: str) -> _Type:
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Damaged(
            f"{name}, line {number}, cannot be read ({error}); restore the file, or write it "
            "again with `make lock`."
        ) from None
