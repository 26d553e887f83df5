"""The reading list in Sphinx: its two pages, the anchors of verdicts, and the coverage check."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from insidetorch.claims import Verdict, read_verdicts
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
from insidetorch.site.part import PageContext
from insidetorch.site.parts import NO_LEDGER

logger = logging.getLogger(__name__)

BIBLIOGRAPHY, SUBJECTS, VERDICTS = "book/references.bib", "book/subjects.yml", "book/verdicts.yml"
FILES = (BIBLIOGRAPHY, SUBJECTS, VERDICTS)
LIST_PAGE, VERDICT_PAGE = "book/references", "book/verdicts"


def register(app: Sphinx) -> None:
    """Add the reading list to the book's extension."""
    app.connect("env-check-consistency", _check)
    app.connect("doctree-resolved", _anchor_verdicts)
    app.connect("doctree-resolved", _drop_citations)


def listed(page: PageContext) -> str:
    """Return the list."""
    entries = read_references(page.source / BIBLIOGRAPHY)
    subjects = read_subjects(page.source / SUBJECTS)
    given = read_verdicts(page.source / VERDICTS)
    states = states_of(entries, subjects, given, page.app.env.found_docs, page.ledger)
    return references.page(
        [one for one in entries if one.id in states],
        subjects,
        states,
        lambda doc: (page.link(doc), page.titles[doc]),
        page.link(VERDICT_PAGE, verdicts.anchor("")),
    )


def settled(page: PageContext) -> str:
    """Return the verdicts that cells gave."""
    found = _settled(page)
    if found is None:
        return NO_LEDGER
    return verdicts.page(found, page.drift.results, page.link, page.link(LIST_PAGE), page.address)


def survival(page: PageContext) -> str:
    """Return the figure of the verdicts by year."""
    found = _settled(page)
    return NO_LEDGER if found is None else verdicts.survival(found)


def _settled(page: PageContext) -> list[verdicts.Settled] | None:
    given = read_verdicts(page.source / VERDICTS)
    return verdicts.settled(given, page.ledger) if page.ledger else None


def states_of(
    listed: list[Reference],
    subjects: list[Subject],
    given: list[Verdict],
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
            on.setdefault(source.ref or "", {})[verdict.id] = verdict.chapter
    found = {one.id: state(one, known, docs, on.get(one.id, {})) for one in listed}
    return {id: one for id, one in found.items() if one is not None}


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    """Complain of what does not fit together."""
    source = Path(app.srcdir)
    if not (source / BIBLIOGRAPHY).is_file():
        return
    try:
        found = coverage.problems(
            read_references(source / BIBLIOGRAPHY),
            read_subjects(source / SUBJECTS),
            read_verdicts(source / VERDICTS),
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


def _drop_citations(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Take the entries that citations lead to away: the list itself has them, with the same ids."""
    if docname == LIST_PAGE:
        for node in list(doctree.findall(nodes.citation)):
            node.parent.remove(node)
