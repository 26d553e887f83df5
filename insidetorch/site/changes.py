"""The page "What changed": the book's changes by release of PyTorch, and a feed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree as xml

from docutils import nodes
from msgspec import Meta, field
from sphinx.application import Sphinx

from insidetorch.book.address import Address
from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape, marked
from insidetorch.drift.history import version
from insidetorch.errors import BookError
from insidetorch.site.drift_data import DriftData
from insidetorch.site.part import PageContext
from insidetorch.site.places import linked, titles

FILE = "book/changes.yml"
FEED = "changes.xml"
PAGE = "book/changes"
_ATOM = "http://www.w3.org/2005/Atom"


class Change(Written, frozen=True):
    """A change of the book that readers should know of.

    :param day: when it was published.
    :param torch: the release of PyTorch that the book was written for on that day.
    :param pages: the documents that it made or changed.
    """

    day: date = field(name="date")
    torch: Annotated[str, Meta(pattern=r"^\d+\.\d+\.\d+")]
    title: Words
    text: Words
    pages: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The entry's place on the page: its day and the letters of its title."""
        words = "".join(c if c.isalnum() else " " for c in self.title.lower()).split()
        return "-".join(["change", self.day.isoformat(), *words[:6]])


def register(app: Sphinx) -> None:
    """Add the feed to the book's extension."""
    app.connect("html-page-context", _announce)
    app.connect("build-finished", _write_feed)


def read_changes(path: Path, docs: Mapping[str, str]) -> list[Change]:
    """Read the changes, newest first.

    :param docs: the documents of the book, with their titles.
    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    found = decode(list[Change], path)
    for change in found:
        if strange := sorted(set(change.pages) - docs.keys()):
            raise BookError(
                f"{path.name}: {change.title!r} names {strange[0]}, which is no page; mend it."
            )
    return sorted(found, key=lambda change: change.day, reverse=True)


def by_release(
    changes: Sequence[Change],
    data: DriftData,
    docs: Mapping[str, str],
    link: Callable[[str], str],
    feed: str = "",
) -> str:
    """Return the changes as HTML, newest release first, with what each release did to the code.

    :param docs: the documents of the book, with their titles.
    :param link: returns the address of a document, relative to the page.
    :param feed: the address of the feed, or "" if there is none.
    """
    pinned = data.history.pinned if data.history else ""
    releases = {change.torch for change in changes} | {pinned} - {""}
    if data.history:
        releases |= {r for r in data.history.releases if version(r) > version(pinned)}
    releases |= {result.public for result in data.results}
    ordered = sorted(releases, key=version, reverse=True)
    follow = f'<p>These changes are also <a href="{escape(feed)}">a feed</a>.</p>' if feed else ""
    return follow + "".join(_release(r, changes, data, docs, link) for r in ordered)


def feed(changes: Sequence[Change], title: str, author: str, site: str) -> bytes:
    """Return the changes as an Atom feed.

    :param title: the book's.
    :param site: its address, without a slash at its end.
    """
    xml.register_namespace("", _ATOM)
    root = xml.Element(f"{{{_ATOM}}}feed")
    page = f"{site}/{PAGE}.html"
    last = max((change.day for change in changes), default=date(1970, 1, 1))
    _add(root, "id", page)
    _add(root, "title", f"What changed in {title}")
    _add(root, "updated", f"{last.isoformat()}T00:00:00Z")
    _add(_add(root, "author"), "name", author)
    _add(root, "link", href=page)
    _add(root, "link", href=f"{site}/{FEED}", rel="self")
    for change in changes:
        entry = _add(root, "entry")
        _add(entry, "id", f"{page}#{change.anchor}")
        _add(entry, "title", change.title)
        _add(entry, "updated", f"{change.day.isoformat()}T00:00:00Z")
        _add(entry, "link", href=f"{page}#{change.anchor}")
        _add(entry, "category", term=f"torch {change.torch}")
        pages = "".join(f"<li>{linked(f'{site}/{doc}.html', doc)}</li>" for doc in change.pages)
        _add(entry, "content", f"<p>{marked(change.text)}</p><ul>{pages}</ul>", type="html")
    return bytes(xml.tostring(root, encoding="utf-8", xml_declaration=True))


def html(page: PageContext) -> str:
    """Return the list of changes."""
    changes = read_changes(page.source / FILE, page.titles)
    feed = "../" * page.doc.count("/") + FEED if _has_feed(page.app) else ""
    return by_release(changes, page.drift, page.titles, page.link, feed)


def _release(
    release: str,
    changes: Sequence[Change],
    data: DriftData,
    docs: Mapping[str, str],
    link: Callable[[str], str],
) -> str:
    parts = [f'<h2 id="torch-{escape(release)}">PyTorch {escape(release)}</h2>']
    parts += [
        f"<p>{text}</p>"
        for text in (_executed(release, data), _moved(release, data, docs, link))
        if text
    ]
    mine = [change for change in changes if change.torch == release]
    for change in mine:
        pages = ", ".join(linked(link(doc), docs[doc]) for doc in change.pages)
        parts.append(
            f'<h3 id="{change.anchor}">{escape(change.title)}</h3>'
            f'<p><time datetime="{change.day}">{change.day}</time>. {marked(change.text)}</p>'
            f"<p>{pages}</p>"
        )
    return f"<section>{''.join(parts)}</section>"


def _executed(release: str, data: DriftData) -> str:
    if data.history and release == data.history.pinned:
        return "The release that the book is written for. No page is shown that did not run on it."
    found = next((result for result in data.results if result.public == release), None)
    if found is None:
        return "No chapter has been executed on it."
    broken = Counter(one.kind for one in found.outcomes)
    said = "Every sentence that was reached held."
    if broken["failed"]:
        said = f"{broken['failed']} sentences no longer hold."
    return f"{len(found.held)} pages were executed on it on {found.ran[:10]}. {said}"


def _moved(
    release: str, data: DriftData, docs: Mapping[str, str], link: Callable[[str], str]
) -> str:
    history = data.history
    if history is None or release == history.pinned or release not in history.releases:
        return ""
    at = history.releases.index(release)
    other = Counter(
        row.chapter
        for row in history.rows
        if history.states(row)[at] in ("other", "absent") and row.chapter in docs
    )
    where = ", ".join(f"{linked(link(doc), docs[doc])} ({n})" for doc, n in other.most_common())
    return (
        f"Of the {len(history.rows)} pieces of code and names that the book rests on, "
        f"{sum(other.values())} read otherwise than in {history.pinned} or are absent"
        + (f": {where}." if where else ".")
    )


def _announce(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
) -> None:
    if _has_feed(app):
        address = f"{_site(app)}/{FEED}"
        context["metatags"] = context.get("metatags", "") + (
            '<link rel="alternate" type="application/atom+xml" title="What changed" '
            f'href="{escape(address)}"/>'
        )


def _write_feed(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html" and _has_feed(app):
        changes = read_changes(Path(app.srcdir) / FILE, titles(app.env))
        made = feed(changes, app.config.html_title, app.config.author, _site(app))
        (Path(app.outdir) / FEED).write_bytes(made)


def _has_feed(app: Sphinx) -> bool:
    return bool(_site(app)) and (Path(app.srcdir) / FILE).is_file()


def _site(app: Sphinx) -> str:
    return Address(**app.config.insidetorch_address).site


def _add(parent: xml.Element, name: str, text: str = "", **attributes: str) -> xml.Element:
    element = xml.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    element.text = text or None
    return element
