"""Building again whenever a file of the book changes, with Sphinx loaded once."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

import insidetorch
from insidetorch.book.project import open_project
from insidetorch.errors import BookError
from insidetorch.publish.pipeline import Options, build_book
from insidetorch.publish.render import SphinxProcess

SECONDS = 0.3
"""How often the files are looked at; what changes within that time is one edit."""
_APART = frozenset({"_build", "__pycache__", "node_modules", "tests"})

Files = dict[str, tuple[int, int]]


def watch(root: Path, options: Options, console: Console) -> None:
    """Build the book, and again after each edit, until Ctrl-C.

    Each build is done by a copy of this process, which has seen nothing of the builds before. An
    edit of the toolkit starts everything anew.

    :raises BookError: there is no book in the folder `root`.
    """
    toolkit = Path(insidetorch.__file__).resolve().parent
    folders = {root.resolve(), toolkit}

    def look() -> Files:
        return {name: state for folder in folders for name, state in seen(folder).items()}

    sphinx = SphinxProcess(open_project(root))
    try:
        while True:
            before = look()
            sphinx.start()
            _in_copy(partial(_build, root, options, console, sphinx))
            options = replace(options, force=False)
            console.print("Waiting for an edit; Ctrl-C ends.", style="dim")
            try:
                changed = wait(look, before)
            except KeyboardInterrupt:
                return
            console.print(f"\n{_few(changed)} changed", highlight=False)
            if any(Path(name).is_relative_to(toolkit) for name in changed):
                sphinx.close()
                os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
            if not sphinx.alive():
                sphinx.close()
    finally:
        sphinx.close()


def seen(folder: Path) -> Files:
    """Return the files below a folder with their times and sizes, apart from what is made."""
    found = {}
    for entry in _files(folder):
        with suppress(OSError):  # it was removed meanwhile
            state = entry.stat()
            found[entry.path] = (state.st_mtime_ns, state.st_size)
    return found


def wait(look: Callable[[], Files], before: Files, seconds: float = SECONDS) -> list[str]:
    """Wait for an edit that lasts; return the names of the files that it changed.

    :param look: returns what is there now.
    :param before: what was there.
    :param seconds: the time between two looks.
    """
    last = before
    while True:
        time.sleep(seconds)
        now = look()
        if now == last and now != before:
            return sorted(n for n in {*now, *before} if now.get(n) != before.get(n))
        last = now


def _files(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # it was removed meanwhile
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _APART:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.is_file():
            yield entry


def _build(root: Path, options: Options, console: Console, sphinx: SphinxProcess) -> int:
    try:
        return build_book(open_project(root), options, console, sphinx)
    except BookError as error:
        console.print(f"Error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1


def _in_copy(work: Callable[[], int]) -> None:
    """Do something in a copy of this process, and wait for its end."""
    copy = os.fork()
    if copy == 0:
        status = 1
        try:
            status = work()
        except KeyboardInterrupt:
            status = 130
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    try:
        os.waitpid(copy, 0)
    except KeyboardInterrupt:
        _end(copy)
        raise


def _end(copy: int) -> None:
    """Wait for a build that Ctrl-C reached as well; one that was not told is ended."""
    for _ in range(50):
        if os.waitpid(copy, os.WNOHANG)[0]:
            return
        time.sleep(0.1)
    os.kill(copy, signal.SIGTERM)
    os.waitpid(copy, 0)


def _few(changed: list[str]) -> str:
    names = [Path(name).name for name in changed]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
