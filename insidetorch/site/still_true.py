"""The page "Still true?", and the marks of sentences: on which releases they were executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.display import Display, escape, marked, plain, table
from insidetorch.drift.history import version
from insidetorch.drift.outcomes import text_id
from insidetorch.drift.run import Result
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.drift_data import DriftData, read_drift
from insidetorch.site.part import PageContext
from insidetorch.site.places import book_folder, linked

Link = Callable[[str], str]
_MARK = re.compile(
    r'(<span class="it-mark" role="img" aria-label=")held'
    r'("(?=>✔</span><div class="it-body"><p>(.*?)</p>))',
    re.DOTALL,
)
_MOST_WORDS = 8


def register(app: Sphinx, ledger: Callable[[Sphinx], Ledger | None]) -> None:
    """Add the releases to the marks of sentences.

    :param ledger: returns what the last execution recorded.
    """

    def mark(
        app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.Node | None
    ) -> None:
        known = ledger(app)
        chapter = known.chapter(page) if known else None
        if chapter and "it-mark" in str(context.get("body") or ""):
            results = read_drift(book_folder(app.srcdir)).results
            context["body"] = with_releases(context["body"], chapter, results)

    app.connect("html-page-context", mark)


def with_releases(body: str, chapter: Executed, results: tuple[Result, ...]) -> str:
    """Return a page whose marks say on which releases their sentences held."""
    texts = {marked(text): text for text in _texts(chapter)}

    def said(found: re.Match[str]) -> str:
        text = texts.get(found[3])
        if text is None:
            return found[0]
        on = [one.public for one in results if held(one, chapter.doc, text)]
        released = sorted({*on, chapter.torch.split("+")[0]}, key=version)
        word = f"held on torch {', '.join(released)}"
        return f'{found[1]}{word}" title="{word}{found[2]}'

    return _MARK.sub(said, body)


def summary(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return one sentence on the book, and a row for each chapter."""
    if ledger is None:
        return sentence("The site was built without a record of the last execution.")
    rows: list[list[object]] = []
    totals = [0] * (len(data.results) + 1)
    count = 0
    for chapter in ledger.chapters:
        texts = _texts(chapter)
        if not texts:
            continue
        on = [chapter_held(chapter)]
        on += [sum(held(one, chapter.doc, text) for text in texts) for one in data.results]
        totals = [total + number for total, number in zip(totals, on, strict=True)]
        count += len(texts)
        name = Display(linked(link(chapter.doc), chapter.title), chapter.title)
        failed = [_failed(one, chapter.doc) for one in data.results]
        cells = [f"{n} ({f} not)" if f else str(n) for n, f in zip(on, [0, *failed], strict=True)]
        rows.append([name, len(texts), *cells])
    pinned = ledger.torch.split("+")[0]
    releases = [pinned, *(one.public for one in data.results)]
    each = "; ".join(
        f"{total} held on {release}" for total, release in zip(totals, releases, strict=True)
    )
    said = f"Of {count} sentences that are checked as the chapters run, {each}."
    later = "A sentence written since the book ran on a release is not counted as held there."
    body = table(["Chapter", "Sentences", *releases], rows, numeric=range(1, len(releases) + 2))
    return sentence(said) + body.html + (sentence(later) if data.results else "")


def chapter_held(chapter: Executed) -> int:
    """Return how many claims and verdicts of a chapter held."""
    return sum(bool(record.get("held")) for record in chapter.of("claim") + chapter.of("verdict"))


def held(result: Result, doc: str, text: str) -> bool:
    """Tell whether a sentence was executed on a release, and held."""
    return text_id(text) in result.held.get(doc, ())


def sentence(text: str) -> str:
    """Return a paragraph of a generated part."""
    return f'<p class="it">{escape(text)}</p>'


def to(address: str, text: str) -> str:
    """Return a page's address that leads a browser to the first words of `text` on it."""
    words = " ".join(plain(text).split()[:_MOST_WORDS])
    return f"{address}#:~:text={quote(words, safe='')}" if address else ""


def _failed(result: Result, doc: str) -> int:
    return sum(one.doc == doc and one.kind in ("failed", "missing") for one in result.outcomes)


def _texts(chapter: Executed) -> list[str]:
    def text(record: Mapping[str, Any]) -> str:
        return str(record.get("text") or record.get("sentence"))

    return [text(one) for one in chapter.records if one.get("kind") in ("claim", "verdict")]


def html(page: PageContext) -> str:
    """Return the verdict for readers."""
    return summary(page.drift, page.ledger, page.link)
