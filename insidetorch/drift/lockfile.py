"""`anchors.lock`: the anchors that a person has accepted, one to a line, sorted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from insidetorch.drift.anchors import Anchor
from insidetorch.errors import BookError

NAME = "anchors.lock"
PLACE = Path("data", NAME)
SCHEMA = 1


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
    head = {"schema": SCHEMA, "torch": lock.torch, "commit": lock.commit}
    rows = [head, *(asdict(a) for a in sorted(lock.anchors, key=lambda anchor: anchor.id))]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parse(text: str, name: str = NAME) -> Lock:
    """Read the text of a lock.

    :raises BookError: it was written by a newer toolkit, or a line of it is damaged.
    """
    number = 0
    try:
        rows = []
        for number, line in enumerate(text.splitlines(), start=1):
            rows.append(json.loads(line))
            if number == 1 and rows[0]["schema"] > SCHEMA:
                raise BookError(
                    f"{name} has schema {rows[0]['schema']} and this toolkit reads up to {SCHEMA}; "
                    "update the toolkit, or write the lock again with `make lock`."
                )
        anchors = []
        for number, row in enumerate(rows[1:], start=2):  # noqa: B007
            anchors.append(_anchor(row))
        number = 1
        return Lock(str(rows[0]["torch"]), str(rows[0]["commit"]), tuple(anchors))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BookError(
            f"{name}, line {number}, cannot be read ({type(error).__name__}: {error}); restore it, "
            "or write it again with `make lock`."
        ) from None


def read(path: Path) -> Lock:
    """Read a lock.

    :raises BookError: there is none, or it cannot be read.
    """
    if not path.is_file():
        raise BookError(f"{path} is missing; write it with `make lock` after a build.")
    return parse(path.read_text(encoding="utf-8"), path.name)


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


def _anchor(row: dict[str, Any]) -> Anchor:
    names = {field.name for field in fields(Anchor)}
    if set(row) != names:
        odd = sorted(names ^ set(row))
        raise ValueError(f"an anchor has not the fields it should: {', '.join(odd)}")

    words = ("chapter", "kind", "target", "file", "symbol", "sha256", "signature")
    if not all(isinstance(row[name], str) for name in words):
        raise ValueError("an anchor has a value that should be text and is not")
    first, last = row["lines"]
    return Anchor(
        **{name: row[name] for name in words},
        cells=tuple(int(cell) for cell in row["cells"]),
        lines=(int(first), int(last)),
        shown=tuple((int(first), int(last)) for first, last in row["shown"]),
    )
