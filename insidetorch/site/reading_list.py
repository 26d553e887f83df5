"""The reading list in Sphinx: its two pages, the anchors of verdicts, and the coverage check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch.drift import run
from insidetorch.errors import BookError
from insidetorch.site import coverage, own_host, references, verdicts
from insidetorch.site.bibliography import (
    Reference,
    State,
    Subject,
    read_references,
    read_subjects,
    state,
)
from insidetorch.site.book_ledger import Ledger, read_ledger
from insidetorch.site.places import book_folder

logger = logging.getLogger(__name__)

BIBLIOGRAPHY, SUBJECTS, VERDICTS = "book/references.bib", "book/subjects.yml", "book/verdicts.yml"
LIST_PAGE, VERDICT_PAGE = "book/references", "book/verdicts"
_SCRIPT = "filter.js"
_PARTS = ("reading-list", "verdicts", "survival")
_HAS_FILTER = "insidetorch_filter"


class reading_part(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils is untyped
    """Stands for a part made from the reading list until the page is written."""


class _ReadingPart(SphinxDirective):
    """Place a part that is made from the reading list, the verdicts and the ledger."""

    def run(self) -> list[nodes.Node]:
        source = Path(self.env.srcdir)
        files = [source / name for name in (BIBLIOGRAPHY, SUBJECTS, VERDICTS)]
        files += [
            source / self.config.insidetorch_ledger,
            *(book_folder(source) / "data").rglob("*.*"),
        ]
        for file in files:
            if file.is_file():
                self.env.note_dependency(os.path.relpath(file, source))
        if self.name == "reading-list":
            self.env.metadata[self.env.docname][_HAS_FILTER] = True
        return [reading_part(kind=self.name)]


def register(app: Sphinx) -> None:
    """Add the reading list to the book's extension."""
    app.add_node(reading_part)
    for name in _PARTS:
        app.add_directive(name, _ReadingPart)
    app.connect("builder-inited", _write_script)
    app.connect("env-check-consistency", _check)
    app.connect("doctree-resolved", _anchor_verdicts)
    app.connect("doctree-resolved", _fill)
    app.connect("html-page-context", _add_script)


def states_of(
    listed: list[Reference],
    subjects: list[Subject],
    given: list[verdicts.Verdict],
    docs: set[str],
    ledger: Ledger | None,
) -> dict[str, State]:
    """Return the state of each reference that has one, by id.

    A verdict counts once a cell has given it; without a ledger, once its chapter is in the book.
    """
    if ledger is None:
        done = [one for one in given if one.chapter in docs]
    else:
        done = [one.verdict for one in verdicts.settled(given, ledger)]
    known = {subject.id: subject for subject in subjects}
    on: dict[str, dict[str, str]] = {}
    for verdict in done:
        for source in verdict.sources:
            on.setdefault(source.ref, {})[verdict.id] = verdict.chapter
    found = {one.id: state(one, known, docs, on.get(one.id, {})) for one in listed}
    return {id: one for id, one in found.items() if one is not None}


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the parts into a page that is about to be written."""
    parts = list(doctree.findall(reading_part))
    if app.builder.format != "html" or not parts:
        return
    for node in parts:
        try:
            html = _part(app, node["kind"], docname)
        except BookError as error:
            html = ""
            logger.warning("%s", error, location=node)
        node.replace_self(nodes.raw("", html, format="html"))
    # The entries that citations lead to are in the list itself, under the same ids.
    for node in list(doctree.findall(nodes.citation)):
        node.parent.remove(node)


def _part(app: Sphinx, kind: str, docname: str) -> str:
    source = Path(app.srcdir)
    ledger = read_ledger(source / app.config.insidetorch_ledger)
    given = verdicts.read_verdicts(source / VERDICTS)

    def address(doc: str) -> str:
        known = doc in app.env.found_docs
        return str(app.builder.get_relative_uri(docname, doc)) if known else ""

    if kind != "reading-list":
        results = run.stored(book_folder(source) / "data" / "drift")
        return verdicts.part(kind, given, ledger, results, address, address(LIST_PAGE))
    listed, subjects = read_references(source / BIBLIOGRAPHY), read_subjects(source / SUBJECTS)
    states = states_of(listed, subjects, given, app.env.found_docs, ledger)

    def link(doc: str) -> tuple[str, str]:
        return address(doc), app.env.titles[doc].astext()

    whole = [one for one in listed if one.id in states]
    beginning = f"{address(VERDICT_PAGE)}#{verdicts.anchor('')}"
    return references.page(whole, subjects, states, link, beginning)


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    """Complain of what does not fit together."""
    source = Path(app.srcdir)
    if not (source / BIBLIOGRAPHY).is_file():
        return
    try:
        found = coverage.problems(
            read_references(source / BIBLIOGRAPHY),
            read_subjects(source / SUBJECTS),
            verdicts.read_verdicts(source / VERDICTS),
            env.found_docs,
            read_ledger(source / app.config.insidetorch_ledger),
        )
    except BookError as error:
        found = [str(error)]
    for problem in found:
        logger.warning("%s", problem)


def _anchor_verdicts(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give each verdict that a chapter shows an id, so that links lead to its cell."""
    ledger = read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)
    chapter = ledger.chapter(docname) if ledger else None
    if chapter is None or app.builder.format != "html":
        return
    ids = [str(record.get("id")) for record in chapter.of("verdict")]
    for node in own_host.raw_html(doctree, "it-verdict"):
        if ids:
            own_host.rewrite(node, verdicts.anchored(node.astext(), ids))


def _write_script(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch.site", _SCRIPT)


def _add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if app.env.metadata.get(pagename, {}).get(_HAS_FILTER):
        app.add_js_file(_SCRIPT, loading_method="defer")
