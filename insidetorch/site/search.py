"""The search: an index of places, each with an address, in files that a browser fetches as needed.

A place is a section, an excerpt, a question, a verdict, a term, a reference, or what goes wrong in
silence. Words lead to places; both are cut into small files, so that a query fetches a few. They
are scripts, since a page that was opened as a file may load no other data. `search.js` reads them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from insidetorch.claims import read_verdicts
from insidetorch.decode import Words, Written, decode
from insidetorch.display import plain
from insidetorch.errors import BookError
from insidetorch.files import digest, write_changed
from insidetorch.site import own_host, verdicts
from insidetorch.site.bibliography import read_references
from insidetorch.site.book_ledger import read_ledger
from insidetorch.site.glossary import FILE as GLOSSARY
from insidetorch.site.glossary import read_glossary
from insidetorch.site.places import GENERATED, titles
from insidetorch.site.questions import FILE as QUESTIONS
from insidetorch.site.questions import read_questions
from insidetorch.site.reading_list import BIBLIOGRAPHY, LIST_PAGE, VERDICTS
from insidetorch.site.silent import FILE as SILENT
from insidetorch.site.silent import read_silent

FOLDER, CHINESE = "_static/search", "book/chinese.yml"
_SCRIPT = "search.js"
_BYTES = 8_000
"""How much a file of the index holds, about."""
_WORD = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|(?<!s)s|e)$")
_STOP = (
    "a an and are as at be but by do does for from has have how i if in is it its my not of on or "
    "that the them then there these they this to was what when which why will with you your"
)
_DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_CODE = re.compile(r"<pre\b[^>]*>(.*?)</pre>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_TITLE, _NAME, _TEXT, _PROOF = 12.0, 2.0, 1.0, 0.4
"""What a word counts in a title, as code in a sentence, in a sentence, in code and outputs."""
_EXPLAIN, _AFTER = frozenset({"Section", "Source", "Term", "In Chinese"}), 0.8
"""What comes first among places with the same words, and what the words of others count."""
_NUMBER = re.compile(r"^(?:\d+\.|Deeper:)\s*")
_HEADS = frozenset({"h1", "h2", "h3", "h4"})
_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
_SILENT = frozenset({"script", "style", "svg", "button", "nav"})
_UNREAD = frozenset({"headerlink", "it-here", "it-stamp", "onlyprint", "it-release"})


class Alias(Written, frozen=True):
    """Words of another language, with blanks between those of one meaning, and where they lead."""

    words: Words
    label: Words


@dataclass
class Place:
    """A place of the book.

    :param kind: what it is, for a reader.
    :param doc: the document it is in.
    :param anchor: the fragment of its address.
    :param words: what each word counts there.
    :param note: a line below its title.
    """

    kind: str
    doc: str
    anchor: str
    title: str = ""
    note: str = ""
    words: dict[str, float] = field(default_factory=dict)

    def add(self, text: str, weight: float) -> None:
        """Count the words of a text."""
        for word, share in words(text):
            self.words[word] = self.words.get(word, 0) + weight * share


def words(text: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a text as they are looked up, and a share less for parts of names.

    Names count whole and by their parts, Chinese by each two characters that stand together.
    """
    for found in _WORD.findall(text):
        yield from _looked_up(found)


@cache
def _looked_up(found: str) -> tuple[tuple[str, float], ...]:
    if found[0] >= "\u3400" and found[0] <= "\u9fff":
        return tuple((found[at : at + 2], 1) for at in range(max(len(found) - 1, 1)))
    whole = stem(found)
    looked_up = [(whole, 1.0)] if whole and whole not in _STOPPED else []
    parts = _PART.findall(found)
    if parts != [found]:
        looked_up += [(stem(part), 0.5) for part in parts if len(part) > 1]
    return tuple(looked_up)


def stem(word: str) -> str:
    """Return a word without the ending that its other forms do not share."""
    return _ENDING.sub("", word.lower())[:40]


_STOPPED = frozenset(map(stem, _STOP.split()))


class _Reader(HTMLParser):
    """Reads the places of a page: its sections and its excerpts."""

    def __init__(self, doc: str, generated: bool) -> None:
        super().__init__()
        self.places: list[Place] = []
        self.ids: set[str] = set()
        self._doc, self._generated = doc, generated
        self._open: list[tuple[str, str]] = []
        self._within: list[Place] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        id, classes = given.get("id") or "", (given.get("class") or "").split()
        self.ids.add(id)
        if tag in _VOID:
            return
        state = ""
        made = self._generated and any(one.split("-")[0] == "it" for one in classes)
        if self._silent or tag in _SILENT or made or not _UNREAD.isdisjoint(classes):
            state = "silent"
            self._silent += 1
        elif tag == "section" and id:
            state = "place"
            self._within.append(Place("Section", self._doc, id))
        elif tag == "figure" and "it-excerpt" in classes and id:
            state = "place"
            self._within.append(Place("Source", self._doc, id))
        elif tag == "span" and id and not self._titled():
            self._within[-1].anchor = id  # a label outlives a title
        elif not self._titled() and (tag in _HEADS or "it-symbol" in classes):
            state = "title"
        elif "it-place" in classes:
            state = "note"
        elif tag == "pre" or "cell_output" in classes:
            state = "proof"
        elif tag == "code":
            state = "name"
        self._open.append((tag, state))

    def _titled(self) -> bool:
        return not self._within or bool(self._within[-1].title)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            opened, state = self._open.pop()
            if state == "silent":
                self._silent -= 1
            elif state == "place":
                self.places.append(self._within.pop())
            if opened == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._silent or not self._within:
            return
        place, states = self._within[-1], {state for _, state in self._open}
        if "title" in states:
            place.title += data
            place.add(data, _TITLE)
        elif "note" in states:
            place.note += data
        else:
            if place.kind == "Section" and "proof" not in states and len(place.note) < 160:
                place.note += data
            weight = _PROOF if "proof" in states else _NAME if "name" in states else _TEXT
            place.add(data, weight)


def _without_colours(html: str) -> str:
    """Return a page's article with fewer elements: no drawings, and plain code."""
    article = html[max(html.find("<article"), 0) : html.rfind("</article>")]
    article = _DRAWING.sub("", article)
    return _CODE.sub(lambda found: f"<pre>{_TAG.sub('', found[1])}</pre>", article)


def register(app: Sphinx) -> None:
    """Put this search into the place of Sphinx's own."""
    app.connect("builder-inited", _take_over)
    app.connect("html-collect-pages", lambda app: [("search", {}, "search.html")])
    app.connect("build-finished", _write)


def _take_over(app: Sphinx) -> None:
    app.builder.search = False  # type: ignore[attr-defined]
    own_host.add_file(app, "insidetorch.site", _SCRIPT)


def _write(app: Sphinx, error: Exception | None) -> None:
    """Write the index of the pages as they are."""
    if error is not None or app.builder.format != "html":
        return
    places = list(_places(app))
    folder = Path(app.outdir) / FOLDER
    wanted = dict(files(places, titles(app.env)))
    for name, text in wanted.items():
        write_changed(folder / name, text)
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()


def _places(app: Sphinx) -> Iterator[Place]:
    """Yield the places of all pages; those of a page that did not change are remembered."""
    memory = Path(app.doctreedir) / "search.json"
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    now: dict[str, Any] = {}
    ids: dict[str, set[str]] = {}
    heads: dict[tuple[str, str], str] = {}
    own = digest(Path(__file__).read_bytes())
    for doc in sorted(app.env.found_docs):
        page = Path(app.outdir) / f"{doc}.html"
        if not page.is_file():
            continue
        html = page.read_bytes()
        key = digest(own, html)
        if key not in known:
            reader = _Reader(doc, bool(app.env.metadata[doc].get(GENERATED)))
            reader.feed(_without_colours(html.decode()))
            known[key] = [[vars(one) for one in reader.places], sorted(reader.ids)]
        now[key] = known[key]
        ids[doc] = set(known[key][1])
        for place in (Place(**one) for one in known[key][0] if one["title"]):
            heads[doc, place.anchor] = place.title
            yield place
    write_changed(memory, json.dumps(now))
    try:
        listed = list(_listed(app))
    except BookError:
        return  # the page of that list says what is wrong
    for one in listed:
        if one.anchor in ids.get(one.doc, ()):
            one.note = one.note or heads.get((one.doc, one.anchor), "")
            yield one


def _listed(app: Sphinx) -> Iterator[Place]:
    """Yield the places that the book's lists name: answers, verdicts, terms, references."""
    source, domain = Path(app.srcdir), app.env.get_domain("std")
    labels = domain.anonlabels  # type: ignore[attr-defined]

    def place(kind: str, at: tuple[str, str], title: str, note: str, *texts: str) -> Place:
        made = Place(kind, *at, plain(title), note)
        made.add(title, _TITLE / 2)
        for text in texts:
            made.add(text, _TEXT)
        return made

    if (source / QUESTIONS).is_file():
        for one in read_questions(source / QUESTIONS):
            threads = (thread.title for thread in one.sources)
            at = labels.get(one.anchor, ("", ""))
            yield place("Question", at, one.question, "", *threads)
    if (source / CHINESE).is_file():
        for alias in decode(list[Alias], source / CHINESE):
            at = labels.get(alias.label, ("", ""))
            yield from (place("In Chinese", at, word, "") for word in alias.words.split())
    if (source / SILENT).is_file():
        for wrong in read_silent(source / SILENT):
            at = labels.get(wrong.anchor, ("", ""))
            yield place("Wrong without an error", at, wrong.what, wrong.remedy, wrong.remedy)
    if (source / GLOSSARY).is_file():
        for entry in read_glossary(source / GLOSSARY):
            at = domain.objects.get(("term", entry.names[0]), ("", ""))  # type: ignore[attr-defined]
            also = [f"{name} {name} {name}" for name in entry.names[1:]]
            yield place("Term", at, entry.term, entry.says, entry.says, *also)
    ledger = read_ledger(source / app.config.insidetorch_ledger)
    if ledger and (source / VERDICTS).is_file():
        for given in verdicts.settled(read_verdicts(source / VERDICTS), ledger):
            now, of = str(given.record.get("now") or ""), given.verdict
            at = (given.chapter.doc, verdicts.anchor(of.id))
            said = (citation.title for citation in of.sources)
            yield place("Verdict", at, of.sentence, now, now, *said)
    if (source / BIBLIOGRAPHY).is_file():
        for text in read_references(source / BIBLIOGRAPHY):
            more = (text.author, text.gloss, text.good_for)
            note = " · ".join(filter(None, (text.gloss, text.author)))
            yield place("Reference", (LIST_PAGE, f"ref-{text.id}"), text.title, note, *more)


def files(places: list[Place], pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the files of the index, each with its name.

    :param pages: the title of each document.
    """
    docs = sorted({place.doc for place in places})
    number = {doc: at for at, doc in enumerate(docs)}
    kinds = list(dict.fromkeys(place.kind for place in places))
    shown = [
        [
            kinds.index(one.kind), number[one.doc], one.anchor, _line(one.title, 200),
            _line(one.note, 140),
        ]
        for one in places
    ]  # fmt: skip
    starts: dict[str, list[Any]] = {"t": [], "p": []}
    for name, items in (("t", _postings(places)), ("p", enumerate(shown))):
        for at, (start, part) in enumerate(_cut(items)):
            starts[name].append(start)
            yield f"{name}{at}.js", f'insideSearch("{name}{at}",{_json(part)})'
    about = {"docs": [[doc, pages[doc]] for doc in docs], "kinds": kinds, "count": len(places)}
    about |= {"stop": sorted(_STOPPED), **starts}
    yield "index.js", f'insideSearch("index",{_json(about)})'


def _postings(places: list[Place]) -> Iterator[tuple[str, str]]:
    """Yield each word with the places that have it: steps in base 36, a letter for how much.

    Where a title has the word a second letter says of how many words that title is.
    """
    mean = sum(sum(place.words.values()) for place in places) / max(len(places), 1)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for at, place in enumerate(places):
        size = 0.5 + 0.5 * sum(place.words.values()) / mean
        first, named = _first(place), _named(place)
        for word, count in place.words.items():
            letters = _letter(25 * first * count / (count + 1.5 * size))
            if word in named:
                letters += _letter(1 / named[word])
            found[word].append((at, letters))
    for word in sorted(found):
        last, text = 0, ""
        for at, letters in found[word]:
            text += f"{_base36(at - last)}{letters}"
            last = at
        yield word, text


def _first(place: Place) -> float:
    """Return what the words of a place count: less where it goes deeper, lists, or is in small."""
    after = place.title.strip().startswith("Deeper:") or place.anchor.startswith(
        "excerpt-miniatures-"
    )
    return _AFTER if after or place.kind not in _EXPLAIN else 1


def _named(place: Place) -> dict[str, float]:
    """Return what part of a place's title each of its words is; an excerpt's is its last name."""
    title = _NUMBER.sub("", place.title.strip())
    if place.kind == "Source":
        title = title.replace("::", ".").rpartition(".")[2]
    shares = dict(words(title))
    whole = max(sum(share == 1 for share in shares.values()), 1)
    return {word: share / whole for word, share in shares.items()}


def _letter(number: float) -> str:
    return chr(65 + min(25, round(number)))


def _cut(items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Yield parts of about the size of a file, each with its first key."""
    part: dict[Any, Any] = {}
    size = 0
    for key, value in items:
        if part and size > _BYTES:
            yield next(iter(part)), part
            part, size = {}, 0
        part[key] = value
        size += len(_json([key, value]).encode())
    if part:
        yield next(iter(part)), part


def _line(text: str, length: int) -> str:
    text = " ".join(plain(text).split())
    return text if len(text) <= length else f"{text[:length].rsplit(' ', 1)[0]} …"


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    high, low = divmod(number, 36)
    return (_base36(high) if high else "") + digits[low]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
