"""The maintainer's page on drift: what differs on other releases, sentence by sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.claims import OUTCOMES, outcome_label
from insidetorch.display import Display, escape, marked, table
from insidetorch.drift import history as past
from insidetorch.drift import report
from insidetorch.drift.history import History, Row
from insidetorch.drift.outcomes import text_id
from insidetorch.drift.reread import Item, Level
from insidetorch.drift.run import Result
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.drift_data import DriftData
from insidetorch.site.part import PageContext
from insidetorch.site.still_true import Link, sentence, to

_MARKS = {
    "same": ("●", "the same"),
    "moved": ("◌", "the same, in another file"),
    "other": ("◐", "another text"),
    "absent": ("–", "absent"),
}
_SIGNS = {
    "held": ("✔", "held"),
    "failed": ("✘", "failed"),
    "missing": ("…", "not reached"),
    "unknown": ("–", "written since that run"),
}
_FILLS = {"same": "--it-good", "moved": "--it-b", "other": "--it-note", "absent": "--it-line"}


def claims(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return by chapter on how many claims and verdicts each release agrees, and which do not.

    Those that held wherever they ran are counted, not listed: the page of each says so beside it.
    """
    if ledger is None:
        return sentence("The site was built without a record of the last execution: no claims.")
    return "".join(_claims_of(chapter, data.results, link) for chapter in ledger.chapters)


def differences(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return what has to be read again for other releases, what failed first."""
    made = report.together(
        [
            *data.reports,
            *(report.report(None, one.public, one.pinned, ran=one) for one in data.results),
        ],
        data.reasons,
    )
    if not made:
        return sentence("The book has not been compared with another release yet.")
    return "".join(_report(one, data, link) for one in made)


def _report(one: report.Report, data: DriftData, link: Link) -> str:
    parts = [
        f"<p>PyTorch {escape(one.pinned)} → {escape(one.release)}: {escape(one.sentence)}.</p>"
    ]
    if one.ran is None:
        parts.append("<p>The book has not been executed on it.</p>")
    elif one.ran.outcomes:
        parts.append(_executed(one, data, link))
    else:
        parts.append(
            f"<p>{len(one.ran.held)} chapters were executed on it without a difference.</p>"
        )
    parts += [
        f"<h4>{number}. {escape(place[0].place[0])}</h4>{''.join(_item(i, link) for i in place)}"
        for number, place in enumerate(one.places, start=1)
    ]
    if one.items is not None:
        rest = [item for item in report.folded_items(one) if item.level < Level.COUNTED]
        rows = "".join(f"<li>{_named(item)}</li>" for item in rest)
        rows += "".join(f"<li>{escape(line)}</li>" for line in one.unknown)
        parts.append(_folded_html(escape(report.folded(one)), f"<ul>{rows}</ul>"))
    return f'<section class="it"><h3>PyTorch {escape(one.release)}</h3>{"".join(parts)}</section>'


def _executed(one: report.Report, data: DriftData, link: Link) -> str:
    rows: list[list[object]] = []
    for each in one.outcomes:
        known = next((r.reason for r in data.reasons if r.explains(one.release, each)), "")
        own = "its cell tells the releases apart" if each.kind == "guarded" else "not explained yet"
        where = f"{each.doc}, code cell {each.cell}" if each.cell else each.doc
        rows.append([
            _link(to(link(each.doc), each.text), escape(where), where),
            f"{report.KINDS[each.kind]}: {each.text}",
            known or own,
        ])  # fmt: skip
    return table(["Where", "What", "Why it stands"], rows).html


def _item(item: Item, link: Link) -> str:
    """Return one definition to reread: its lines side by side, its sentences."""
    said = "".join(f"<li>{escape(line)}</li>" for line in item.said)
    for rest in item.rests:
        text = rest.text or rest.chapter
        held = " Its claims held when they were executed there." if rest.held else ""
        said += f"<li>{_link(to(link(rest.chapter), text), marked(text), text).html}{held}</li>"
    sides = ("\n".join(lines) for lines in (item.old, item.new))
    cells = "".join(f"<td><pre>{escape(side)}</pre></td>" for side in sides)
    lines = f"<table><tr>{cells}</tr></table>" if item.old or item.new else ""
    return f"<p>{_named(item)}</p>{lines}<ul>{said}</ul>"


def _named(item: Item) -> str:
    reason = f" {escape(item.reason)}" if item.reason else ""
    return f"{escape(item.why)}: <code>{escape(item.target)}</code>{reason}"


def figure(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return bars, one for each release: how many anchors are there as they are in this book."""
    history = data.history
    if history is None or not history.rows:
        return sentence("The anchors have not been compared with other releases yet.")
    drawn = [_bars("The whole book", history, history.rows)]
    by_chapter = _by_chapter(history)
    if len(by_chapter) > 1:
        drawn += [_bars(doc, history, rows) for doc, rows in by_chapter.items()]
    return f'<div class="it">{_legend()}{"".join(drawn)}</div>'


def anchors(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return the matrix of anchors over releases, by chapter, with the age of each."""
    history = data.history
    if history is None:
        return sentence("The anchors have not been compared with other releases yet.")
    titles = {chapter.doc: chapter.title for chapter in ledger.chapters} if ledger else {}
    return "".join(
        _anchors_of(doc, titles.get(doc), rows, history, link)
        for doc, rows in _by_chapter(history).items()
    )


def _by_chapter(history: History) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in history.rows:
        found.setdefault(row.chapter, []).append(row)
    return found


def warnings(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return the deprecations that the chapters met when they were last executed."""
    rows: list[list[object]] = [
        [
            _link(link(chapter.doc), escape(chapter.title), chapter.title),
            record["cell"],
            f"{record['category']}: {record['message']}",
            "yes" if record.get("declared") else "no",
        ]
        for chapter in (ledger.chapters if ledger else ())
        for record in chapter.of("warning")
        if record.get("deprecation")
    ]  # fmt: skip
    if not rows:
        return sentence("No cell met a deprecation when the chapters were last executed.")
    return table(
        ["Chapter", "Code cell", "Warning", "Expected by the text"], rows, numeric=(1,)
    ).html


def _claims_of(chapter: Executed, results: Sequence[Result], link: Link) -> str:
    ran = [result for result in results if chapter.doc in result.held]
    rows: list[list[object]] = []
    held = [0] * (1 + len(ran))
    total = 0
    for record in chapter.records:
        if record.get("kind") not in ("claim", "verdict"):
            continue
        total += 1
        text = str(record.get("text") or record.get("sentence"))
        states = ["held" if record.get("held") else "failed"]
        states += [_state(result, chapter.doc, text) for result in ran]
        held = [count + (state == "held") for count, state in zip(held, states, strict=True)]
        if {"failed", "missing"} & {*states}:
            rows.append([
                _link(to(link(chapter.doc), text), marked(_told(record, text)), text),
                *(_mark(*_SIGNS[state]) for state in states),
            ])  # fmt: skip
    if not total:
        return ""
    releases = [chapter.torch.split("+")[0], *(result.public for result in ran)]
    counts = [f"{count} on {on}" for count, on in zip(held[1:], releases[1:], strict=True)]
    summary = "; ".join([f"{chapter.title}: {held[0]} of {total} on {releases[0]}", *counts])
    if not rows:
        return f'<p class="it">{escape(summary)}.</p>'
    caption = f"Sentences of “{chapter.title}” that did not hold everywhere"
    return _folded(summary, table(["Sentence", *releases], rows, caption=caption).html)


def _told(record: Mapping[str, Any], text: str) -> str:
    """Return a sentence as it is listed: of a verdict, after what became of it."""
    return f"{outcome_label(record)}: “{text}”" if record.get("outcome") in OUTCOMES else text


def _state(result: Result, doc: str, text: str) -> str:
    found = [one.kind for one in result.outcomes if (one.doc, one.text) == (doc, text)]
    if found:
        return "failed" if "failed" in found else "missing"
    return "held" if text_id(text) in result.held[doc] else "unknown"


def _mark(sign: str, word: str) -> Display:
    return Display(f'<span role="img" aria-label="{word}" title="{word}">{sign}</span>', word)


def _anchors_of(
    doc: str, title: str | None, rows: Sequence[Row], history: History, link: Link
) -> str:
    body: list[list[object]] = []
    for row in sorted(rows, key=lambda one: (one.kind != "excerpt", one.target)):
        short = row.target.rsplit("::", 1)[-1].rsplit(".", 1)[-1]
        name = f"<code>{escape(row.target)}</code>"
        address = to(link(doc), row.target if row.kind == "excerpt" else short)
        since = history.since(row)
        age = f"before {since}" if since == history.releases[0] else since
        body.append([
            _link(address, name, row.target) if title else Display(name, row.target),
            "shown" if row.kind == "excerpt" else "used",
            age,
            *(_mark(*_MARKS[state]) for state in history.states(row)),
        ])  # fmt: skip
    header = ["What", "How", "Unchanged since", *history.releases]
    still = sum(len({*history.states(row)} - {"moved"}) == 1 for row in rows)
    name = title or "The toolkit's private names"
    summary = f"{name}: {still} of {len(rows)} the same in all {len(history.releases)} releases"
    return _folded(summary, table(header, body, caption=f"What “{name}” rests on").html)


def _bars(title: str, history: History, rows: Sequence[Row]) -> str:
    counts = past.shares(history, rows)
    wide, high, step = 560, 90, 560 / len(history.releases)
    drawn, said = "", []
    for index, (release, states) in enumerate(counts.items()):
        y = 0.0
        for state, count in states.items():
            tall = high * count / len(rows)
            drawn += (
                f'<rect x="{index * step + 3:.1f}" y="{y:.1f}" width="{step - 6:.1f}" '
                f'height="{tall:.1f}" style="fill:var({_FILLS[state]})"><title>{count} '
                f"{_MARKS[state][1]} in {escape(release)}</title></rect>"
            ) if count else ""  # fmt: skip
            y += tall
        weight = "700" if release == history.pinned else "400"
        drawn += (
            f'<text x="{index * step + step / 2:.1f}" y="{high + 15}" text-anchor="middle" '
            f'style="fill:var(--it-soft);font-size:12px;font-weight:{weight}">{escape(release)}</text>'
        )
        said.append(f"{release}: {states['same'] + states['moved']} of {len(rows)} the same")
    label = escape(f"{title}. {'; '.join(said)}.")
    return (
        f"<figure><figcaption>{escape(title)}: {len(rows)} anchors, beside torch {history.pinned}"
        f'</figcaption><svg viewBox="0 0 {wide} {high + 20}" role="img" aria-label="{label}" '
        f'style="width:100%;max-width:{wide}px;height:auto">{drawn}</svg></figure>'
    )


def _legend() -> str:
    items = "".join(
        f'<span style="margin-right:1.2em"><span aria-hidden="true" style="display:inline-block;'
        f'width:.8em;height:.8em;background:var({fill})"></span> {_MARKS[state][1]}</span>'
        for state, fill in _FILLS.items()
    )
    return f"<p>{items}</p>"


def _link(address: str, html: str, text: str) -> Display:
    return Display(f'<a href="{escape(address)}">{html}</a>' if address else html, text)


def _folded(summary: str, html: str) -> str:
    """Return a part that waits as text until the page's script parses it: there are thousands."""
    return (
        f'<div class="it"><details class="it-waits"><summary>{escape(summary)}</summary>'
        f"<noscript>{html}</noscript></details></div>"
    )


def _folded_html(summary: str, html: str) -> str:
    return f"<details><summary>{summary}</summary>{html}</details>"


PARTS = {
    "drift-claims": claims,
    "drift-differences": differences,
    "drift-history": figure,
    "drift-anchors": anchors,
    "drift-warnings": warnings,
}
"""What makes each part of the page."""


def html(name: str, page: PageContext) -> str:
    """Return one part of the page."""
    return PARTS[name](page.drift, page.ledger, page.link)
