"""Generated parts: a directive marks a place, and HTML fills it when the page is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch.book.address import Address
from insidetorch.errors import BookError
from insidetorch.site.book_ledger import Ledger, read_ledger
from insidetorch.site.drift_data import DriftData, read_drift
from insidetorch.site.places import GENERATED, Place, Places, book_folder, titles

logger = logging.getLogger(__name__)


class generated_part(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils is untyped
    """Stands for a generated part until the page is written; `about` is what its maker is told."""


@dataclass
class PageContext:
    """The page that a part is made for, and what parts are made from."""

    app: Sphinx
    doc: str

    @property
    def source(self) -> Path:
        """The folder of the sources."""
        return Path(self.app.srcdir)

    @property
    def address(self) -> Address:
        """Where the book lives."""
        return Address(**self.app.config.insidetorch_address)

    @cached_property
    def ledger(self) -> Ledger | None:
        """What the last execution recorded."""
        return read_ledger(self.source / self.app.config.insidetorch_ledger)

    @cached_property
    def drift(self) -> DriftData:
        """What comparisons with other releases came to."""
        return read_drift(book_folder(self.source))

    @cached_property
    def places(self) -> Places:
        """Where labels lead."""
        return Places(self.app)

    @cached_property
    def titles(self) -> dict[str, str]:
        """The titles of the book's documents."""
        return titles(self.app.env)

    def link(self, doc: str, anchor: str = "") -> str:
        """Return the address of a document relative to this page; empty if the book lacks it."""
        if doc not in self.app.env.found_docs:
            return ""
        return str(self.app.builder.get_relative_uri(self.doc, doc)) + (anchor and f"#{anchor}")

    def placed(self, file: str, doc: str, label: str, purpose: str) -> Place | None:
        """Return the place of a label in a document; complain of the file's entry if it has none.

        :param purpose: what the label should do, for the complaint.
        """
        place = self.places.find(label)
        if place is not None and place.doc == doc:
            return place
        self.complain(
            f"{file}: {doc} has no label {label!r}, which should {purpose}; mend the entry."
        )
        return None

    def complain(self, problem: str) -> None:
        """Say what is wrong with what the part is made from."""
        logger.warning("%s", problem, location=self.doc)


@dataclass(frozen=True)
class Part:
    """A part of a page; it is made anew whenever the ledger or another page changes.

    :param html: makes it.
    :param files: what it is made from, as patterns below the sources or the book's folder.
    :param directive: what places it, if that is more than a mark.
    """

    html: Callable[..., str]
    files: tuple[str, ...] = ()
    directive: type[SphinxDirective] | None = None

    def note(self, env: BuildEnvironment) -> None:
        """Tell Sphinx what the page that is read depends on."""
        source = Path(env.srcdir)
        for folder in {source, book_folder(source)}:
            for pattern in self.files:
                for file in folder.glob(pattern):
                    env.note_dependency(os.path.relpath(file, source))
        env.metadata[env.docname][GENERATED] = True


def register(app: Sphinx, parts: Mapping[str, Part]) -> None:
    """Add a directive for each part, by its name, and fill their places."""

    class Directive(SphinxDirective):
        optional_arguments = 2

        def run(self) -> list[nodes.Node]:
            parts[self.name].note(self.env)
            return [generated_part(kind=self.name, given=self.arguments, about={})]

    app.add_node(generated_part)
    for name, part in parts.items():
        app.add_directive(name, part.directive or Directive)
    app.connect("doctree-resolved", partial(_fill, parts))


def raw(html: str) -> nodes.raw:
    """Return HTML as a node."""
    return nodes.raw("", html, format="html")


def _fill(parts: Mapping[str, Part], app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    page = PageContext(app, docname)
    for mark in list(doctree.findall(generated_part)):
        try:
            html = parts[mark["kind"]].html(page, *mark.get("given", ()), **mark["about"])
        except BookError as error:
            page.complain(str(error))
            html = ""
        mark.replace_self(raw(html))
