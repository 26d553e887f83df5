"""The book's Sphinx extension: stamps, generated parts, formulas, nothing from elsewhere."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.book.address import Address
from insidetorch.display import escape
from insidetorch.site import (
    architecture,
    bibliography,
    card,
    changes,
    chapter,
    drift_data,
    excerpt_links,
    glossary,
    landing,
    lists,
    mathml,
    outdated,
    own_host,
    part,
    parts,
    questions,
    reading_list,
    report,
    reread,
    search,
    silent,
    source_map,
    still_true,
    strip,
    verdicts,
)
from insidetorch.site.book_ledger import Ledger, read_ledger
from insidetorch.site.part import Part, raw
from insidetorch.site.stamp import stamp

__all__ = ["setup"]

_STYLE = "insidetorch.css"

PARTS = {
    "finding": Part(landing.finding, landing.FILES),
    "live-verdict": Part(landing.live, landing.FILES),
    "picture-of": Part(landing.picture),
    "doors": Part(landing.doors, landing.FILES),
    "chapters": Part(landing.chapters),
    "status": Part(landing.status),
    "ways-back": Part(report.ways),
    "colophon": Part(lambda page: parts.colophon(page.ledger, page.link)),
    "source-map": Part(source_map.html),
    "questions": Part(questions.html, (questions.FILE, questions.SYMPTOMS)),
    "wrong-without-error": Part(silent.html, (silent.FILE,)),
    "architecture": Part(architecture.html, (architecture.FILE,)),
    "book-glossary": glossary.PART,
    "changes": Part(changes.html, (changes.FILE, *drift_data.FILES)),
    "reading-list": Part(reading_list.listed, reading_list.FILES),
    "verdicts": Part(reading_list.settled, (*reading_list.FILES, *drift_data.FILES)),
    "outcomes": Part(lambda page: verdicts.legend()),
    "survival": Part(reading_list.survival, reading_list.FILES),
    "still-true": Part(still_true.html, drift_data.FILES),
    **{name: Part(partial(reread.html, name), drift_data.FILES) for name in reread.PARTS},
}
"""What stands in a page for the directive of each name."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_config_value("insidetorch_ledger", "../ledger.json", "env", (str,))
    app.add_config_value("insidetorch_address", {}, "env", (dict,))
    part.register(app, PARTS)
    changes.register(app)
    glossary.register(app)
    excerpt_links.register(app)
    chapter.register(app)
    card.register(app)
    outdated.register(app)
    reading_list.register(app)
    report.register(app)
    lists.register(app)
    search.register(app)
    strip.register(app)
    still_true.register(app, _ledger)
    app.add_html_math_renderer("mathml", (mathml.visit_inline, None), (mathml.visit_block, None))
    app.add_css_file(_STYLE)
    app.connect("config-inited", bibliography.check)
    app.connect("config-inited", _own_templates)
    app.connect("builder-inited", _write_style)
    app.connect("builder-inited", own_host.add_filters)
    app.connect("doctree-resolved", own_host.strip_styles)
    app.connect("doctree-resolved", _stamp)
    app.connect("html-page-context", own_host.drop_scripts, priority=900)
    app.connect("html-page-context", _describe)
    app.connect("html-page-context", _whole_download, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _own_templates(app: Sphinx, config: Any) -> None:
    config.templates_path.append(str(Path(__file__).parent / "templates"))


def _write_style(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch", "display.css", _STYLE)


def _ledger(app: Sphinx) -> Ledger | None:
    return read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)


def _stamp(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the stamp below the title of a chapter."""
    ledger = _ledger(app)
    chapter = ledger.chapter(docname) if ledger else None
    title = next(iter(doctree.findall(nodes.title)), None)
    known = chapter is not None or docname.startswith("notebooks/")
    if app.builder.format == "html" and title is not None and known:
        suffix = Path(app.env.doc2path(docname)).suffix.replace(".ipynb", ".zip")
        download = "../" * docname.count("/") + f"_sources/{docname}{suffix}"
        made = stamp(chapter, docname, download, Address(**app.config.insidetorch_address))
        title.parent.insert(title.parent.index(title) + 1, raw(made))


def _describe(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    """Give a page the description that search engines show: its first paragraph."""
    first = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
    if first is not None:
        text = shorten(" ".join(first.astext().split()), 160, placeholder=" …")
        context["metatags"] += f'<meta name="description" content="{escape(text)}"/>'


def _whole_download(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    """Make the header's download of a notebook the archive that has the toolkit beside it."""
    for group in context.get("header_buttons", ()):
        for button in group.get("buttons", ()):
            if str(button.get("url", "")).endswith(".ipynb"):
                button["url"] = button["url"].removesuffix(".ipynb") + ".zip"
                button["text"] = "notebook (.zip)"
