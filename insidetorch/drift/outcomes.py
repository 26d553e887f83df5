"""What a run of the book came to, and how it differs from another: claims, warnings, outputs."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insidetorch.records import RECORD_MIME, records

SCHEMA = 1
STABLE = "stable"
_BROKEN = frozenset({"failed", "error", "missing"})
_NOISE = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"0x[0-9a-fA-F]+"), "⟨address⟩"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\s*(?:ns|[µu]s|ms|s|min|seconds)\b"), "⟨time⟩"),
    (re.compile(r"\b(?:pid|id|tid|thread)[ =:]+\d+\b", re.IGNORECASE), "⟨id⟩"),
    (re.compile(r"\b\d{9,}\b"), "⟨id⟩"),
    (re.compile(r"\S*/site-packages/"), "⟨site⟩/"),
    (re.compile(r"\(Triggered internally at [^)]*\)"), "⟨place⟩"),
    (re.compile(r"\b\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?(?:\.dev\d+)?\+\w+\b"), "⟨torch⟩"),
)


@dataclass(frozen=True)
class Statement:
    """A claim or verdict in one run.

    :param doc: the chapter.
    :param cell: the code cell, from 1.
    :param text: the sentence; of a verdict too.
    :param id: of a verdict; "" for a claim.
    :param nth: which of the statements of this text in the chapter it is, from 1.
    :param held: whether it held.
    :param values: what was seen.
    """

    doc: str
    cell: int
    text: str
    id: str
    nth: int
    held: bool
    values: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies it in another run of the same text."""
        return self.doc, self.id or self.text, self.nth


@dataclass(frozen=True)
class ChapterRun:
    """One chapter of a run.

    :param code: first digits of the hash of its code cells; runs of other code are not compared.
    :param ended: why it stopped before its last cell; "" if it did not.
    :param errors: code cell → the error it raised.
    :param stable: code cell → its text output without times, addresses and ids; of cells tagged
        ``stable`` alone.
    :param warnings: code cell, category, message, whether it is a deprecation.
    """

    doc: str
    title: str
    code: str
    ended: str
    statements: tuple[Statement, ...]
    errors: Mapping[int, str]
    stable: Mapping[int, str]
    warnings: tuple[tuple[int, str, str, bool], ...]


@dataclass(frozen=True)
class Outcome:
    """One way in which a run differs from the pinned one.

    :param kind: ``failed`` (held before), ``error``, ``missing`` (not reached), ``guarded`` (a
        condition in its cell left it out), ``deprecation``, ``warning``, ``output``.
    """

    kind: str
    doc: str
    cell: int
    text: str
    detail: str = ""


def chapter_run(doc: str, title: str, notebook: Mapping[str, Any], ended: str = "") -> ChapterRun:
    """Return what the outputs of an executed notebook say."""
    found = list(records(notebook))
    seen: Counter[tuple[str, str]] = Counter()
    statements = []
    for record in found:
        if record["kind"] not in ("claim", "verdict"):
            continue
        text, id = record.get("text") or record.get("sentence") or "", record.get("id") or ""
        seen[id, text] += 1
        values = {name: str(value) for name, value in (record.get("values") or {}).items()}
        statements.append(
            Statement(doc, record["cell"], text, id, seen[id, text], bool(record["held"]), values)
        )
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    errors, stable = {}, {}
    for number, cell in enumerate(code, start=1):
        outputs = cell.get("outputs") or ()
        for output in outputs:
            if output["output_type"] == "error":
                errors[number] = f"{output['ename']}: {output['evalue']}".strip()
        if STABLE in (cell["metadata"].get("tags") or ()):
            stable[number] = quiet("\n".join(_plain(output) for output in outputs))
    warned = tuple(
        (r["cell"], r["category"], r["message"], bool(r["deprecation"]))
        for r in found
        if r["kind"] == "warning" and not r["declared"]
    )
    text = json.dumps([cell["source"] for cell in code])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return ChapterRun(doc, title, digest, ended, tuple(statements), errors, stable, warned)


def text_id(text: str) -> str:
    """Return a short name for a sentence: the first digits of its hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def quiet(text: str) -> str:
    """Return output without what differs from run to run: times, addresses, ids, releases."""
    for pattern, word in _NOISE:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _first(message: str) -> str:
    """Return what a warning says; a traceback may follow, whose lines are another release's."""
    return quiet(message).partition("\n")[0]


def differences(pinned: Iterable[ChapterRun], other: Iterable[ChapterRun]) -> list[Outcome]:
    """Return how another run differs from the pinned one, in the order of that run's chapters.

    Of a chapter without a pinned run of the same code, all that does not hold is a difference.
    """
    mine = {(run.doc, run.code): run for run in pinned}

    def beside(run: ChapterRun) -> ChapterRun:
        none = ChapterRun(run.doc, run.title, run.code, "", (), {}, {}, ())
        return mine.get((run.doc, run.code), none)

    return [outcome for run in other for outcome in _chapter(beside(run), run)]


def severity(kind: str) -> int:
    """Return what an outcome of this kind asks for: nothing (0), a look (1) or mending (2)."""
    return 2 if kind in _BROKEN else int(kind != "guarded")


def _chapter(mine: ChapterRun, theirs: ChapterRun) -> list[Outcome]:
    found = [
        Outcome("error", mine.doc, cell, error)
        for cell, error in theirs.errors.items()
        if cell not in mine.errors and not error.startswith("ClaimFailed")
    ]
    if theirs.ended and not mine.ended:
        found.append(Outcome("error", mine.doc, 0, theirs.ended))
    after = {statement.key: statement for statement in theirs.statements}
    for was in mine.statements:
        now = after.get(was.key)
        if now is None:
            # Its cell ran to its end: the chapter itself tells releases apart there.
            ran = not theirs.ended and was.cell not in theirs.errors
            kind = "guarded" if ran else "missing"
            found.append(Outcome(kind, mine.doc, was.cell, was.text))
        elif was.held and not now.held:
            found.append(Outcome("failed", mine.doc, now.cell, now.text, _seen(was, now)))
    before = {statement.key for statement in mine.statements}
    found += [
        Outcome("failed", mine.doc, now.cell, now.text, _seen(None, now))
        for now in theirs.statements
        if not now.held and now.key not in before
    ]
    known = {(category, _first(message)) for _, category, message, _ in mine.warnings}
    for cell, category, message, deprecation in theirs.warnings:
        if (category, _first(message)) not in known:
            kind = "deprecation" if deprecation else "warning"
            found.append(Outcome(kind, mine.doc, cell, f"{category}: {message}"))
    found += [
        Outcome("output", mine.doc, cell, "a stable output changed", _change(text, now_text))
        for cell, text in mine.stable.items()
        if (now_text := theirs.stable.get(cell)) is not None and now_text != text
    ]
    return sorted(found, key=lambda outcome: (outcome.cell, outcome.kind, outcome.text))


def _seen(was: Statement | None, now: Statement) -> str:
    if was is None:
        return "; ".join(f"{name} = {value}" for name, value in now.values.items())
    return "; ".join(
        f"{name} = {was.values.get(name, 'absent')} → {value}"
        for name, value in now.values.items()
        if value != was.values.get(name)
    )


def _change(old: str, new: str) -> str:
    from difflib import unified_diff

    return "\n".join(unified_diff(old.splitlines(), new.splitlines(), "pinned", "there", "", "", 1))


def _plain(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _joined(output["text"])
    data = output.get("data") or {}
    if RECORD_MIME in data and data[RECORD_MIME].get("kind") in ("claim", "verdict", "warning"):
        return ""
    return _joined(data.get("text/plain") or "")


def _joined(text: str | Sequence[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
