"""The glossary: terms, the sections that show them, and the pages that use them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.std import make_glossary_term
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch.decode import Words, Written, decode
from insidetorch.display import code_apart
from insidetorch.errors import BookError
from insidetorch.site import lists
from insidetorch.site.part import PageContext, Part, generated_part, raw
from insidetorch.site.places import in_order, linked

logger = logging.getLogger(__name__)

FILE = "book/glossary.yml"
_USES = "insidetorch_terms"


class Entry(Written, frozen=True):
    """A term that the book explains.

    :param term: its usual form; a name of the source may stand in backticks.
    :param says: what it means, in Markdown.
    :param shown: the label of the section that shows it.
    :param also: other forms that lead to the same entry.
    """

    term: Words
    says: Words
    shown: Words
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All its forms, without backticks."""
        return tuple(name.replace("`", "") for name in (self.term, *self.also))


def read_glossary(path: Path) -> list[Entry]:
    """Read the glossary, sorted.

    :raises BookError: the file is missing, an entry is malformed, or two entries share a term;
        the message names it.
    """
    entries = decode(list[Entry], path)
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
        PART.note(self.env)
        try:
            entries = read_glossary(Path(self.env.srcdir) / FILE)
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
        nav = lists.contents(((f"#{anchor}", first) for first, anchor in letters), "Letters")
        return [raw(nav + lists.form(".it-glossary > dd", len(entries))), *found]

    def _item(self, entry: Entry) -> nodes.definition_list_item:
        source, line = self.get_source_info()
        item = nodes.definition_list_item()
        for name in (entry.term, *entry.also):
            item += make_glossary_term(
                self.env, _marked(name), None, source, line, None, self.state.document
            )
        body = nodes.definition()
        body += self.parse_text_to_nodes(entry.says)
        body += generated_part(kind=self.name, about={"entry": entry})
        item += body
        return item


def register(app: Sphinx) -> None:
    """Add the glossary to the book's extension."""
    app.connect("doctree-read", _note_uses)
    app.connect("doctree-resolved", _set_code)


def links(shown: tuple[str, str] | None, uses: Iterable[tuple[str, str]]) -> str:
    """Return the line below a term as HTML.

    :param shown: address and title of the section that shows it.
    :param uses: address and title of each page that uses it.
    """
    parts = []
    if shown:
        parts.append(f"Shown in {linked(*shown)}.")
    used = ", ".join(linked(*use) for use in uses)
    if used:
        parts.append(f"Used in {used}.")
    return f'<p class="it-seen">{" ".join(parts)}</p>' if parts else ""


def _marked(name: str) -> list[nodes.Node]:
    """Return a term as nodes; what stands in backticks is code."""
    pieces = enumerate(code_apart(name))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in pieces if p]


def _set_code(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Set links to terms that are names of the source as code."""
    terms = [n for n in doctree.findall(nodes.inline) if "std-term" in n.get("classes", ())]
    path = Path(app.srcdir) / FILE
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


def below_term(page: PageContext, entry: Entry) -> str:
    """Return the links below a term; complain if the label of its section is nowhere."""
    place = page.places.find(entry.shown)
    if place is None:
        page.complain(
            f"{FILE}: {entry.term!r} is shown at {entry.shown!r}, which is no label of the book; "
            "mend the entry."
        )
        return links(None, _uses(page, entry))
    shown = (page.link(place.doc, place.anchor), f"{place.page}, {place.section}")
    return links(shown, _uses(page, entry))


def _uses(page: PageContext, entry: Entry) -> list[tuple[str, str]]:
    """Return the pages that link to a term, in the book's order."""
    names = {name.lower() for name in entry.names}
    found = []
    for doc in in_order(page.app.env):
        uses = page.app.env.metadata.get(doc, {}).get(_USES, {})
        anchor = next((anchor for term, anchor in uses.items() if term in names), None)
        if anchor is not None and doc != page.doc:
            found.append((page.link(doc, anchor), page.titles[doc]))
    return found


PART = Part(below_term, (FILE,), _Glossary)
