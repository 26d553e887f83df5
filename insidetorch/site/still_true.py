"""The page "Still true?": claims and anchors over the releases of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from insidetorch.claims import OUTCOMES, outcome_label
from insidetorch.display import Display, escape, marked, table
from insidetorch.drift import history as past
from insidetorch.drift import report
from insidetorch.drift.history import History, Row
from insidetorch.drift.outcomes import text_id
from insidetorch.drift.run import Result
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.drift_data import DriftData
from insidetorch.site.part import PageContext
from insidetorch.site.places import linked

Link = Callable[[str], str]
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
_MOST_WORDS = 8


def claims(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return the matrix of claims and verdicts over the releases, by chapter."""
    if ledger is None:
        return _sentence("The site was built without a record of the last execution: no claims.")
    return "".join(_claims_of(chapter, data.results, link) for chapter in ledger.chapters)


def differences(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return what differs on other releases: when chapters are executed, and in their code."""
    return _executed(data, link) + "".join(_report(one, link) for one in data.reports)


def _executed(data: DriftData, link: Link) -> str:
    if not data.results:
        return _sentence("The chapters have not been executed on another release yet.")
    words = {"failed": "no longer holds", "error": "stops with an error", "missing": "not reached"}
    rows: list[list[object]] = []
    for result in data.results:
        for one in result.outcomes:
            known = next((r for r in data.reasons if r.explains(result.public, one)), None)
            where = f"{one.doc}, code cell {one.cell}" if one.cell else one.doc
            address = _to(link(one.doc), one.text)
            rows.append([
                result.public,
                _link(address, escape(where), where),
                f"{words.get(one.kind, one.kind)}: {one.text}",
                known.reason if known else "not explained yet",
            ])  # fmt: skip
    ran = "; ".join(
        f"torch {result.torch} ({len(result.held)} chapters, {result.ran[:10]})"
        for result in data.results
    )
    said = _sentence(f"Executed on {ran}.")
    if not rows:
        return said + _sentence("Nothing differed from the pinned release.")
    return said + table(["Release", "Where", "What", "Why it stands"], rows).html


def figure(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return bars, one for each release: how many anchors are there as they are in this book."""
    history = data.history
    if history is None or not history.rows:
        return _sentence("The anchors have not been compared with other releases yet.")
    drawn = [_bars("The whole book", history, history.rows)]
    by_chapter = _by_chapter(history)
    if len(by_chapter) > 1:
        drawn += [_bars(doc, history, rows) for doc, rows in by_chapter.items()]
    return f'<div class="it">{_legend()}{"".join(drawn)}</div>'


def anchors(data: DriftData, ledger: Ledger | None, link: Link) -> str:
    """Return the matrix of anchors over releases, by chapter, with the age of each."""
    history = data.history
    if history is None:
        return _sentence("The anchors have not been compared with other releases yet.")
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
        return _sentence("No cell met a deprecation when the chapters were last executed.")
    return table(
        ["Chapter", "Code cell", "Warning", "Expected by the text"], rows, numeric=(1,)
    ).html


def _claims_of(chapter: Executed, results: Sequence[Result], link: Link) -> str:
    ran = [result for result in results if chapter.doc in result.held]
    rows: list[list[object]] = []
    held = [0] * len(ran)
    for record in chapter.records:
        if record.get("kind") not in ("claim", "verdict"):
            continue
        text = str(record.get("text") or record.get("sentence"))
        states = [_state(result, chapter.doc, text) for result in ran]
        held = [count + (state == "held") for count, state in zip(held, states, strict=True)]
        rows.append([
            _link(_to(link(chapter.doc), text), marked(_told(record, text)), text),
            _mark(*_SIGNS["held" if record.get("held") else "failed"]),
            *(_mark(*_SIGNS[state]) for state in states),
        ])  # fmt: skip
    if not rows:
        return ""
    pinned = chapter.torch.split("+")[0]
    counts = "".join(
        f"; {count} on {result.public}" for count, result in zip(held, ran, strict=True)
    )
    summary = f"{chapter.title}: {chapter_held(chapter)} of {len(rows)} on {pinned}{counts}"
    header = ["Sentence", pinned, *(result.public for result in ran)]
    return _folded(summary, table(header, rows, caption=f"Sentences of “{chapter.title}”").html)


def _told(record: Mapping[str, Any], text: str) -> str:
    """Return a sentence as it is listed: of a verdict, after what became of it."""
    return f"{outcome_label(record)}: “{text}”" if record.get("outcome") in OUTCOMES else text


def chapter_held(chapter: Executed) -> int:
    """Return how many claims and verdicts of a chapter held."""
    return sum(bool(record.get("held")) for record in chapter.of("claim") + chapter.of("verdict"))


def _state(result: Result, doc: str, text: str) -> str:
    found = [one.kind for one in result.outcomes if (one.doc, one.text) == (doc, text)]
    if found:
        return "failed" if "failed" in found else "missing"
    return "held" if text_id(text) in result.held[doc] else "unknown"


def _mark(sign: str, word: str) -> Display:
    return Display(f'<span role="img" aria-label="{word}" title="{word}">{sign}</span>', word)


def _report(one: report.Report, link: Link) -> str:
    rows = ""
    shown = [f for f in one.static or () if report.asks(f)]
    for finding in shown:
        anchor: Mapping[str, Any] = finding["anchor"]
        doc = anchor["chapter"]
        name = f"<code>{escape(anchor['target'])}</code>"
        where = linked(link(doc), doc) if anchor["cells"] else escape(doc)
        said = "; ".join([*finding["breakages"][:6], *finding["near"]])
        diff = "\n".join(finding["diff"])
        body = f"<pre>{escape(diff)}</pre>" if diff else ""
        text = f"{name}: {escape(finding['place'])} ({where}) {escape(said)}"
        rows += f"<li>{_folded_html(text, body) if body else text}</li>"
    if not rows:
        return ""
    summary = f"torch {one.release}: {len(shown)} of {len(one.static or ())} anchors to reread"
    return _folded(summary, f"<ul>{rows}</ul>")


def _anchors_of(
    doc: str, title: str | None, rows: Sequence[Row], history: History, link: Link
) -> str:
    body: list[list[object]] = []
    for row in sorted(rows, key=lambda one: (one.kind != "excerpt", one.target)):
        short = row.target.rsplit("::", 1)[-1].rsplit(".", 1)[-1]
        name = f"<code>{escape(row.target)}</code>"
        address = _to(link(doc), row.target if row.kind == "excerpt" else short)
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
    return Display(f'<a href="{escape(address)}">{html}</a>', text)


def _folded(summary: str, html: str) -> str:
    return f'<div class="it">{_folded_html(escape(summary), html)}</div>'


def _folded_html(summary: str, html: str) -> str:
    return f"<details><summary>{summary}</summary>{html}</details>"


def _sentence(text: str) -> str:
    return f'<p class="it">{escape(text)}</p>'


def _to(address: str, text: str) -> str:
    """Return a page's address that leads a browser to the first words of `text` on it."""
    words = " ".join(text.replace("`", "").split()[:_MOST_WORDS])
    return f"{address}#:~:text={quote(words, safe='')}"


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
