"""Ways back to the book's authors: the repository, and a report that is written already."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.book.address import Address
from insidetorch.display import escape
from insidetorch.site import own_host
from insidetorch.site.book_ledger import Executed, read_ledger
from insidetorch.site.part import PageContext
from insidetorch.site.places import linked

_CHECKED = re.compile(
    r'<div[^>]* class="it it-(?:claim|verdict)[^>]*>.*?(?:<blockquote>)?<p>(?P<said>.*?)</p>'
    r".*?(?P<end></details>|\Z)",
    re.DOTALL,
)
_LABEL = re.compile(r'<p class="it-label">.*?</p>', re.DOTALL)


def register(app: Sphinx) -> None:
    """Add a report to each claim and verdict of a chapter."""
    app.connect("doctree-resolved", _add)


def link(address: Address, chapter: Executed, sentence: str) -> str:
    """Return the link that reports a sentence, "" where the book's repository is not known."""
    where = f"{address.site}/{chapter.doc}.html" if address.site else chapter.doc
    body = (
        f"In {chapter.title} ({where}):\n> {sentence}\n\nThe book ran on torch {chapter.torch}, "
        f"Python {chapter.python}, {chapter.cpu}.\nI ran on: \nI saw: "
    )
    goal = address.report(f"{chapter.title}: {sentence[:60]}", body)
    return f'<a class="it-report" href="{escape(goal)}">Report this</a>' if goal else ""


def reported(html: str, address: Address, chapter: Executed) -> str:
    """Return the output of a check with its report: where its code ends, or at its own end."""
    found = _CHECKED.search(_LABEL.sub("", html))
    if not found:
        return html
    fault = link(address, chapter, unescape(re.sub(r"<[^>]*>", "", found["said"])))
    before, end, after = html.rpartition("</details>")
    return f"{before}{fault}{end}{after}" if end else f"{html}{fault}"


def ways(page: PageContext) -> str:
    """Return where the book's source is, and where faults are told."""
    home, goal = page.address.repository, page.address.report("", "")
    if not home:
        return (
            "<p>This copy of the book was built without the address of a repository: tell faults "
            "to whoever gave it to you.</p>"
        )
    return (
        f"<p>The source of the book is at {linked(home, page.address.name)}. "
        f"{linked(goal, 'Report a fault')} there; below each claim and verdict stands a report of "
        "that sentence, written already.</p>"
    )


def _add(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    address = Address(**app.config.insidetorch_address)
    ledger = read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)
    chapter = ledger.chapter(docname) if ledger else None
    if chapter is None or app.builder.format != "html" or not address.repository:
        return
    for mark in ("it-claim", "it-verdict"):
        for node in own_host.raw_html(doctree, f'class="it {mark}'):
            own_host.rewrite(node, reported(node.astext(), address, chapter))
