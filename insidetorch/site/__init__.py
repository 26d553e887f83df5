"""The book's Sphinx extension: stamps, generated parts, formulas, nothing from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from textwrap import shorten
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch import facts
from insidetorch.book.address import Address
from insidetorch.display import escape
from insidetorch.site import (
    architecture,
    changes,
    chapter,
    excerpt_links,
    glossary,
    mathml,
    own_host,
    parts,
    reading_list,
    source_map,
    still_true,
)
from insidetorch.site.book_ledger import Ledger, read_ledger
from insidetorch.site.places import GENERATED, Places, in_order
from insidetorch.site.questions import answered, read_questions
from insidetorch.site.stamp import stamp

__all__ = ["setup"]

logger = logging.getLogger(__name__)

_PARTS = ("verified", "colophon", "source-map", "questions")
_QUESTIONS = "book/questions.yml"
_STYLE = "insidetorch.css"


class generated_part(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils is untyped
    """Stands for a generated part until the page is written."""


class GeneratedPart(SphinxDirective):
    """Place a part that is made from the ledger or from the installed torch."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname][GENERATED] = True
        if self.name == "questions":
            self.env.note_dependency(_QUESTIONS)
        return [generated_part(kind=self.name)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_config_value("insidetorch_ledger", "../ledger.json", "env", (str,))
    app.add_config_value("insidetorch_address", {}, "env", (dict,))
    app.add_node(generated_part)
    for name in _PARTS:
        app.add_directive(name, GeneratedPart)
    still_true.register(app)
    changes.register(app)
    glossary.register(app)
    excerpt_links.register(app)
    chapter.register(app)
    architecture.register(app)
    reading_list.register(app)
    app.add_html_math_renderer("mathml", (mathml.visit_inline, None), (mathml.visit_block, None))
    app.add_css_file(_STYLE)
    app.connect("config-inited", _own_templates)
    app.connect("builder-inited", _write_style)
    app.connect("builder-inited", own_host.add_filters)
    app.connect("env-get-outdated", _outdated)
    app.connect("env-before-read-docs", _read_again)
    app.connect("doctree-resolved", own_host.strip_styles)
    app.connect("doctree-resolved", _fill)
    app.connect("html-page-context", own_host.drop_scripts, priority=900)
    app.connect("html-page-context", _describe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _own_templates(app: Sphinx, config: Any) -> None:
    config.templates_path.append(str(Path(__file__).parent / "templates"))


def _write_style(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch", "display.css", _STYLE)


def _ledger(app: Sphinx) -> Ledger | None:
    return read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)


def _outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Name the pages whose stamp or generated part is no longer what the ledger says."""
    ledger = _ledger(app)
    before: dict[str, str] = getattr(env, "insidetorch_digests", {})
    now = {
        doc: _digest(ledger if env.metadata.get(doc, {}).get(GENERATED) else _of(ledger, doc))
        for doc in env.found_docs
    }
    env.insidetorch_digests = now  # type: ignore[attr-defined]
    return [doc for doc, digest in now.items() if before.get(doc, digest) != digest]


def _read_again(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Let the generated pages be made anew when any other is: they show titles and uses of it."""
    if docnames:
        docnames += [
            doc
            for doc, known in env.metadata.items()
            if known.get(GENERATED) and doc not in docnames and doc in env.found_docs
        ]


def _of(ledger: Ledger | None, doc: str) -> object:
    return ledger.chapter(doc) if ledger else None


def _digest(value: object) -> str:
    torch = facts.torch_facts()
    return hashlib.sha256(f"{value!r} {torch!r}".encode()).hexdigest()


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the stamp and the generated parts into a page that is about to be written."""
    if app.builder.format != "html":
        return
    ledger = _ledger(app)

    def link(doc: str) -> str:
        return app.builder.get_relative_uri(docname, doc)

    for node in list(doctree.findall(generated_part)):
        if node["kind"] == "questions":
            html = _questions(app, node, link)
        else:
            html = _part(node["kind"], ledger, link)
        node.replace_self(_raw(html))
    chapter = ledger.chapter(docname) if ledger else None
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is not None and (chapter is not None or docname.startswith("notebooks/")):
        source = f"{docname}{Path(app.env.doc2path(docname)).suffix}"
        download = "../" * docname.count("/") + f"_sources/{source}"
        made = stamp(chapter, docname, download, Address(**app.config.insidetorch_address))
        title.parent.insert(title.parent.index(title) + 1, _raw(made))


def _part(kind: str, ledger: Ledger | None, link: Callable[[str], str]) -> str:
    if kind == "verified":
        return parts.verified(ledger, link)
    if kind == "colophon":
        return parts.colophon(ledger)
    torch = facts.torch_facts()
    if torch is None:
        return "<p class='it'>PyTorch is not installed where this site was built: no map.</p>"
    return source_map.source_map(torch.root, torch.release, ledger, link)


def _questions(app: Sphinx, node: nodes.Node, link: Callable[[str], str]) -> str:
    places = Places(app)
    found = []
    for question in read_questions(Path(app.srcdir) / _QUESTIONS):
        place = places.find(question.anchor)
        if place is None or place.doc != question.chapter:
            logger.warning(
                "%s: %s has no label %r, which should answer %r; mend the entry.",
                _QUESTIONS, question.chapter, question.anchor, question.question, location=node,
            )  # fmt: skip
        else:
            found.append((question, place))
    return answered(found, in_order(app.env), link)


def _describe(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    """Give a page the description that search engines show: its first paragraph."""
    first = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
    if first is not None:
        text = shorten(" ".join(first.astext().split()), 160, placeholder=" …")
        context["metatags"] += f'<meta name="description" content="{escape(text)}"/>'


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")
