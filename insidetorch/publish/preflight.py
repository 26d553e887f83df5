"""What must be there before anything is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from insidetorch.book.project import Chapter, Page, Project
from insidetorch.errors import BookError
from insidetorch.facts import tool, torch_facts

PINS = "requirements.txt"
_PIN = re.compile(r"^torch\s*==\s*([^\s;#+]+)", re.MULTILINE)
_DRAWS = re.compile(r"\b(?:autograd_graph|graph)\(")


def pinned(root: Path) -> str:
    """Return the torch that the book in `root` is pinned to; empty if it is to none."""
    pins = root / PINS
    found = _PIN.search(pins.read_text(encoding="utf-8")) if pins.is_file() else None
    return found[1] if found else ""


def check_torch(project: Project) -> None:
    """Refuse a torch other than the one the book is pinned to.

    :raises BookError: torch is not installed, or not in the pinned version.
    """
    torch = torch_facts()
    if torch is None:
        raise BookError(
            "torch is not installed in this Python; run `make book`, which installs it."
        )
    pin = pinned(project.root)
    if pin and pin != torch.public:
        raise BookError(
            f"torch {torch.release} is installed but {project.root / PINS} pins {pin}; install it "
            "with `make book`, or pass --any-torch to build with the one that is there."
        )


def check_graphviz(pages: Iterable[Page]) -> None:
    """Refuse to start without Graphviz when a page draws with it.

    :raises BookError: ``dot`` is not on PATH and a page needs it.
    """
    page = next((page for page in pages if _draws(page)), None)
    if page is not None and tool("dot") is None:
        raise BookError(
            f"{page.path} draws a graph and Graphviz is missing (no `dot` on PATH); "
            "install the package graphviz of your system."
        )


def _draws(page: Page) -> bool:
    if "{graphviz}" in page.text or "{digraph}" in page.text:
        return True
    return isinstance(page, Chapter) and any(
        _DRAWS.search(cell["source"]) for cell in page.code_cells
    )
