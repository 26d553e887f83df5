"""What the executed book says of itself: the build's ledger, read into plain records."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from insidetorch.decode import decode

PYTORCH = "https://github.com/pytorch/pytorch"


class Executed(Struct, frozen=True):
    """One executed chapter.

    :param doc: its document name, e.g. ``notebooks/autograd-engine``.
    :param commit: the full commit of pytorch/pytorch that the release was built from.
    :param executed: when it last ran; None if the ledger does not say.
    :param seconds: how long its cells took together.
    :param records: what its cells recorded, in order, each with ``cell`` and ``kind``.
    """

    doc: str
    title: str = ""
    status: str = "ok"
    fresh: bool = False
    executed: datetime | None = None
    seconds: float = 0.0
    cells: int = 0
    torch: str = ""
    commit: str = ""
    python: str = ""
    cpu: str = ""
    records: tuple[dict[str, Any], ...] = ()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of one kind."""
        return [record for record in self.records if record.get("kind") == kind]

    def held(self) -> tuple[int, int]:
        """Return how many claims held, and how many were made."""
        claims = self.of("claim")
        return sum(1 for claim in claims if claim.get("held")), len(claims)


class Ledger(Struct, frozen=True):
    """The last build: when it was made, with what, and its chapters in the book's order."""

    chapters: tuple[Executed, ...]
    built: datetime | None = None
    torch: str = ""
    commit: str = ""
    python: str = ""
    cpu: str = ""

    def chapter(self, doc: str) -> Executed | None:
        """Return the chapter with this document name, or None."""
        return next((chapter for chapter in self.chapters if chapter.doc == doc), None)


def read_ledger(path: Path) -> Ledger | None:
    """Read the build's ledger.

    :param path: the JSON file that the build writes.
    :return: the ledger, or None if there is no such file.
    :raises BookError: the file is no ledger.
    """
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> Ledger:
    """Read the ledger once for each state of its file: every page asks for it."""
    return completed(decode(Ledger, path, mend="remove it and build again"))


def completed(ledger: Ledger) -> Ledger:
    """Return a ledger whose chapters have what they leave out from the build."""
    common = ("torch", "commit", "python", "cpu")
    chapters = (
        replace(
            one,
            title=(one.title or one.doc).replace("`", ""),
            **{name: getattr(one, name) or getattr(ledger, name) for name in common},
        )
        for one in ledger.chapters
    )
    return replace(ledger, chapters=tuple(chapters))


def commit_url(commit: str) -> str:
    """Return the address of a commit of PyTorch, or the empty string for none."""
    return f"{PYTORCH}/commit/{commit}" if commit else ""
