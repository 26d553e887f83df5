"""The process that runs `jupyter-book build`: loaded early, at work when it is told how.

Usage: ``python -m insidetorch.publish.sphinx_process PARENT_PID``. It loads Sphinx while the
chapters are executed, then reads one line from stdin: a JSON list, the arguments of jupyter-book.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from insidetorch.run.orphans import die_with_parent

_MODULES = (
    "jupyter_book.sphinx",
    "myst_nb.sphinx_",
    "sphinx.builders.html",
    "sphinx_book_theme",
)


def main() -> None:
    """Load, wait, run; without a line on stdin, do nothing."""
    die_with_parent(int(sys.argv[1]))
    from jupyter_book.cli.main import main as jupyter_book

    _load()
    line = sys.stdin.readline()
    if line:
        jupyter_book(json.loads(line))


def _load() -> None:
    """Import what a build of a book imports anyway."""
    for name in _MODULES:
        import_module(name)


if __name__ == "__main__":
    main()
