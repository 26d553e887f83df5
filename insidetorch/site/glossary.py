"""The glossary: terms, the sections that show them, and the pages that use them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.std import make_glossary_term
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch.display import escape
from insidetorch.errors import BookError
from insidetorch.site.places import GENERATED, Places, in_order
from insidetorch.site.written import read_list

logger = logging.getLogger(__name__)

SOURCE = "book/glossary.yml"
_WANTED = ("term", "says", "shown")
_USES = "insidetorch_terms"


@dataclass(frozen=True)
class Entry:
    """A term that the book explains.

    :param term: its usual form; a name of the source may stand in backticks.
    :param also: other forms that lead to the same entry.
    :param says: what it means, in Markdown.
    :param shown: the label of the section that shows it.
    """

    term: str
    also: tuple[str, ...]
    says: str
    shown: str

    @property
    def names(self) -> tuple[str, ...]:
        """All its forms, without backticks."""
        return tuple(name.replace("`", "") for name in (self.term, *self.also))


def read_glossary(path: Path) -> list[Entry]:
    """Read the glossary, sorted.

    :raises BookError: the file is missing, an entry is malformed, or two entries share a term;
        the message names it.
    """
    listed = read_list(path, "entries, each with a term")
    entries = [_entry(path.name, number, entry) for number, entry in enumerate(listed, start=1)]
    owners: dict[str, Entry] = {}
    for entry in entries:
        for name in entry.names:
            first = owners.setdefault(name.lower(), entry)
            if first is not entry:
                raise BookError(
                    f"{path.name}: {name!r} is a form of {first.term!r} and of {entry.term!r}; "
                    "keep one entry for it."
                )
    return sorted(entries, key=lambda entry: sort_key(entry.term))


def sort_key(term: str) -> str:
    """Return what a term is sorted by: its letters and digits, whatever their case."""
    return re.sub(r"[\W_]+", "", term).casefold()


def letter(term: str) -> str:
    """Return the letter that a term stands under, ``0–9`` for a digit."""
    first = sort_key(term)[:1]
    return first.upper() if first.isalpha() else "0–9"


class _Glossary(SphinxDirective):
    """Place the glossary: a section for each letter, a definition for each term."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / SOURCE
        self.env.note_dependency(SOURCE)
        self.env.metadata[self.env.docname][GENERATED] = True
        try:
            entries = read_glossary(path)
        except BookError as error:
            logger.warning("%s", error, location=self.get_location())
            return []
        found: list[nodes.Node] = []
        letters = []
        for first, group in groupby(entries, key=lambda entry: letter(entry.term)):
            anchor = nodes.make_id(f"glossary-{first}")
            letters.append((first, anchor))
            section = nodes.section(ids=[anchor], names=[anchor])
            section += nodes.title(first, first)
            terms = nodes.definition_list(classes=["it-glossary"])
            terms += [self._item(entry) for entry in group]
            section += terms
            found.append(section)
        links = " ".join(f'<a href="#{anchor}">{first}</a>' for first, anchor in letters)
        nav = f'<nav class="it-letters" aria-label="Letters">{links}</nav>'
        return [nodes.raw("", nav, format="html"), *found]

    def _item(self, entry: Entry) -> nodes.definition_list_item:
        source, line = self.get_source_info()
        item = nodes.definition_list_item()
        for name in (entry.term, *entry.also):
            item += make_glossary_term(
                self.env, _marked(name), None, source, line, None, self.state.document
            )
        body = nodes.definition()
        body += self.parse_text_to_nodes(entry.says)
        body += term_links(term=entry.term, names=list(entry.names), shown=entry.shown)
        item += body
        return item


class term_links(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils is untyped
    """Stands for the links below a term until the page is written."""


def register(app: Sphinx) -> None:
    """Add the glossary to the book's extension."""
    app.add_node(term_links)
    app.add_directive("book-glossary", _Glossary)
    app.connect("doctree-read", _note_uses)
    app.connect("doctree-resolved", _fill)


def links(shown: tuple[str, str] | None, uses: Iterable[tuple[str, str]]) -> str:
    """Return the line below a term as HTML.

    :param shown: address and title of the section that shows it.
    :param uses: address and title of each page that uses it.
    """
    parts = []
    if shown:
        parts.append(f"Shown in {_link(*shown)}.")
    used = ", ".join(_link(*use) for use in uses)
    if used:
        parts.append(f"Used in {used}.")
    return f'<p class="it-seen">{" ".join(parts)}</p>' if parts else ""


def _entry(file: str, number: int, given: Any) -> Entry:
    wanted = "it needs a term, says and shown, and may have a list of other forms, also"
    if not isinstance(given, dict):
        raise BookError(f"{file}: entry {number} is no mapping; {wanted}.")
    also = given.get("also") or []
    problems = [f"lacks {name!r}" for name in _WANTED if not str(given.get(name) or "").strip()]
    problems += [f"has {name!r}" for name in given if name not in (*_WANTED, "also")]
    if not isinstance(also, list):
        problems.append("has an 'also' that is no list")
    if problems:
        name = given.get("term") or "no term"
        raise BookError(f"{file}: entry {number} ({name}) {problems[0]}; {wanted}.")
    return Entry(
        str(given["term"]).strip(), tuple(map(str, also)), str(given["says"]), str(given["shown"])
    )


def _marked(name: str) -> list[nodes.Node]:
    """Return a term as nodes; what stands in backticks is code."""
    pieces = enumerate(name.split("`"))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in pieces if p]


def _set_code(app: Sphinx, doctree: nodes.document) -> None:
    """Set links to terms that are names of the source as code."""
    terms = [n for n in doctree.findall(nodes.inline) if "std-term" in n.get("classes", ())]
    path = Path(app.srcdir) / SOURCE
    if not terms or not path.is_file():
        return
    code = _code_names(path, path.stat().st_mtime_ns)
    for node in terms:
        if node.astext() in code:
            node.children = [nodes.literal(node.astext(), node.astext())]


@cache
def _code_names(path: Path, changed: int) -> frozenset[str]:
    try:
        entries = read_glossary(path)
    except BookError:
        return frozenset()  # the glossary's own page says what is wrong
    forms = [name for entry in entries for name in (entry.term, *entry.also)]
    return frozenset(name.strip("`") for name in forms if name.startswith("`"))


def _note_uses(app: Sphinx, doctree: nodes.document) -> None:
    """Note which terms a page uses, each with the section of its first use."""
    uses: dict[str, str] = {}
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("reftype") == "term":
            section = node.parent
            while section is not None and not isinstance(section, nodes.section):
                section = section.parent
            ids = section["ids"] if section is not None else [""]
            uses.setdefault(str(node["reftarget"]).lower(), ids[0])
    app.env.metadata[app.env.docname][_USES] = uses


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the links below the terms, and complain of labels that are nowhere."""
    if app.builder.format != "html":
        return
    _set_code(app, doctree)
    places = Places(app)
    for node in list(doctree.findall(term_links)):
        place = places.find(node["shown"])
        if place is None:
            logger.warning(
                "%s: %r is shown at %r, which is no label of the book; mend the entry.",
                SOURCE, node["term"], node["shown"], location=node,
            )  # fmt: skip
            shown = None
        else:
            address = _to(app, docname, place.doc, place.anchor)
            shown = (address, f"{place.page}, {place.section}")
        node.replace_self(nodes.raw("", links(shown, _uses(app, node, docname)), format="html"))


def _uses(app: Sphinx, node: nodes.Element, docname: str) -> list[tuple[str, str]]:
    """Return the pages that link to a term, in the book's order."""
    names = {name.lower() for name in node["names"]}
    found = []
    for doc in in_order(app.env):
        uses = app.env.metadata.get(doc, {}).get(_USES, {})
        anchors = [anchor for term, anchor in uses.items() if term in names]
        if anchors and doc != docname:
            found.append((_to(app, docname, doc, anchors[0]), app.env.titles[doc].astext()))
    return found


def _to(app: Sphinx, here: str, doc: str, anchor: str) -> str:
    return app.builder.get_relative_uri(here, doc) + (f"#{anchor}" if anchor else "")


def _link(address: str, title: str) -> str:
    return f'<a href="{escape(address)}">{escape(title)}</a>'
