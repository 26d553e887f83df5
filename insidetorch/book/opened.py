"""Which of the book's files a kernel's process opened to read: a check of what its key covers.

The kernel notes them in a file while it runs; the build compares them with what the chapter
reaches. Processes that a chapter starts are not covered, nor files that other than Python opens.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

import insidetorch

LOG = "INSIDETORCH_OPENED"
"""Variable with the file that a kernel writes."""
BOOK = "INSIDETORCH_BOOK"
"""Variable with the book's folder."""
_APART = frozenset({".git", ".venv", "_build", "site-packages", "dist-packages"})
_WRITES = os.O_WRONLY | os.O_RDWR


def note() -> None:
    """Note, from now on, each file of the book or the toolkit that this process opens to read.

    Files that the process itself wrote before are left out. Without `LOG` nothing is noted.
    """
    log, book = os.environ.pop(LOG, ""), os.environ.pop(BOOK, "")
    if not log or not book:
        return
    folders = tuple(f"{folder}{os.sep}" for folder in (book, Path(insidetorch.__file__).parent))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    seen: set[str] = set()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes):
            return
        # An error here would be the error of whoever opens the file.
        with suppress(OSError, ValueError):
            path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100
            if path in seen or not path.startswith(folders):
                return
            written = arguments[2] & _WRITES
            if written or os.path.isfile(path):  # noqa: PTH113
                seen.add(path)
            below = next(path[len(folder) :] for folder in folders if path.startswith(folder))
            if path in seen and not written and _APART.isdisjoint(Path(below).parts):
                os.write(out, os.fsencode(path) + b"\0")

    sys.addaudithook(hook)


def read(log: Path) -> frozenset[Path]:
    """Return the files that a kernel noted; of compiled modules, the source."""
    names = log.read_bytes().split(b"\0") if log.is_file() else []
    paths = [Path(os.fsdecode(name)) for name in names if name]
    return frozenset(
        Path(source_from_cache(path)) if path.parent.name == "__pycache__" else path
        for path in paths
    )
