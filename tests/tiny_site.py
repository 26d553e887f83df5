"""Small sites made for a test with Sphinx and the book's own extension."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

Build = Callable[..., tuple[list[str], dict[str, BeautifulSoup]]]


def build_site(
    folder: Path, files: Mapping[str, str], **changed: str
) -> tuple[list[str], dict[str, BeautifulSoup]]:
    """Build `files`, some of them `changed`, in `folder`; return the warnings and the pages."""
    for name, text in {**files, **changed}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    out, warnings = folder / "_build", io.StringIO()
    with docutils_namespace():
        app = Sphinx(folder, folder, out, out / "doctrees", "html", status=None, warning=warnings)
        app.build()
    pages = {p.stem: BeautifulSoup(p.read_text(), "html.parser") for p in out.rglob("*.html")}
    said = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()).strip()
    return said.splitlines() if said else [], pages
