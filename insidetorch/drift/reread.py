"""What a person should read again: findings ranked by the sentence of the book that rests on them.

First comes what is gone, then what a page shows, then what its sentences name or its cells call.
The rest is folded, and what only stands somewhere behind a public name is counted. What was
executed on the release, and held, comes after what was not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from insidetorch.drift import findings as kinds
from insidetorch.drift.changes import IMPORTS, WORDING, Change
from insidetorch.drift.findings import Finding
from insidetorch.drift.outcomes import text_id
from insidetorch.drift.prose import Prose, Sentence
from insidetorch.drift.reasons import Reason
from insidetorch.drift.run import Result
from insidetorch.drift.spoken import (
    EVERYWHERE,
    about_shown,
    concerns,
    dated_sentence,
    names_file,
    nearest,
    own_name,
    quoting,
    shows_best,
    speaks_of,
    weight,
    words_of,
)

FIRST_PAGE = 40
_LINES = 3
_COMMON = 4
_LONG = 6


class Level(IntEnum):
    """How near a change is to what a reader sees."""

    GONE = 0
    SHOWN = 1
    NAMED = 2
    REST = 3
    COUNTED = 4


@dataclass(frozen=True)
class Rest:
    """One place in the book that rests on a definition.

    :param text: the sentence; "" where no sentence speaks of it.
    :param line: where its paragraph, or else the cell, begins in the chapter's file; 0 if that is
        not known.
    :param section: the number of the section it stands in, -1 if that is not known.
    :param exact: whether the sentence names what changed, not the definition alone.
    :param claims: what is checked there, by `text_id`: it, or the claims of its section.
    :param held: whether all these were executed on the release and held.
    """

    chapter: str
    text: str = ""
    line: int = 0
    section: int = -1
    exact: bool = False
    claims: tuple[str, ...] = ()
    held: bool = False


@dataclass(frozen=True)
class Item:
    """A definition that became another one, with what rests on it.

    :param why: what kind of change it is, in a word or two.
    :param target: what the book calls it.
    :param file: where it was.
    :param now: where it is; "" if it is gone.
    :param old: at most three lines as they were, beside `new`.
    :param said: what else is to be said, one line each.
    :param shown: the changed lines that pages show, as a difference.
    :param rests: what rests on it, what matters most first.
    :param reason: why the authors let it stand; "" if they have not said.
    :param late: whether the first page ended before it.
    """

    level: Level
    why: str
    target: str
    file: str
    now: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    said: tuple[str, ...]
    shown: tuple[str, ...]
    rests: tuple[Rest, ...]
    reason: str = ""
    late: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """The chapter and section that have to be read because of it."""
        return self.rests[0].chapter, self.rests[0].section

    @property
    def first_page(self) -> bool:
        """Whether it has to be read first."""
        return self.level < Level.REST and not (self.reason or self.late)


def items(findings: Iterable[Finding], prose: Mapping[str, Prose]) -> list[Item]:
    """Return one item for each definition that is another one.

    :param prose: the chapters, by document.
    """
    found: dict[tuple[str, str, str], list[Item]] = {}
    for finding in findings:
        anchor = finding.anchor
        named = "" if finding.file and anchor.sha256 else anchor.target
        for item in _of_chapters(finding, prose):
            found.setdefault((anchor.file, anchor.symbol, named), []).append(item)
    made: dict[object, list[Item]] = {}
    for item in map(_together, found.values()):
        # A change in a method stands in its class too.
        same = (item.file, item.old, item.new) if item.level == Level.NAMED else id(item)
        made.setdefault(same, []).append(item)
    return _kin(map(_together, made.values()))


def _of_chapters(finding: Finding, prose: Mapping[str, Prose]) -> list[Item]:
    """Return an item for a finding, of what the toolkit rests on one for each that speaks of it."""
    anchor = finding.anchor
    if prose.get(anchor.chapter, Prose()).said:
        made = _item(finding, prose[anchor.chapter])
        return [made] if made else []
    spoken = []
    for doc, said in prose.items():
        made = _item(replace(finding, anchor=replace(anchor, chapter=doc)), said)
        if made and made.level < Level.REST and made.rests[0].exact:
            spoken.append(made)
    made = _item(finding, Prose())
    return spoken or ([made] if made else [])


def _kin(made: Iterable[Item]) -> list[Item]:
    """Return items with those that one change made in several places as one.

    One change: what callers notice is the same, or the same names took the place of others.
    """
    found: dict[object, list[Item]] = {}
    for item in made:
        found.setdefault(_one_change(item) or id(item), []).append(item)
    return [replace(_together(group), said=_said(group)) for group in found.values()]


def _one_change(item: Item) -> object:
    if item.level not in (Level.SHOWN, Level.NAMED):
        return None
    for said in item.said:
        name = (parts := said.split(": "))[2:3]
        if parts[1:2] == [item.why] and name and len(name[0]) > _COMMON:
            return tuple(parts[1:])
    if not (item.old and item.new):
        return None
    old, new = (set(re.findall(r"[^\W\d]\w+", lines[0])) for lines in (item.old, item.new))
    gone, came = frozenset(old - new), frozenset(new - old)
    return (gone, came) if any(len(name) > _LONG for name in gone) and came else None


def _said(group: Sequence[Item]) -> tuple[str, ...]:
    first, *others = sorted(group, key=lambda item: (item.level, not item.rests[0].exact))
    also = [item.target for item in others if item.target != first.target]
    return (*first.said, *([f"the same change: {', '.join(also)}"] if also else []))


def placed(
    found: Iterable[Item], release: str, ran: Result | None, reasons: Sequence[Reason]
) -> list[Item]:
    """Return items in the order in which they have to be read, all after the first page as late.

    That has `FIRST_PAGE` places of the book, with all that changed there.

    :param ran: the book as it was executed on the release, if it was.
    """
    put = []
    for item in found:
        rests = item.rests
        if ran:
            rests = tuple(replace(rest, held=_held(rest, ran)) for rest in rests)
        about = (one for one in reasons if one.release == release)
        reason = next((one.reason for one in about if item.target.startswith(one.about)), "")
        put.append(replace(item, rests=rests, reason=reason, late=False))
    put.sort(key=_rank)
    read = [item for item in put if item.first_page]
    room = {item.place for item in read if item.level is Level.GONE}
    for item in read:
        if len(room) < FIRST_PAGE:
            room.add(item.place)
    return [replace(item, late=item.first_page and item.place not in room) for item in put]


def _held(rest: Rest, ran: Result) -> bool:
    return bool(rest.claims) and set(rest.claims) <= set(ran.held.get(rest.chapter, ()))


def _rank(item: Item) -> tuple[object, ...]:
    held = all(rest.held for rest in item.rests)
    spoken = not any(rest.text for rest in item.rests)
    exact = any(rest.exact for rest in item.rests)
    return (
        not item.first_page, item.level == Level.COUNTED, held, item.level, spoken, not exact,
        item.target,
    )  # fmt: skip


def _together(group: Sequence[Item]) -> Item:
    """Return the items of one definition as one: the nearest to a reader, with all that rests."""
    first, *others = sorted(group, key=lambda item: (item.level, not item.rests[0].exact))
    # A place that only happens to use it is no reason to read the page.
    near = [rest for one in others if one.level == first.level for rest in one.rests]
    return replace(first, rests=tuple(dict.fromkeys([*first.rests, *near])))


def _item(finding: Finding, prose: Prose) -> Item | None:
    anchor = finding.anchor
    if isinstance(finding, kinds.Gone):
        said = (finding.said, *(f"perhaps now {near}" for near in finding.near))
        return _made(Level.GONE, "gone", finding, None, said, prose, nearest(anchor, prose))
    if isinstance(finding, kinds.Moved):
        named = names_file(anchor, prose)
        level = Level.NAMED if named and anchor.kind == "excerpt" else (
            Level.REST if anchor.kind == "excerpt" else Level.COUNTED
        )  # fmt: skip
        said = (finding.said or f"now in {finding.file}",)
        return _made(level, "moved", finding, None, said, prose, named)
    if isinstance(finding, kinds.Derivative):
        change = finding.changes[0] if finding.changes else None
        said = (finding.said,)
        return _made(Level.REST, "derivative changed", finding, change, said, prose, None)
    if isinstance(finding, kinds.Changed):
        return _changed(finding, prose)
    return None


def _changed(finding: Finding, prose: Prose) -> Item:
    anchor = finding.anchor
    change: Change | None
    own = re.escape(own_name(anchor.symbol or anchor.target))
    used = bool(anchor.cells) and anchor.kind == "api"
    calls = [one for one in finding.breakages if concerns(one, anchor.symbol, prose, used)]
    near = frozenset(name for one in prose.near(anchor.cells) for name in one.names)
    shown = [
        change
        for change in finding.changes
        if change.shown
        and (change.why != IMPORTS or near & set(change.only))
        and (change.why != WORDING or quoting(change, prose))
    ]
    named = [
        (change, sentence)
        for change in finding.changes
        if change not in shown and (sentence := speaks_of(change, finding, prose))
    ]
    said = (*tuple(map(str, calls or finding.breakages))[:4], finding.said)
    if shown:
        change = max(shown, key=lambda one: weight(one, finding, prose))
        sentence = about_shown(change, anchor, prose)
        why = calls[0].why if calls else change.why
        return _made(Level.SHOWN, why, finding, change, said, prose, sentence)
    if calls or named or (finding.said and "warn" not in finding.said and anchor.cells):
        told = named and not calls
        change = named[0][0] if told else shows_best(calls, finding.changes)
        sentence = named[0][1] if told else nearest(anchor, prose, calls)
        why = calls[0].why if calls else change.why if named and change else "deprecated"
        return _made(Level.NAMED, why, finding, change, said, prose, sentence)
    change = shows_best(finding.breakages, finding.changes)
    if anchor.cells and change and re.match(rf"{own}\s*[:=]", "".join(change.old)):
        # An option or a constant that a cell sets or reads.
        sentence = nearest(anchor, prose)
        return _made(Level.NAMED, change.why, finding, change, said, prose, sentence)
    why = finding.breakages[0].why if finding.breakages else change.why if change else "changed"
    dated = dated_sentence(anchor, prose)
    # A parameter of which no sentence speaks and a new member are no reason to doubt it.
    doubtful = [one for one in finding.changes if one.old and one.why not in (IMPORTS, WORDING)]
    if doubtful and not finding.breakages and dated in prose.near(anchor.cells):
        return _made(Level.NAMED, why, finding, change, said, prose, dated)
    level = Level.REST if anchor.kind == "excerpt" or finding.breakages else Level.COUNTED
    return _made(level, why, finding, change, said, prose, nearest(anchor, prose))


def _made(
    level: Level, why: str, finding: Finding, change: Change | None, said: Iterable[str],
    prose: Prose, sentence: Sentence | None,
) -> Item:  # fmt: skip
    anchor = finding.anchor
    claims = [one for one in prose.near(anchor.cells) if one.kind == "claim"]
    section = prose.section(anchor.cells)
    rest = Rest(anchor.chapter, line=prose.line(anchor.cells), section=section)
    if sentence is not None:
        claims = [sentence] if sentence.kind == "claim" else claims
        words = {*(change.names if change else ()), *(one.name for one in finding.breakages)}
        words -= EVERYWHERE | set(words_of(anchor.target))
        exact = bool(words & sentence.names) or bool(sentence.at)
        rest = Rest(anchor.chapter, sentence.text, sentence.line, sentence.section, exact)
    rest = replace(rest, claims=tuple(text_id(one.text) for one in claims))
    page = [
        line
        for one in finding.changes
        if one.shown
        for line in (*(f"-{row}" for row in one.old), *(f"+{row}" for row in one.new), "")
    ]
    return Item(
        level, why, anchor.target, anchor.file, finding.file,
        change.old[:_LINES] if change else (), change.new[:_LINES] if change else (),
        tuple(filter(None, said)), tuple(page[:-1]), (rest,),
    )  # fmt: skip
