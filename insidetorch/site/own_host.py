"""Keeps pages on their own host, and free of scripts and styles that they do not need."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.display import strip_style

_UNWANTED = ("sphinx-thebe.js", "unpkg.com", "cdn.jsdelivr.net", "cdnjs.cloudflare.com")
_SCRIPT = r'<script[^>]*\bsrc="[^"]*{}[^"]*"[^>]*>\s*</script>'
_ICONS = re.compile(_SCRIPT.format(r"fontawesome\.js"))


def drop_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Take scripts that talk to other hosts off a page (``html-page-context``)."""
    context["script_files"] = [
        script for script in context["script_files"] if not _talks_to_others(script)
    ]


def add_file(app: Sphinx, package: str, name: str, new_name: str = "") -> None:
    """Put a file of a package into the site's static files, maybe under another name."""
    if app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        static.mkdir(parents=True, exist_ok=True)
        text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
        (static / (new_name or name)).write_text(text, encoding="utf-8")


def raw_html(doctree: nodes.document, mark: str) -> list[nodes.raw]:
    """Return the HTML of a page's outputs that holds `mark`."""
    return [
        node
        for node in doctree.findall(nodes.raw)
        if "html" in node.get("format", "").split() and mark in node.astext()
    ]


def rewrite(node: nodes.raw, text: str) -> None:
    """Put other HTML into the place of an output's."""
    node.rawsource = text
    node.children = [nodes.Text(text)]


def add_filters(app: Sphinx) -> None:
    """Give the templates ``without_icon_script`` (``builder-inited``).

    The theme's icons come as web fonts and again as a script of half a megabyte that replaces
    them by drawings; the fonts are enough.
    """
    templates = getattr(app.builder, "templates", None)
    if templates is not None:
        templates.environment.filters["without_icon_script"] = without_icon_script


def without_icon_script(html: str) -> str:
    """Return a page's head without the script that draws the icons a second time."""
    return _ICONS.sub("", str(html))


def strip_styles(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Take the inline style sheet off every output (``doctree-resolved``); the site links it."""
    for node in raw_html(doctree, "<style data-insidetorch>"):
        rewrite(node, strip_style(node.astext()))


def _talks_to_others(script: Any) -> bool:
    source = str(getattr(script, "filename", script) or "")
    body = str(getattr(script, "attributes", {}).get("body") or "")
    return any(word in source or word in body for word in _UNWANTED)
