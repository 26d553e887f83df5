"""The index of questions: what people asked, by symptom, and the sections that answer it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape, marked
from insidetorch.errors import BookError
from insidetorch.site import lists
from insidetorch.site.part import PageContext
from insidetorch.site.places import Place, in_order

FILE, SYMPTOMS = "book/questions.yml", "book/symptoms.yml"
PAGE, REST = "book/questions", "book/questions-how"  # of the symptoms, and of the last of them


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


class Symptom(Written, frozen=True):
    """What readers come with.

    :param words: whole words, or with ``*`` the beginnings of words, by which a question is one
        of it; a symptom without words has what no other has.
    :param says: what its door on the first page says; "" for none.
    :param path: the label of the section that its door leads to.
    """

    id: Words
    title: Words
    words: tuple[str, ...]
    says: str = ""
    path: str = ""

    @property
    def page(self) -> str:
        """The document that has its questions; on one page all would be heavy."""
        return PAGE if self.words else REST

    def fits(self, question: str) -> bool:
        """Tell whether a question is one of it."""
        each = (re.escape(word).replace(r"\*", r"\w*") for word in self.words)
        return not self.words or bool(re.search(rf"(?i)\b(?:{'|'.join(each)})\b", question))


def read_questions(path: Path) -> list[Question]:
    """Read the questions.

    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    return decode(list[Question], path)


def read_symptoms(path: Path) -> list[Symptom]:
    """Read the symptoms.

    :raises BookError: the file is missing, an entry is malformed, or the last one has words; the
        message names it.
    """
    found = decode(list[Symptom], path)
    if not found or found[-1].words:
        raise BookError(f"{path.name}: the last symptom has what no other has; give it no words.")
    return found


def html(page: PageContext) -> str:
    """Return a page's questions that have their sections; complain of the others.

    The page of the last symptom, which has what no other has, has those of it, and the page of
    the questions those of all others: together they would be heavy.
    """
    found = []
    for question in read_questions(page.source / FILE):
        purpose = f"answer {question.question!r}"
        if place := page.placed(FILE, question.chapter, question.anchor, purpose):
            found.append((question, place))
    symptoms = read_symptoms(page.source / SYMPTOMS)
    return answered(found, symptoms, in_order(page.app.env), page.link, page.doc)


def symptom_of(question: Question, symptoms: Sequence[Symptom]) -> str:
    """Return the id of the first symptom that a question fits."""
    return next(one.id for one in symptoms if one.fits(question.question))


def answered(
    found: Sequence[tuple[Question, Place]],
    symptoms: Sequence[Symptom],
    order: Sequence[str],
    link: Callable[[str], str],
    doc: str,
) -> str:
    """Return a page's questions as HTML, by symptom and, below it, by chapter.

    :param found: the questions with the places that answer them.
    :param order: the documents in the book's order.
    :param link: returns the address of a document, relative to the page.
    :param doc: the page's document, :data:`PAGE` or :data:`REST`.
    """
    rank = {doc: number for number, doc in enumerate(order)}

    def in_book(pair: tuple[Question, Place]) -> tuple[int, int]:
        return rank.get(pair[1].doc, len(rank)), pair[1].number

    groups: dict[str, list[tuple[Question, Place]]] = {}
    for pair in sorted(found, key=in_book):
        groups.setdefault(symptom_of(pair[0], symptoms), []).append(pair)
    used = [one for one in symptoms if one.id in groups]
    here = [one for one in used if one.page == doc]
    sections = [
        _section(one, groups[one.id], link, 0 if number else lists.AT_ONCE)
        for number, one in enumerate(here)
    ]
    shown = [pair for one in here for pair in groups[one.id]]
    links = (
        (f"{link(one.page) if one not in here else ''}#{one.id}", one.title, len(groups[one.id]))
        for one in used
    )
    contents = lists.contents(((to, f"{title} ({n})") for to, title, n in links), "Symptoms")
    form = lists.form(
        ".it-questions li",
        len(shown),
        symptom={one.id: one.title for one in here},
        chapter={_id(place): place.page for _, place in sorted(shown, key=in_book)},
    )
    return f'{contents}{form}<div class="it-questions">{"".join(sections)}</div>'


def _section(
    symptom: Symptom,
    listed: Sequence[tuple[Question, Place]],
    link: Callable[[str], str],
    at_once: int,
) -> str:
    parts = [f'<h2 id="{escape(symptom.id)}">{escape(symptom.title)}</h2>']
    for chapter, pairs in groupby(listed, key=lambda pair: _id(pair[1])):
        of = list(pairs)
        items = lists.items((_item(*pair, link) for pair in of), waiting=at_once <= 0)
        at_once -= len(of)
        parts.append(
            f'<div class="it-group" data-c="{escape(chapter)}"><h3>{escape(of[0][1].page)}</h3>'
            f"{items}</div>"
        )
    return f'<section data-s="{escape(symptom.id)}">{"".join(parts)}</section>'


def _item(question: Question, place: Place, link: Callable[[str], str]) -> str:
    address = f"{link(place.doc)}#{place.anchor}"
    asked = " ".join(
        f'<a href="{escape(one.url)}">{escape(_short(one.url))}</a>' for one in question.sources
    )
    text = marked(question.question)
    return f'<li><a href="{escape(address)}">{text}</a>{asked and f" asked: {asked}"}</li>'


def _short(url: str) -> str:
    """Return what a thread is called: the number of one of PyTorch's, or its host."""
    thread = re.search(r"github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/(\d+)", url)
    if thread:
        return f"{thread[1].removeprefix('pytorch/pytorch')}#{thread[2]}"
    return (urlsplit(url).hostname or url).removeprefix("www.")


def _id(place: Place) -> str:
    return place.doc.rpartition("/")[2]
