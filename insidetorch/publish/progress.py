"""What is seen while the book is built: a line for each chapter, with the time it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from insidetorch.book.project import Chapter
from insidetorch.book.runs import Run, Watcher


class ChapterProgress:
    """Shows the running chapters on a terminal; elsewhere, writes one line for each that ends."""

    def __init__(self, console: Console, then: Watcher) -> None:
        """Show on `console`, and hand every event on to `then`."""
        self._console, self._then = console, then
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("cell {task.completed:.0f} of {task.total:.0f}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress while the block runs."""
        with self._progress:
            yield

    def started(self, chapter: Chapter) -> None:
        self._bars[chapter.doc] = self._progress.add_task(
            chapter.doc, total=len(chapter.code_cells)
        )
        self._then.started(chapter)

    def cell(self, chapter: Chapter, number: int) -> None:
        self._progress.update(self._bars[chapter.doc], completed=number)
        self._then.cell(chapter, number)

    def finished(self, run: Run) -> None:
        self._progress.remove_task(self._bars.pop(run.chapter.doc))
        word = "[red]failed[/]  " if run.failure else "executed"
        line = f"  {word} {run.chapter.doc}  [dim]{run.seconds:.1f} s[/]"
        self._console.print(line, highlight=False, soft_wrap=True)
        self._then.finished(run)


def say_failures(console: Console, problems: Sequence[str]) -> None:
    """Write the problems of a build, one paragraph each."""
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    console.print(f"[red]The book was not built: {count}.[/]", highlight=False)
    for problem in problems:
        console.print(f"- {problem}", markup=False, highlight=False, soft_wrap=True)
