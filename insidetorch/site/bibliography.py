"""The reading list: its references, its subjects, and what the book does with each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybtex.database import BibliographyData, parse_string
from pybtex.exceptions import PybtexError
from pybtex.scanner import PybtexSyntaxError
from sphinx.application import Sphinx

from insidetorch.decode import Words, Written, decode
from insidetorch.errors import BookError

SETTLED, COVERED, WAITING, OUTSIDE = "settled", "covered", "waiting", "outside"
STATES = {
    SETTLED: "settled in verdicts",
    COVERED: "covered by a chapter",
    WAITING: "waiting for a chapter",
    OUTSIDE: "outside the book",
}
LANGUAGES = {"zh": "Chinese", "en": "English"}
_ENTRY = re.compile(r"^@\w+\{?([^,\s]*)[^\n]*(?:\n(?!@).*)*", re.MULTILINE)
_FIELDS = frozenset({
    "title", "gloss", "year", "yearfrom", "url", "langid", "keywords", "chapters", "outside",
    "goodfor", "read", "doubt", "remark",
})  # fmt: skip
_READ = {"": "", "full": "read in full", "part": "read in part"}


@dataclass(frozen=True)
class Reference:
    """One entry of the reading list.

    :param id: its key in the bibliography; verdicts and citations name it.
    :param gloss: its title in English, where the title is not.
    :param year: when it was written; None if that is not known.
    :param inferred: whether the year was read off the number in its address.
    :param url: its address as listed; empty if it was named without one.
    :param subjects: its subject, then further ones.
    :param chapters: the documents that show its mechanism; empty for those of its subjects.
    :param outside: whether it is outside the book though its subject is not.
    :param good_for: what it is good for, in a line of ours; empty if that is not certain.
    :param read: how much of it was read for this book, in words; empty for nothing.
    :param doubt: what is doubtful about its address.
    :param remark: what else a reader should know of it.
    """

    id: str
    title: str
    gloss: str
    author: str
    year: int | None
    inferred: bool
    url: str
    language: str
    subjects: tuple[str, ...]
    chapters: tuple[str, ...]
    outside: bool
    good_for: str
    read: str
    doubt: str
    remark: str


class Subject(Written, frozen=True):
    """A subject of the reading list.

    :param chapters: the documents that show its mechanisms, written or still to be written.
    :param outside: why it is not in the book; empty if it is.
    """

    id: Words
    title: Words
    chapters: tuple[str, ...] = ()
    outside: str = ""

    def __post_init__(self) -> None:
        if bool(self.chapters) == bool(self.outside):
            raise ValueError(
                "has no state: it needs either chapters or the reason why it is outside"
            )


@dataclass(frozen=True)
class State:
    """What the book does with a reference.

    :param kind: one of `STATES`.
    :param chapters: the documents of the book that settle its sentences or show its mechanism.
    :param verdicts: the ids of the verdicts on its sentences.
    """

    kind: str
    chapters: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()


def read_references(path: Path) -> list[Reference]:
    """Read the bibliography.

    :return: its entries in the order of the file.
    :raises BookError: the file is missing or broken, or an entry lacks something or has a field
        that means nothing; the message names it.
    """
    entries = _parsed(path).entries
    return [_reference(path.name, id, entry) for id, entry in entries.items()]


def check(app: Sphinx, config: Any) -> None:
    """Refuse a bibliography that BibTeX cannot read, before another extension reads it."""
    for name in getattr(config, "bibtex_bibfiles", ()):
        path = Path(app.srcdir) / name
        if path.is_file():
            _parsed(path, name)


def _parsed(path: Path, name: str = "") -> BibliographyData:
    name = name or path.name
    try:
        text = path.read_text(encoding="utf-8")
        # The parser notices a brace that lacks in the entry after, or never.
        for found in _ENTRY.finditer(text):
            if found[0].count("{") != found[0].count("}"):
                line = text.count("\n", 0, found.start()) + 1
                raise BookError(
                    f"{name}:{line}: the braces of the entry {found[1]!r} do not pair up; mend it."
                )
        return parse_string(text, "bibtex")
    except PybtexSyntaxError as error:
        problem = str(error).partition(": ")[2]
        raise BookError(f"{name}:{error.lineno}: cannot be read ({problem}); mend it.") from error
    except (OSError, UnicodeDecodeError, PybtexError) as error:
        problem = " ".join(str(error).split())
        raise BookError(f"{name} cannot be read ({problem}); mend it.") from error


def read_subjects(path: Path) -> list[Subject]:
    """Read the subjects, in the order in which the References page shows them.

    :raises BookError: the file is missing or broken, two entries share an id, or an entry has
        neither chapters nor a reason to be outside the book; the message names it.
    """
    listed = decode(list[Subject], path)
    for id, count in Counter(subject.id for subject in listed).items():
        if count > 1:
            raise BookError(f"{path.name} has the subject {id!r} {count} times; keep one.")
    return listed


def state(
    reference: Reference,
    subjects: Mapping[str, Subject],
    docs: Collection[str],
    verdicts: Mapping[str, str],
) -> State | None:
    """Return what the book does with a reference; None if no subject says so.

    :param subjects: the subjects by id.
    :param docs: the documents of the book.
    :param verdicts: the verdicts on the reference's sentences: id → the document that gives it.
    """
    known = [subjects[id] for id in reference.subjects if id in subjects]
    named = reference.chapters or tuple(doc for one in known for doc in one.chapters)
    shown = tuple(dict.fromkeys(doc for doc in (*verdicts.values(), *named) if doc in docs))
    if verdicts:
        return State(SETTLED, shown, tuple(verdicts))
    if reference.outside:
        return State(OUTSIDE)
    if shown:
        return State(COVERED, shown)
    if named:
        return State(WAITING)
    return State(OUTSIDE) if known else None


def _reference(file: str, id: str, entry: Any) -> Reference:
    def lacks(what: str) -> BookError:
        return BookError(f"{file}: the entry {id!r} {what}; mend it.")

    fields = {name.lower(): _plain(text) for name, text in entry.fields.items()}
    strange = sorted(fields.keys() - _FIELDS)
    if strange:
        raise lacks(f"has the field {strange[0]!r}, which means nothing here")
    subjects, chapters = _listed(fields.get("keywords", "")), _listed(fields.get("chapters", ""))
    for name in ("title", "langid", "keywords"):
        if not fields.get(name):
            raise lacks(f"has no {name}")
    if fields["langid"] not in LANGUAGES:
        raise lacks(f"has the langid {fields['langid']!r}, not one of {', '.join(LANGUAGES)}")
    if fields.get("read", "") not in _READ:
        raise lacks(f"has read = {fields['read']!r}, which is neither full nor part")
    year, url = fields.get("year", ""), fields.get("url", "")
    if year and not re.fullmatch(r"\d{4}", year):
        raise lacks(f"has the year {year!r}, which is no year")
    if url and not url.startswith(("https://", "http://")):
        raise lacks(f"has the address {url!r}, which a browser cannot open")
    return Reference(
        id=id,
        title=fields["title"],
        gloss=fields.get("gloss", ""),
        author=" and ".join(_plain(str(person)) for person in entry.persons.get("author", ())),
        year=int(year) if year else None,
        inferred=fields.get("yearfrom") == "inferred",
        url=url,
        language=fields["langid"],
        subjects=subjects,
        chapters=chapters,
        outside=fields.get("outside") == "true",
        good_for=fields.get("goodfor", ""),
        read=_READ[fields.get("read", "")],
        doubt=fields.get("doubt", ""),
        remark=fields.get("remark", ""),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _plain(text: str) -> str:
    """Return a field without the braces that keep BibTeX from changing it, and unescaped."""
    text = re.sub(r"\A\{(.*)\}\Z", r"\1", text.strip(), flags=re.DOTALL)
    return re.sub(r"\\([%&#_$])", r"\1", " ".join(text.split()))
