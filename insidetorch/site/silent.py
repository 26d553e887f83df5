"""The list "Wrong without an error": results that are wrong though nothing is raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape, marked
from insidetorch.site import lists
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.part import PageContext
from insidetorch.site.places import Place, in_order, linked

FILE = "book/silent.yml"


class Silent(Written, frozen=True):
    """Something that goes wrong in silence.

    :param what: what is done, and what is wrong afterwards.
    :param remedy: what to do instead.
    :param chapter: the document that shows it.
    :param anchor: the label of the section that does.
    :param seen: how the claim that shows it begins, or the id of the verdict that does.
    :param issue: where it is reported upstream; None if no report is known.
    """

    what: Words
    remedy: Words
    chapter: Words
    anchor: Words
    seen: Words
    issue: Annotated[str, Meta(pattern="^https://")] | None = None


def read_silent(path: Path) -> list[Silent]:
    """Read the list.

    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    return decode(list[Silent], path)


def html(page: PageContext) -> str:
    """Return what goes wrong in silence, by chapter; complain of what no chapter shows.

    Of a chapter that failed nothing is said here: its later claims were not reached.
    """
    found = []
    for entry in read_silent(page.source / FILE):
        place = page.placed(FILE, entry.chapter, entry.anchor, f"show {entry.what!r}")
        if place is None:
            continue
        releases = seen_on(entry, page.ledger)
        ran = page.ledger.chapter(entry.chapter) if page.ledger else None
        if page.ledger and not releases and (ran is None or ran.status == "ok"):
            page.complain(
                f"{FILE}: no claim of {entry.chapter} that held begins with {entry.seen!r}, and no "
                f"verdict there has that id; mend the entry."
            )
        found.append((entry, place, releases))
    return listed(found, in_order(page.app.env), page.link)


def seen_on(entry: Silent, ledger: Ledger | None) -> str:
    """Return the release on which the chapter saw it; empty if it did not."""
    chapter = ledger.chapter(entry.chapter) if ledger else None
    records: Iterator[dict[str, Any]] = filter(_held, _records(chapter))
    return next((str(one["torch"]) for one in records if _shows(one, entry.seen)), "")


def listed(
    found: Sequence[tuple[Silent, Place, str]], order: Sequence[str], link: Callable[[str], str]
) -> str:
    """Return the list as HTML, by chapter.

    :param found: the entries with the places that show them and the releases they were seen on.
    :param order: the documents in the book's order.
    :param link: returns the address of a document, relative to the page.
    """
    rank = {doc: number for number, doc in enumerate(order)}
    ordered = sorted(found, key=lambda one: (rank.get(one[1].doc, len(rank)), one[1].number))
    parts, chapters, at_once = [], dict[str, str](), lists.AT_ONCE
    for doc, group in groupby(ordered, key=lambda one: one[1].doc):
        entries, id = list(group), doc.rpartition("/")[2]
        chapters[id] = entries[0][1].page
        items = lists.items((_item(*one, link) for one in entries), waiting=at_once <= 0)
        at_once -= len(entries)
        parts.append(
            f'<section class="it-group" id="of-{escape(id)}" data-c="{escape(id)}">'
            f"<h2>{escape(chapters[id])}</h2>{items}</section>"
        )
    return (
        lists.contents(((f"#of-{id}", title) for id, title in chapters.items()), "Chapters")
        + lists.form(".it-silent li", len(found), chapter=chapters)
        + f'<div class="it-silent">{"".join(parts)}</div>'
    )


def _item(entry: Silent, place: Place, release: str, link: Callable[[str], str]) -> str:
    shown = linked(f"{link(place.doc)}#{place.anchor}", place.section)
    upstream = f" · {linked(entry.issue, 'reported')}" if entry.issue else ""
    seen = f"seen on torch {escape(release)}" if release else "not seen in this build"
    return (
        f"<li><p>{marked(entry.what)}</p><p><strong>Instead:</strong> {marked(entry.remedy)}</p>"
        f'<p class="it-asked">{shown} · {seen}{upstream}</p></li>'
    )


def _records(chapter: Executed | None) -> list[dict[str, Any]]:
    return [*chapter.of("claim"), *chapter.of("verdict")] if chapter else []


def _held(record: dict[str, Any]) -> bool:
    return bool(record.get("held"))


def _shows(record: dict[str, Any], seen: str) -> bool:
    return record.get("id") == seen or str(record.get("text", "")).startswith(seen)
