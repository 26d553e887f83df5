"""Which pages an edit elsewhere changes, so that only these are written again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from insidetorch import facts
from insidetorch.site.book_ledger import Executed, Ledger, read_ledger
from insidetorch.site.places import GENERATED, in_order

_READ = "insidetorch_read"
_SHOWN = (
    "doc", "title", "status", "executed", "seconds", "cells", "torch", "commit", "python", "cpu",
    "records",
)  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """What was seen when a page was read.

    :param face: a digest of what other pages can show of it: sections, places, uses of terms.
    :param ids: the ends of addresses on it.
    :param targets: what it refers to, as it is written, without folder and suffix.
    :param dated: it shows when the site was built.
    """

    face: str
    ids: frozenset[str]
    targets: frozenset[str]
    dated: bool


def register(app: Sphinx) -> None:
    """Have pages written again that show what has changed on others, or in the ledger."""
    app.connect("doctree-read", _note)
    app.connect("env-updated", _to_write)
    app.connect("html-collect-pages", _forget_words)


def _note(app: Sphinx, doctree: nodes.document) -> None:
    parts: list[object] = [app.env.metadata[app.env.docname].get("insidetorch_terms")]
    ids: set[str] = set()
    targets: set[str] = set()
    dated = False
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.section):
            parts.append(next(iter(node.findall(nodes.title)), node).astext())
        elif isinstance(node, nodes.term):
            parts.append(node.pformat())
        elif isinstance(node, addnodes.pending_xref):
            targets.add(_end(str(node.get("reftarget"))))
        dated |= node.get("kind") == "colophon"
        if node.get("ids"):
            parts.append(node["ids"])
            ids.update(node["ids"])
    app.env.metadata[app.env.docname][_READ] = _Read(
        _digest(parts), frozenset(ids), frozenset(targets), dated
    )


def _to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name the pages that show something that is no longer as it was when they were written.

    A chapter shows its entry in the ledger, a generated page all entries and the faces of all
    pages, and every page the titles and places that it refers to.
    """
    ledger = read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)
    read: dict[str, _Read] = {
        doc: env.metadata[doc][_READ] for doc in env.found_docs if _READ in env.metadata[doc]
    }
    names: dict[str, set[str]] = {doc: {_end(doc), *one.ids} for doc, one in read.items()}
    faces: dict[str, list[object]] = {doc: [one.face] for doc, one in read.items()}
    for name, shown, kind, doc, place, _ in env.get_domain("std").get_objects():
        if doc in names:
            names[doc].add(_end(name))
            faces[doc].append((name, shown, kind, place))
    before: dict[str, Any] = getattr(env, "insidetorch_written", {})
    now = {doc: (_digest(faces[doc]), sorted(names[doc])) for doc in read}
    moved = {doc for doc in {*before, *now} if before.get(doc) != now.get(doc)}
    gone = {name for doc in moved for one in (before, now) if doc in one for name in one[doc][1]}
    env.insidetorch_written = now  # type: ignore[attr-defined]

    book = _digest([in_order(env), sorted(now.items()), list(_entries(ledger))])
    shown_before: dict[str, str] = getattr(env, "insidetorch_shown", {})
    shows = {
        doc: _digest(
            [
                book if env.metadata[doc].get(GENERATED) else list(_entries(ledger, doc)),
                ledger.built if ledger and one.dated else None,
                facts.torch_facts(),
            ]
        )
        for doc, one in read.items()
    }
    env.insidetorch_shown = shows  # type: ignore[attr-defined]
    return [
        doc
        for doc, one in read.items()
        if shows[doc] != shown_before.get(doc) or not gone.isdisjoint(one.targets)
    ]


def _forget_words(app: Sphinx) -> list[tuple[str, dict[str, Any], str]]:
    """Take words that no page has any more out of the index of the search; add no page."""
    index = getattr(app.builder, "indexer", None)
    for words in (getattr(index, "_mapping", {}), getattr(index, "_title_mapping", {})):
        for word in [word for word, docs in words.items() if not docs]:
            del words[word]
    return []


def _entries(ledger: Ledger | None, doc: str = "") -> Iterator[object]:
    """Yield what the ledger says of a chapter, or of all, apart from whether it is fresh."""
    chapters: tuple[Executed, ...] = ledger.chapters if ledger else ()
    for chapter in chapters:
        if doc in ("", chapter.doc):
            yield [getattr(chapter, name) for name in _SHOWN]


def _end(target: str) -> str:
    """Return the last part of a name or an address, without folder, suffix and case."""
    name = target.rpartition("/")[2].removesuffix(".md").removesuffix(".ipynb")
    return name.removeprefix("equation-").lower()


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()
