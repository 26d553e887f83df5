"""The index of questions: what people asked, and the sections of chapters that answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape
from insidetorch.site.part import PageContext
from insidetorch.site.places import Place, in_order, linked

FILE = "book/questions.yml"


class Thread(Written, frozen=True):
    """A place where a question was asked."""

    title: Words
    url: Annotated[str, Meta(pattern="^https://")]


class Question(Written, frozen=True):
    """A question that was asked in public, in our words.

    :param sources: where it was asked.
    :param chapter: the document that answers it.
    :param anchor: the label of the section that answers it.
    """

    question: Words
    sources: tuple[Thread, ...]
    chapter: Words
    anchor: Words


def read_questions(path: Path) -> list[Question]:
    """Read the questions.

    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    return decode(list[Question], path)


def html(page: PageContext) -> str:
    """Return the questions that have their sections; complain of the others."""
    found = []
    for question in read_questions(page.source / FILE):
        purpose = f"answer {question.question!r}"
        if place := page.placed(FILE, question.chapter, question.anchor, purpose):
            found.append((question, place))
    return answered(found, in_order(page.app.env), page.link)


def answered(
    found: Sequence[tuple[Question, Place]], order: Sequence[str], link: Callable[[str], str]
) -> str:
    """Return the questions as HTML, by chapter and, below it, by section.

    :param found: the questions with the places that answer them.
    :param order: the documents in the book's order.
    :param link: returns the address of a document, relative to the page.
    """
    rank = {doc: number for number, doc in enumerate(order)}
    ordered = sorted(found, key=lambda pair: (rank.get(pair[1].doc, len(rank)), pair[1].number))
    chapters = [list(group) for _, group in groupby(ordered, key=lambda pair: pair[1].doc)]
    contents = " ".join(
        linked(f"#{_id(group[0][1])}", f"{group[0][1].page} ({len(group)})") for group in chapters
    )
    return (
        f'<div class="it-questions"><nav class="it-letters" aria-label="Chapters">{contents}</nav>'
        f"{''.join(_chapter(group, link) for group in chapters)}</div>"
    )


def _chapter(group: Sequence[tuple[Question, Place]], link: Callable[[str], str]) -> str:
    parts = [f'<h2 id="{escape(_id(group[0][1]))}">{escape(group[0][1].page)}</h2>']
    for section, pairs in groupby(group, key=lambda pair: pair[1].section):
        items = "".join(
            _item(question, f"{link(place.doc)}#{place.anchor}") for question, place in pairs
        )
        parts.append(f"<h3>{escape(section)}</h3><ul>{items}</ul>")
    return "".join(parts)


def _item(question: Question, address: str) -> str:
    asked = "; ".join(linked(thread.url, thread.title) for thread in question.sources)
    count = len(question.sources)
    return (
        f"<li>{linked(address, question.question)}"
        f'<details class="it-asked"><summary>Asked in {count} thread{"s" * (count > 1)}</summary>'
        f"{asked}</details></li>"
    )


def _id(place: Place) -> str:
    return f"questions-{place.doc.rsplit('/', 1)[-1]}"
