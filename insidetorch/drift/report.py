"""Drift in words: for a terminal, as the text of a pull request, as JSON for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from insidetorch.drift import outcomes, stored
from insidetorch.drift.outcomes import Outcome
from insidetorch.drift.reasons import Reason
from insidetorch.drift.reread import Item, Level, placed
from insidetorch.drift.run import Result

SCHEMA = 4
BODY = 60_000
"""Bytes of the text of a pull request; a host takes 65,536 characters."""
WORDS = ("stands", "reread", "broken")
_MOST_LINES = 40
KINDS = {
    "failed": "no longer holds",
    "error": "error",
    "missing": "was not reached",
    "guarded": "is not said of this release",
    "deprecation": "new deprecation",
    "warning": "new warning",
    "output": "stable output changed",
}


@dataclass(frozen=True)
class Report:
    """What is known of the book on one release.

    :param items: what became another one, as `placed` orders it; None if it was not compared.
    :param unknown: what could not be compared, and why, one line each.
    :param ran: the book as it was executed on the release; None if it was not.
    :param notes: sentences about the comparison itself.
    """

    release: str
    pinned: str
    items: tuple[Item, ...] | None = None
    unknown: tuple[str, ...] = ()
    ran: Result | None = None
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> list[Item]:
        """What has to be read."""
        return [item for item in self.items or () if item.first_page]

    @property
    def places(self) -> list[list[Item]]:
        """What has to be read, by the section of the book that rests on it."""
        found: dict[object, list[Item]] = {}
        for item in self.first:
            found.setdefault(item.place, []).append(item)
        return list(found.values())

    @property
    def outcomes(self) -> list[Outcome]:
        """How its run differs from the pinned one, what is broken first."""
        found = self.ran.outcomes if self.ran else ()
        return sorted(found, key=lambda one: -outcomes.severity(one.kind))

    @property
    def code(self) -> int:
        """0 it stands, 1 to be reread, 2 broken: the exit status of the commands."""
        return max(self.chapters().values(), default=0)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return verdict(self.code, *self._counts(None))

    def chapters(self) -> dict[str, int]:
        """Return the verdict on each chapter that does not stand."""
        found: dict[str, int] = {}
        for item in self.first:
            for rest in item.rests:
                code = 2 if item.level is Level.GONE else 1
                found[rest.chapter] = max(code, found.get(rest.chapter, 0))
        for one in self.outcomes:
            if code := outcomes.severity(one.kind):
                found[one.doc] = max(code, found.get(one.doc, 0))
        return found

    def of(self, chapter: str) -> str:
        """Return the verdict on one chapter in one sentence."""
        return verdict(self.chapters().get(chapter, 0), *self._counts(chapter))

    def _counts(self, chapter: str | None) -> tuple[int, int]:
        rests = [
            (rest.chapter, rest.text or item.target)
            for item in self.first
            if item.level is not Level.GONE
            for rest in item.rests
            if chapter in (None, rest.chapter)
        ]
        worse = [
            one
            for one in self.outcomes
            if chapter in (None, one.doc) and outcomes.severity(one.kind)
        ]
        gone = [item for item in self.first if item.level is Level.GONE]
        gone = [i for i in gone if chapter is None or any(r.chapter == chapter for r in i.rests)]
        broken = sum(outcomes.severity(one.kind) == 2 for one in worse) + len(gone)
        return len(set(rests)) + len(worse) + len(gone) - broken, broken


def verdict(code: int, again: int, broken: int) -> str:
    """Return a verdict in one sentence.

    :param again: how many sentences rest on what changed.
    :param broken: how many things failed or are gone.
    """
    rest = f"{again} {'sentence rests' if again == 1 else 'sentences rest'} on what changed"
    if code == 2:
        return f"broken: {broken} failed or {'is' if broken == 1 else 'are'} gone; {rest}"
    return f"reread: {rest}" if code else "stands: nothing shown, named or executed differs"


def report(
    items: Sequence[Item] | None, release: str, pinned: str, *, unknown: Iterable[str] = (),
    ran: Result | None = None, reasons: Sequence[Reason] = (), notes: Iterable[str] = (),
) -> Report:  # fmt: skip
    """Return the report of one release, its items in the order in which they have to be read."""
    put = None if items is None else tuple(placed(items, release, ran, reasons))
    return Report(release, pinned, put, tuple(unknown), ran, tuple(notes))


def to_json(made: Report) -> dict[str, Any]:
    """Return a report as JSON data."""
    return {"schema": SCHEMA, "verdict": WORDS[made.code], **asdict(made)}


def from_json(data: Mapping[str, Any], name: str) -> Report:
    """Return the report in JSON data.

    :raises BookError: it is none, or one of another schema.
    """
    return stored.read(data, Report, SCHEMA, name, "make drift")


def together(reports: Iterable[Report], reasons: Sequence[Reason] = ()) -> list[Report]:
    """Return one report for each release, its comparison and its execution together."""
    found: dict[str, Report] = {}
    for one in reports:
        known = found.setdefault(one.release, Report(one.release, one.pinned))
        found[one.release] = replace(
            known,
            items=known.items if one.items is None else one.items,
            unknown=known.unknown or one.unknown,
            ran=one.ran or known.ran,
            notes=tuple(dict.fromkeys([*known.notes, *one.notes])),
        )
    return [
        report(one.items, one.release, one.pinned, unknown=one.unknown, ran=one.ran,
               reasons=reasons, notes=one.notes)
        for one in found.values()
    ]  # fmt: skip


def terminal(made: Report, *, everything: bool = False) -> list[str]:
    """Return the lines to print: the verdict, what failed, what has to be read.

    :param everything: also what is folded.
    """
    lines = [*made.notes, f"torch {made.pinned} → {made.release}: {made.sentence}"]
    lines += [f"  {doc}: {made.of(doc)}" for doc in made.chapters()]
    lines += [f"{one.doc}, {outcome(one)}" for one in made.outcomes]
    for begin, item in _numbered(made):
        lines += ["", f"{begin} {item.why}: {item.target}"]
        lines += [f"   {line}" for line in _rests(item)]
        lines += [f"   - {line}" for line in item.old] + [f"   + {line}" for line in item.new]
        lines += [f"   {line}" for line in item.said]
    if made.items is not None:
        lines += ["", folded(made)]
        if everything:
            lines += [f"  {line}" for item in made.items if (line := _folded(item))]
            lines += [f"  unknown: {line}" for line in made.unknown]
    return lines


def folded(made: Report) -> str:
    """Return the sentence on what is not on the first page."""
    kinds = Counter("late" if item.late else item.level for item in folded_items(made))
    late, behind = kinds.pop("late", 0), kinds.pop(Level.COUNTED, 0)
    more = f"{late} more to reread, which rank below; " if late else ""
    return (
        f"Folded: {more}{kinds.total()} definitions that no sentence rests on; "
        f"{behind} public names have other code somewhere behind them; "
        f"{len(made.unknown)} could not be compared."
    )


def folded_items(made: Report) -> list[Item]:
    """Return what is not on the first page."""
    return [item for item in made.items or () if not item.first_page]


def markdown(reports: Sequence[Report], title: str, most: int = BODY) -> str:
    """Return the text of a pull request about several releases, what failed first.

    :param most: its bytes at most; a sentence at its end says how many lines are left out.
    """
    parts = [f"# {title}\n", "".join(f"- torch {r.release}: {r.sentence}\n" for r in reports)]
    parts += [f"> {note}\n" for note in dict.fromkeys(n for r in reports for n in r.notes)]
    for make in (_outcomes_markdown, _first_markdown, _folded_markdown):
        parts += [part for made in reports for part in make(made)]
    room = most - 200
    for count, part in enumerate(parts):
        room -= len(part.encode()) + 1
        if room < 0:
            left = len("\n".join(parts[count:]).splitlines())
            said = f"{left} more lines are left out here; the JSON of this report has all.\n"
            return "\n".join([*parts[:count], said])
    return "\n".join(parts)


def _outcomes_markdown(made: Report) -> Iterator[str]:
    if made.ran is None:
        return
    found = made.outcomes
    yield f"## torch {made.release}, executed: {len(found)} differences\n"
    if found:
        yield "".join(f"- {one.doc}, {outcome(one)}\n" for one in found)


def _first_markdown(made: Report) -> Iterator[str]:
    if made.items is None:
        return
    count = f"{len(made.places)} places to reread, for {len(made.first)} definitions"
    yield f"## torch {made.release}: {count}\n"
    for begin, item in _numbered(made):
        yield "\n".join([f"{begin} **{item.why}**: `{item.target}`", *_detail(item)]) + "\n"


def _numbered(made: Report) -> Iterator[tuple[str, Item]]:
    """Yield what has to be read: the first of a place with its number, the others with "and"."""
    for number, place in enumerate(made.places, start=1):
        for at, item in enumerate(place):
            yield "   and" if at else f"{number}.", item


def _detail(item: Item) -> list[str]:
    lines = [f"   - {line}" for line in (*_rests(item), *item.said)]
    page = list(item.shown) or [*(f"-{line}" for line in item.old),
                                *(f"+{line}" for line in item.new)]  # fmt: skip
    if page:
        left = len(page) - _MOST_LINES
        more = [f"   … {left} more lines"] if left > 0 else []
        rows = (f"   {line}" for line in page[:_MOST_LINES])
        lines += ["", "   ```diff", *rows, *more, "   ```"]
    return lines


def _folded_markdown(made: Report) -> Iterator[str]:
    if made.items is None:
        return
    lines = [line for item in made.items if (line := _folded(item))]
    lines += [f"unknown: {line}" for line in made.unknown]
    yield f"<details><summary>{folded(made)}</summary>\n"
    yield "".join(f"- {line}\n" for line in lines)
    yield "</details>\n"


def _folded(item: Item) -> str:
    """Return a folded definition in one line; what is only counted has none."""
    if item.first_page or (item.level is Level.COUNTED and not item.reason):
        return ""
    where = ", ".join(dict.fromkeys(rest.chapter for rest in item.rests))
    old, new = ("".join(lines[:1]).strip() or "nothing" for lines in (item.old, item.new))
    told = next((said for said in item.said if item.why in said), f"{old} → {new}")
    near = "" if item.shown or item.late else "not shown or named there: "
    lines = f"; {near}{told}" if item.said or item.old or item.new else ""
    reason = f"; {item.reason}" if item.reason else ""
    return f"{item.why}: {item.target} ({where}){lines}{reason}"


def _rests(item: Item) -> list[str]:
    lines = []
    for rest in item.rests:
        where = f"{rest.chapter}.md:{rest.line}" if rest.line else rest.chapter
        held = "; what is claimed there held when it was executed" if rest.held else ""
        no_words = "; no sentence near it names it" if rest.line else ""
        said = f": “{rest.text}”" if rest.text else no_words
        lines.append(f"{where}{held}{said}")
    return lines


def outcome(one: Outcome) -> str:
    """Return how a run differs, in one line."""
    detail = f" ({one.detail})" if one.detail and "\n" not in one.detail else ""
    where = f"code cell {one.cell}: " if one.cell else ""
    return f"{where}{KINDS[one.kind]}: {one.text}{detail}"
