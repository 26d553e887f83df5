"""Where a label leads: the section it names or stands in, its page, and the order of all pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

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


_Sections = Mapping[str, tuple[str, int]]
# What a build has read, by document.
_READ: WeakKeyDictionary[Sphinx, dict[str, _Sections]] = WeakKeyDictionary()


class Places:
    """Finds the places of labels; of one build each document is read and gone through once."""

    def __init__(self, app: Sphinx) -> None:
        self._env = app.env
        self._labels = app.env.get_domain("std").anonlabels  # type: ignore[attr-defined]
        self._read = _READ.setdefault(app, {})

    def find(self, label: str) -> Place | None:
        """Return the place of a label, or None if no document has it."""
        doc, anchor = self._labels.get(label, ("", ""))
        if not doc:
            return None
        if doc not in self._read:
            self._read[doc] = sections(self._env.get_doctree(doc))
        page = self._env.titles[doc].astext()
        title, number = self._read[doc].get(anchor, (page, 0))
        return Place(doc, anchor, page, title, number)


def sections(document: nodes.document) -> _Sections:
    """Return anchor → title and number of the section that it names or stands in, if any.

    :return: sections are counted from the top of the document.
    """
    order = {id(section): number for number, section in enumerate(document.findall(nodes.section))}
    found: dict[str, tuple[str, int]] = {}
    for node in document.findall(nodes.Element):
        anchors = [anchor for anchor in node.get("ids", ()) if anchor not in found]
        section = node if anchors else None
        while section is not None and not isinstance(section, nodes.section):
            section = section.parent
        if section is not None:
            title = next(iter(section.findall(nodes.title))).astext()
            found |= dict.fromkeys(anchors, (title, order[id(section)]))
    return found


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
