"""What a chapter's page folds and sets apart: code, deeper sections, takeaways.

The marks are plain Markdown, so that the notebook reads well without the site: a quotation that
begins with a bold "Takeaway.", and a heading that begins with "Deeper:".
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.site import own_host

_SCRIPT = "chapter.js"
_SCRIPTED = re.compile(r"\bit-(?:how|setup|deeper|replay|waits)\b")
TAKEAWAY, DEEPER = "Takeaway.", "Deeper:"


def register(app: Sphinx) -> None:
    """Add these to the book's extension."""
    app.connect("builder-inited", _write_script)
    app.connect("doctree-resolved", _mark)
    app.connect("html-page-context", _add_script)


def _mark(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for quotation in doctree.findall(nodes.block_quote):
        if _opens_with(quotation, TAKEAWAY):
            quotation["classes"].append("it-takeaway")
    for section in list(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        if title is not None and title.parent is section and title.astext().startswith(DEEPER):
            _fold(section, title)


def _opens_with(node: nodes.Element, word: str) -> bool:
    """Tell whether a node's first words are `word`, and bold."""
    first = node.next_node(nodes.strong)
    return first is not None and first.astext() == word and node.astext().lstrip().startswith(word)


def _fold(section: nodes.section, title: nodes.title) -> None:
    """Fold a section below its title; its text waits until the page's script parses it."""
    place = section.index(title)
    outer, waits, ends = not _in_folded(section), "<noscript>", "</noscript>"
    section["folded"] = True
    for node in own_host.raw_html(section, waits) if outer else ():
        own_host.rewrite(node, node.astext().replace(waits, "").replace(ends, ""))
    section.insert(place, _raw('<details class="it-deeper"><summary>'))
    section.insert(place + 2, _raw(f"</summary>{waits if outer else ''}"))
    section.append(_raw(f"{ends if outer else ''}</details>"))


def _in_folded(section: nodes.section) -> bool:
    around = section.parent
    while around is not None and not around.get("folded"):
        around = around.parent
    return around is not None


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def _write_script(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch.site", _SCRIPT)


def _add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if _SCRIPTED.search(str(context.get("body") or "")):
        app.add_js_file(_SCRIPT, loading_method="defer")
