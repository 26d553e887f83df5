"""What the execution of a chapter hands to the rest of the build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from insidetorch.book.project import Chapter


@dataclass(frozen=True)
class Failure:
    """Why a chapter failed.

    :param cell: number of the code cell, from 1; None when no cell is to blame.
    :param line: line of the chapter's file where that cell starts.
    :param name: class of the error.
    :param message: what it says.
    :param claim: the sentence that did not hold, if the cell stated one.
    """

    cell: int | None
    line: int | None
    name: str
    message: str
    claim: str | None = None


@dataclass(frozen=True)
class Run:
    """What came of one execution.

    :param notebook: the notebook with its outputs, up to the failure if there was one.
    :param seconds: wall time, with the kernel's start.
    :param cell_seconds: wall time of each code cell that ran.
    :param opened: the book's files that the kernel's process opened to read.
    """

    chapter: Chapter
    notebook: dict[str, Any]
    seconds: float
    cell_seconds: tuple[float, ...]
    failure: Failure | None
    opened: frozenset[Path] = frozenset()


class Watcher(Protocol):
    """What wants to know how the execution goes."""

    def started(self, chapter: Chapter) -> None: ...
    def cell(self, chapter: Chapter, number: int) -> None: ...
    def finished(self, run: Run) -> None: ...
