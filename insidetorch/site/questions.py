"""The index of questions: what people asked, and the sections of chapters that answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import yaml

from insidetorch.display import escape
from insidetorch.errors import BookError


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


Resolve = Callable[[Question], tuple[str, str]]
"""Takes a question; returns the address of its section, relative to the page, and its title."""


def read_questions(path: Path) -> list[Question]:
    """Read the questions.

    :raises BookError: the file is missing, or an entry is malformed; the message names it.
    """
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (OSError, yaml.YAMLError) as error:
        raise BookError(f"{path.name} cannot be read ({error}); mend it.") from error
    found = []
    for number, entry in enumerate(entries, start=1):
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


def answered(found: Sequence[Question], titles: Callable[[str], str], resolve: Resolve) -> str:
    """Return the questions as HTML, by chapter.

    :param found: the questions, those of a chapter next to each other.
    :param titles: returns the title of a chapter's document.
    :param resolve: finds the section that answers a question.
    """
    parts = []
    for doc, group in groupby(found, key=lambda question: question.chapter):
        items = "".join(_item(question, *resolve(question)) for question in group)
        parts.append(f"<h2>{escape(titles(doc))}</h2><ul>{items}</ul>")
    return f'<div class="it-questions">{"".join(parts)}</div>'


def _item(question: Question, address: str, section: str) -> str:
    asked = "; ".join(
        f'<a href="{escape(url)}">{escape(title)}</a>' for title, url in question.sources
    )
    return (
        f"<li><p>{escape(question.question)}<br>"
        f'Answered in <a href="{escape(address)}">{escape(section)}</a></p>'
        f'<p class="it-asked">Asked in: {asked}</p></li>'
    )
