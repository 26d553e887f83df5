"""The verdicts: sentences that circulate, who says them, and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from insidetorch.book.address import Address
from insidetorch.claims import (
    OUTCOMES,
    Citation,
    Verdict,
    outcome_attributes,
    outcome_label,
    outcome_more,
)
from insidetorch.display import escape, marked
from insidetorch.drift.outcomes import text_id
from insidetorch.drift.run import Result
from insidetorch.site import lists, report
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.places import linked
from insidetorch.site.stamp import NOWHERE


@dataclass(frozen=True)
class Settled:
    """A verdict with the record of the cell that settled it."""

    verdict: Verdict
    record: Mapping[str, Any]
    chapter: Executed

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
        return str(self.record.get("outcome"))

    @property
    def year(self) -> int | None:
        """The year of the earliest text that says the sentence, None if no text has a year."""
        return min((one.year for one in self.verdict.sources if one.year), default=None)


Link = Callable[[str], str]
"""Returns the address of a document relative to the page."""


def settled(verdicts: Sequence[Verdict], ledger: Ledger) -> list[Settled]:
    """Return the verdicts that cells gave, in the book's order."""
    known = {one.id: one for one in verdicts}
    return [
        Settled(known[record["id"]], record, chapter)
        for chapter in ledger.chapters
        for record in chapter.of("verdict")
        if record.get("id") in known
    ]


def anchor(id: str) -> str:
    """Return the id that the verdict has in its chapter and on the page of verdicts."""
    return f"verdict-{id}"


def anchored(html: str, ids: list[str]) -> str:
    """Give the verdicts shown in `html` their anchors, taking them off the front of `ids`."""
    pieces = html.split('<div class="it it-verdict')
    parts = [pieces[0]]
    for piece in pieces[1:]:
        name = f' id="{escape(anchor(ids.pop(0)))}"' if ids else ""
        parts.append(f'<div{name} class="it it-verdict{piece}')
    return "".join(parts)


def page(
    found: Sequence[Settled],
    results: Sequence[Result],
    link: Link,
    references: str,
    address: Address = NOWHERE,
) -> str:
    """Return the verdicts as HTML, by chapter, below a sentence that counts them.

    :param results: executions on other releases, oldest first.
    :param references: the address of the References page.
    :param address: where the book lives, for reports.
    """
    if not found:
        return "<p class='it'>No cell has settled a sentence yet.</p>"
    chapters = {one.chapter.doc.rpartition("/")[2]: one.chapter.title for one in found}
    parts = [
        f"<p>{counted_on(found)}: {_counted(Counter(one.outcome for one in found))}.</p>",
        lists.contents(((f"#of-{id}", title) for id, title in chapters.items()), "Chapters"),
        lists.form(
            ".it-verdicts .it-verdict",
            len(found),
            chapter=chapters,
            outcome={kind: one.label for kind, one in OUTCOMES.items()},
        ),
    ]
    for chapter, group in groupby(found, key=lambda one: one.chapter):
        id = chapter.doc.rpartition("/")[2]
        items = "".join(_item(one, results, link, references, address) for one in group)
        parts.append(
            f'<section id="of-{escape(id)}" data-c="{escape(id)}"><h3>{escape(chapter.title)}</h3>'
            f"{items}</section>"
        )
    return f'<div class="it-verdicts">{"".join(parts)}</div>'


def counted_on(found: Sequence[Settled]) -> str:
    """Return how many sentences were settled, and on which release."""
    return f"{len(found)} sentences were settled on torch {escape(_public(found[0].chapter))}"


def survival(found: Sequence[Settled]) -> str:
    """Return the figure: for each year, how many of its sentences are still true."""
    dated = [(one.year, one.outcome) for one in found if one.year is not None]
    years: dict[int, Counter[str]] = {}
    for year, outcome in dated:
        years.setdefault(year, Counter())[outcome] += 1
    if not years:
        return "<p class='it'>No settled sentence comes from a text with a year.</p>"
    span = range(min(years), max(years) + 1)
    wide, high = 360, 150
    step = wide / len(span)
    unit = high / max(sum(counts.values()) for counts in years.values())
    drawn, said = "", []
    for index, year in enumerate(span):
        counts, x, y = years.get(year, Counter()), index * step, float(high)
        middle = f'x="{x + step / 2:.1f}" text-anchor="middle"'
        for kind in OUTCOMES:
            tall = unit * counts[kind]
            y -= tall
            if tall:
                drawn += (
                    f'<rect x="{x + step * 0.12:.1f}" y="{y:.1f}" width="{step * 0.76:.1f}" '
                    f'height="{tall:.1f}" style="fill:var({OUTCOMES[kind].colour})"/>'
                )
            if tall >= 13:
                drawn += f'<text class="it-count" {middle} y="{y + 12:.1f}">{counts[kind]}</text>'
        drawn += f'<text {middle} y="{high + 15}">’{year % 100:02d}</text>'
        if counts:
            said.append(f"{year}: {_counted(counts)}")
    caption = (
        f"{len(dated)} of {len(found)} settled sentences, by the year of the earliest text that "
        "says them; the other texts have no year"
    )
    label = escape(f"{caption}. {'; '.join(said)}.")
    kinds = {outcome for _, outcome in dated}
    legend = "".join(
        f'<span class="it-key"><span aria-hidden="true" style="background:var({one.colour})">'
        f"</span>{one.words}</span>"
        for kind, one in OUTCOMES.items()
        if kind in kinds
    )
    return (
        f'<figure class="it it-survival"><figcaption>{caption}</figcaption><p>{legend}</p>'
        f'<svg viewBox="0 0 {wide} '
        f'{high + 20}" role="img" aria-label="{label}">{drawn}</svg></figure>'
    )


def legend() -> str:
    """Return what each outcome means, as a list."""
    items = "".join(
        f'<dt><span class="it-key"><span aria-hidden="true" style="background:var({one.colour})">'
        f"</span></span>{one.label}</dt><dd>{escape(one.means)}</dd>"
        for one in OUTCOMES.values()
    )
    return f'<dl class="it it-outcomes">{items}</dl>'


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {OUTCOMES[kind].words}" for kind in OUTCOMES if counts[kind])


def _item(
    one: Settled, results: Sequence[Result], link: Link, references: str, address: Address
) -> str:
    record, id = one.record, one.verdict.id
    sources = "; ".join(_source(source, references) for source in one.verdict.sources)
    said = "".join(f"<p>{marked(each)}</p>" for each in outcome_more(record))
    cell = linked(f"{link(one.chapter.doc)}#{anchor(id)}", f"Code cell {record.get('cell')}")
    others = elsewhere(one, results)
    fault = report.link(address, one.chapter, one.verdict.sentence)
    return (
        f'<div {outcome_attributes(record)} id="{escape(anchor(id))}" '
        f'data-o="{escape(one.outcome)}">'
        f'<p class="it-label"><strong>{escape(outcome_label(record))}</strong></p>'
        f"<blockquote><p>{marked(one.verdict.sentence)}</p><footer>{sources}</footer></blockquote>"
        f'{said}<p class="it-ran">{cell} ran on torch {escape(_public(one.chapter))}'
        f"{escape(others)}. {fault}</p></div>"
    )


def _public(chapter: Executed) -> str:
    return chapter.torch.split("+")[0]


def elsewhere(one: Settled, results: Sequence[Result]) -> str:
    """Return on which other releases the same cell came to the same result, or did not."""
    doc, sentence = one.chapter.doc, one.verdict.sentence
    same = [r.public for r in results if text_id(sentence) in r.held.get(doc, ())]
    other = [
        r.public
        for r in results
        if any((o.doc, o.text, o.kind) == (doc, sentence, "failed") for o in r.outcomes)
    ]
    said = f"; the same on {', '.join(same)}" if same else ""
    return said + (f"; otherwise on {', '.join(other)}" if other else "")


def _source(source: Citation, references: str) -> str:
    title = linked(source.url, source.title) if source.url else escape(source.title)
    rest = ", ".join(str(part) for part in (source.year, source.where) if part)
    listed = linked(f"{references}#ref-{source.ref}", "on the reading list") if source.ref else ""
    return title + (f", {escape(rest)}" if rest else "") + (f" ({listed})" if listed else "")
