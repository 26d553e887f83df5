"""Building again whenever a file of the book changes, with Sphinx loaded once."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

import insidetorch
from insidetorch.book.project import open_project
from insidetorch.errors import BookError
from insidetorch.files import MADE, states
from insidetorch.publish.pipeline import Options, build_book
from insidetorch.publish.render import SphinxProcess

SECONDS = 0.3
"""How often the files are looked at; what changes within that time is one edit."""
_APART = MADE | {"tests"}

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
        return {name: state for folder in folders for name, state in states(folder, _APART).items()}

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
