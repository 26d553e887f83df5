"""What must not outlive a build: processes that its cells left, its temporary folder and files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from insidetorch.book.project import Project
from insidetorch.files import PARTS, write

KERNEL = "INSIDETORCH_KERNEL"
"""The variable that names a kernel, and so marks whatever its cells start."""
_PREFIX = "it-"


def below(pid: int) -> list[Any]:
    """Return the processes that a process started, and those that these did."""
    with suppress(psutil.Error):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def end(mark: str, known: Iterable[Any] = ()) -> None:
    """Kill what the cells of a kernel left running, detached or not.

    :param mark: how the value of `KERNEL` begins in their environment.
    :param known: further processes.
    """
    # What is killed may just have started another.
    for _ in range(3):
        found = [*known, *_marked(mark)]
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        known = ()
        if not found:
            return


def _marked(mark: str) -> Iterator[Any]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(KERNEL, "").startswith(mark):
                yield process


@contextmanager
def short_folder(project: Project) -> Iterator[Path]:
    """Make a temporary folder whose path is short, as those of sockets must be.

    It is noted below the build, so that the next one can remove it if this one is killed.
    """
    note = _note(project)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        write(note, folder)
        try:
            yield Path(folder)
        finally:
            note.unlink(missing_ok=True)


def sweep(project: Project) -> None:
    """Remove what a build left that was killed: processes of its cells, folders, files."""
    note = _note(project)
    folder = Path(note.read_text(encoding="utf-8")) if note.is_file() else None
    if folder is not None and folder.match(f"{tempfile.gettempdir()}/{_PREFIX}*"):
        end(str(folder))
        shutil.rmtree(folder, ignore_errors=True)
    for place in (project.build, project.cache, *project.cache.glob("executed/*")):
        for part in place.glob(PARTS):
            part.unlink(missing_ok=True)
    for scratch in project.cache.glob(f"{_PREFIX}*"):
        shutil.rmtree(scratch, ignore_errors=True)
    note.unlink(missing_ok=True)


def _note(project: Project) -> Path:
    return project.build / "sockets"
