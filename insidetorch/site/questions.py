"""The index of questions: what people asked, and the sections of chapters that answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from insidetorch.display import escape
from insidetorch.errors import BookError
from insidetorch.site.places import Place
from insidetorch.site.written import read_list


@dataclass(frozen=True)
class Question:
    """A question that was asked in public, in our words.

    :param sources: where it was asked: titles with addresses.
    :param chapter: the document that answers it.
    :param anchor: the label of the section that answers it.
    """

    question: str
    sources: tuple[tuple[str, str], ...]
    chapter: str
    anchor: str


def read_questions(path: Path) -> list[Question]:
    """Read the questions.

    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    found = []
    for number, entry in enumerate(read_list(path, "questions"), start=1):
        try:
            sources = tuple((str(s["title"]), str(s["url"])) for s in entry["sources"])
            question = Question(entry["question"], sources, entry["chapter"], entry["anchor"])
        except (KeyError, TypeError) as error:
            raise BookError(
                f"{path.name}: entry {number} lacks {error}; it needs a question, a chapter, an "
                "anchor, and sources with a title and a url."
            ) from error
        if not all(url.startswith("https://") for _, url in sources):
            raise BookError(f"{path.name}: entry {number} has a source without an https address.")
        found.append(question)
    return found


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
        f'<a href="#{_id(group[0][1])}">{escape(group[0][1].page)} ({len(group)})</a>'
        for group in chapters
    )
    return (
        f'<div class="it-questions"><nav class="it-letters" aria-label="Chapters">{contents}</nav>'
        f"{''.join(_chapter(group, link) for group in chapters)}</div>"
    )


def _chapter(group: Sequence[tuple[Question, Place]], link: Callable[[str], str]) -> str:
    parts = [f'<h2 id="{_id(group[0][1])}">{escape(group[0][1].page)}</h2>']
    for section, pairs in groupby(group, key=lambda pair: pair[1].section):
        items = "".join(
            _item(question, f"{link(place.doc)}#{place.anchor}") for question, place in pairs
        )
        parts.append(f"<h3>{escape(section)}</h3><ul>{items}</ul>")
    return "".join(parts)


def _item(question: Question, address: str) -> str:
    asked = "; ".join(
        f'<a href="{escape(url)}">{escape(title)}</a>' for title, url in question.sources
    )
    count = len(question.sources)
    return (
        f'<li><a href="{escape(address)}">{escape(question.question)}</a>'
        f'<details class="it-asked"><summary>Asked in {count} thread{"s" * (count > 1)}</summary>'
        f"{asked}</details></li>"
    )


def _id(place: Place) -> str:
    return f"questions-{escape(place.doc.rsplit('/', 1)[-1])}"
