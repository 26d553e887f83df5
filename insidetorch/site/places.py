"""Where a label leads: the section it names or stands in, its page, and the order of all pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from insidetorch.display import escape
from insidetorch.drift import lockfile

GENERATED = "insidetorch_parts"
"""In a document's metadata: it shows what other documents or the ledger say, and follows them."""


@dataclass(frozen=True)
class Place:
    """What a label leads to.

    :param doc: the document that has the label.
    :param anchor: the fragment of its address.
    :param page: the title of the document.
    :param section: the title of the section that the label names or stands in.
    :param number: which section of the document that is, counting from the top.
    """

    doc: str
    anchor: str
    page: str
    section: str
    number: int


class Places:
    """Finds the places of labels; each document is read once."""

    def __init__(self, app: Sphinx) -> None:
        self._env = app.env
        self._labels = app.env.get_domain("std").anonlabels  # type: ignore[attr-defined]
        self._read: dict[str, nodes.document] = {}

    def find(self, label: str) -> Place | None:
        """Return the place of a label, or None if no document has it."""
        doc, anchor = self._labels.get(label, ("", ""))
        if not doc:
            return None
        if doc not in self._read:
            self._read[doc] = self._env.get_doctree(doc)
        section = section_at(self._read[doc], anchor)
        sections = list(self._read[doc].findall(nodes.section))
        title = next(iter(section.findall(nodes.title))).astext()
        number = sections.index(section) if section in sections else 0
        return Place(doc, anchor, self._env.titles[doc].astext(), title, number)


def section_at(document: nodes.document, anchor: str) -> nodes.Element:
    """Return the section that an anchor names or stands in; the document if it is in none."""
    found = next((n for n in document.findall(nodes.Element) if anchor in n.get("ids", ())), None)
    while found is not None and not isinstance(found, nodes.section):
        found = found.parent
    return found if found is not None else document


def in_order(env: BuildEnvironment) -> list[str]:
    """Return the documents in the order of the table of contents."""
    order: dict[str, None] = {}

    def visit(doc: str) -> None:
        if doc not in order:
            order[doc] = None
            for below in env.toctree_includes.get(doc, ()):
                visit(below)

    visit(str(env.config.root_doc))
    return list(order)


def titles(env: BuildEnvironment) -> dict[str, str]:
    """Return the title of each document."""
    return {doc: title.astext() for doc, title in env.titles.items()}


def linked(address: str, text: str) -> str:
    """Return a link as HTML."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'


def book_folder(source: Path) -> Path:
    """Return the book's folder: that of the sources, or the one that a build stages them below."""
    near = [source, *source.parents[:2]]
    return next((folder for folder in near if (folder / lockfile.PLACE).is_file()), source)
