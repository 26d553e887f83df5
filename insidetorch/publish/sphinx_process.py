"""The process that runs `jupyter-book build`: loaded early, at work when it is told how.

Usage: ``python -m insidetorch.publish.sphinx_process PARENT_PID EXTENSION…``. It loads Sphinx and
these extensions while the chapters are executed, then reads lines from stdin: JSON, the number of
a request and the arguments of jupyter-book. Each is answered by a line on stdout: the same number,
the exit status, and what was written to stderr. A request is served by a copy of this process, so
that none sees what another left behind.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from insidetorch.run.die_with_parent import die_with_parent
from insidetorch.run.entry import spare_grammar

_MODULES = (
    "jupyter_book.sphinx", "myst_nb.sphinx_", "myst_nb.sphinx_ext", "sphinx.builders.html",
    "sphinx.jinja2glue", "sphinx_book_theme", "sphinx_external_toc.collectors",
    "sphinx_togglebutton", "sphinx_copybutton", "sphinx_thebe", "sphinx_comments",
    "sphinx_multitoc_numbering", "sphinx_design.extension", "sphinx_jupyterbook_latex.events",
    "sphinxcontrib.bibtex", "pybtex.style.formatting.alpha", "a11y_pygments",
)  # fmt: skip
_EXECUTORS = {
    "myst_nb.core.execute.cache": "NotebookClientCache",
    "myst_nb.core.execute.direct": "NotebookClientDirect",
}


def main() -> None:
    """Load, wait, serve; without a line on stdin, do nothing."""
    die_with_parent(int(sys.argv[1]))
    spare_grammar()
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name, member in _EXECUTORS.items():
        # Nothing is executed here, and what would do it loads a database first.
        module: Any = ModuleType(name)
        setattr(module, member, None)
        sys.modules[name] = module
    from jupyter_book.cli.main import main as jupyter_book
    from sphinx.application import builtin_extensions

    for name in (*builtin_extensions, *_MODULES, *sys.argv[2:]):
        with suppress(Exception):  # Sphinx says what it lacks
            import_module(name)
    # What is loaded stays; documents are many objects, and looking through them often is slow.
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 1000)
    for line in sys.stdin:
        server = os.getpid()
        copy = os.fork()
        if copy == 0:
            die_with_parent(server)
            _answer(answers, line, jupyter_book)
            os._exit(0)
        _, status = os.waitpid(copy, 0)
        if status:
            sys.exit(f"the process that renders ended with status {status}")


def _answer(answers: int, line: str, jupyter_book: Callable[[Sequence[str]], object]) -> None:
    number, arguments = json.loads(line)
    status: object = 0
    said = sys.stderr = io.StringIO()
    try:
        jupyter_book(arguments)
    except SystemExit as error:
        status = error.code
    except BaseException:
        status = 1
        traceback.print_exc()
    # Extensions may have started processes that end with this one, when they are told.
    atexit._run_exitfuncs()
    code = status if isinstance(status, int) else int(status is not None)
    with os.fdopen(answers, "w", encoding="utf-8") as file:
        file.write(json.dumps([number, code, said.getvalue()]) + "\n")


if __name__ == "__main__":
    main()
