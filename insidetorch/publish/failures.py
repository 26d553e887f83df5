"""Why chapters failed, in sentences, which are written down until a build has said them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from insidetorch.book.project import Chapter
from insidetorch.book.runs import Failure
from insidetorch.files import write

_OWN = frozenset({"Timeout", "DeadKernel", "NoKernel", "TooMuch", "Undeclared"})


def where(chapter: Chapter, cell: int) -> str:
    """Return the place of a code cell, by its number from 1."""
    return f"{chapter.doc}.md:{chapter.code_lines[cell - 1]} (code cell {cell})"


def why(chapter: Chapter, failure: Failure) -> str:
    """Return where and why a chapter failed."""
    place = where(chapter, failure.cell) if failure.cell else f"{chapter.doc}.md"
    said = failure.message if failure.name in _OWN else f"{failure.name}: {failure.message}"
    claim = f" — claim: “{failure.claim}”" if failure.claim else ""
    return f"{place}: {said}{claim}"


@dataclass(frozen=True)
class Unsaid:
    """The failures of a build that has not said them yet, in a file."""

    path: Path

    def add(self, chapter: Chapter, failure: Failure) -> None:
        """Write one down."""
        line = " ".join(why(chapter, failure).split())
        write(self.path, "".join(f"{one}\n" for one in [*self._lines(), line]))

    def say(self, console: Console) -> None:
        """Say those of a build that was ended, and forget them."""
        for line in self._lines():
            console.print(f"  when the last build was ended: {line}", markup=False, soft_wrap=True)
        self.forget()

    def forget(self) -> None:
        """Forget what was written down."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
