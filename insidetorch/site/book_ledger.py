"""What the executed book says of itself: the build's ledger, read into plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError

PYTORCH = "https://github.com/pytorch/pytorch"


@dataclass(frozen=True)
class Chapter:
    """One executed chapter.

    :param doc: its document name, e.g. ``notebooks/autograd-engine``.
    :param commit: the full commit of pytorch/pytorch that the release was built from.
    :param executed: when it last ran; None if the ledger does not say.
    :param seconds: how long its cells took together.
    :param records: what its cells recorded, in order, each with ``cell`` and ``kind``.
    """

    doc: str
    title: str
    status: str
    fresh: bool
    executed: datetime | None
    seconds: float
    cells: int
    torch: str
    commit: str
    python: str
    cpu: str
    records: tuple[Mapping[str, Any], ...] = field(default=())

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the records of one kind."""
        return [record for record in self.records if record.get("kind") == kind]

    def held(self) -> tuple[int, int]:
        """Return how many claims held, and how many were made."""
        claims = self.of("claim")
        return sum(1 for claim in claims if claim.get("held")), len(claims)


@dataclass(frozen=True)
class Ledger:
    """The last build: when it was made, with what, and its chapters in the book's order."""

    built: datetime | None
    torch: str
    commit: str
    python: str
    cpu: str
    chapters: tuple[Chapter, ...]

    def chapter(self, doc: str) -> Chapter | None:
        """Return the chapter with this document name, or None."""
        return next((chapter for chapter in self.chapters if chapter.doc == doc), None)


def read_ledger(path: Path) -> Ledger | None:
    """Read the build's ledger.

    :param path: the JSON file that the build writes.
    :return: the ledger, or None if there is no such file.
    :raises BookError: the file is no ledger.
    """
    if not path.is_file():
        return None
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> Ledger:
    """Read the ledger once for each state of its file: every page asks for it."""
    try:
        return parse_ledger(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"{path.name} cannot be read as the build's ledger ({type(error).__name__}: {error}); "
            "remove it and build again."
        ) from error


def parse_ledger(data: Mapping[str, Any]) -> Ledger:
    """Return the ledger in `data`; what a chapter leaves out is taken from the build's own."""
    common = {name: str(data.get(name) or "") for name in ("torch", "commit", "python", "cpu")}
    chapters = tuple(
        Chapter(
            doc=str(entry["doc"]),
            title=str(entry.get("title") or entry["doc"]).replace("`", ""),
            status=str(entry.get("status") or "ok"),
            fresh=bool(entry.get("fresh")),
            executed=_moment(entry.get("executed")),
            seconds=float(entry.get("seconds") or 0.0),
            cells=int(entry.get("cells") or 0),
            records=tuple(entry.get("records") or ()),
            **{name: str(entry.get(name) or common[name]) for name in common},
        )
        for entry in data["chapters"]
    )
    return Ledger(built=_moment(data.get("built")), chapters=chapters, **common)


def commit_url(commit: str) -> str:
    """Return the address of a commit of PyTorch, or the empty string for none."""
    return f"{PYTORCH}/commit/{commit}" if commit else ""


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(str(text)) if text else None
