"""Choosing which lines of a definition are shown; the rest becomes rows that say how many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from insidetorch.errors import BookError
from insidetorch.locate.definition import Definition

Range = tuple[int, int]


@dataclass(frozen=True)
class Row:
    """One row of an excerpt: a line of the file, or a gap.

    :param number: the line's number in the file; of a gap, its first line.
    :param text: the line; "" for a gap.
    :param gap: how many lines are left out here; 0 for a line.
    """

    number: int
    text: str
    gap: int = 0


def choose(
    definition: Definition,
    *,
    lines: Range | Sequence[Range] | None = None,
    start: str | None = None,
    end: str | None = None,
    only: Sequence[str | tuple[str, str]] = (),
    elide: Sequence[tuple[str, str]] = (),
    docstring: bool = False,
) -> list[Row]:
    """Return the rows of an excerpt, gaps included.

    :param lines: first and last line in the file, or several such pairs, instead of all.
    :param start: show from the first line that holds this text.
    :param end: show up to the first line, from there on, that holds this text.
    :param only: of what is left, show the opening, these statements and the closing; each is a
        text on the statement's first line, or a pair of texts on its first and last line.
    :param elide: pairs of texts; the lines strictly between the two that hold them are left out.
    :param docstring: show Python docstrings of more than four lines whole.
    :raises BookError: if a text is not in the definition or a range is outside the file.
    """
    first, last = _span(definition, start, end)
    hidden: set[int] = set()
    if lines is not None:
        shown = _ranges(definition, lines)
        first, last = min(a for a, _ in shown), max(b for _, b in shown)
        hidden |= set(range(first, last + 1)) - {n for a, b in shown for n in range(a, b + 1)}
    if not docstring and lines is None:
        for begin, stop in definition.docstrings:
            if stop - begin > 3 and first <= begin and stop <= last:
                hidden |= set(range(begin + 1, stop + (not _closes_alone(definition, stop))))
    if only:
        keep: set[int] = set(_opening(definition)) | {last}
        for item in only:
            keep |= _statement(definition, item, first, last)
        hidden |= set(range(first, last + 1)) - keep
    for begins, ends in elide:
        top = find_line(definition, begins, first, last)
        bottom = find_line(definition, ends, top + 1, last)
        hidden |= set(range(top + 1, bottom))
    return _rows(definition, first, last, hidden)


def stretches(rows: Sequence[Row]) -> list[Range]:
    """Return first and last line of each stretch without a gap."""
    found: list[Range] = []
    for row in rows:
        if row.gap:
            continue
        if found and found[-1][1] == row.number - 1:
            found[-1] = (found[-1][0], row.number)
        else:
            found.append((row.number, row.number))
    return found


def find_line(definition: Definition, text: str, first: int, last: int) -> int:
    """Return the number of the first line from `first` to `last` that holds `text`.

    :raises BookError: if none does.
    """
    for number in range(first, last + 1):
        if text in definition.lines[number - definition.first]:
            return number
    raise BookError(
        f'"{text}" is not in lines {first} to {last} of {definition.file} '
        f"({definition.symbol}); the source may have changed, choose another text"
    )


def _span(definition: Definition, start: str | None, end: str | None) -> Range:
    first, last = definition.first, definition.last
    if start is not None:
        first = find_line(definition, start, first, last)
    if end is not None:
        last = find_line(definition, end, first, last)
    return first, last


def _ranges(definition: Definition, lines: Range | Sequence[Range]) -> list[Range]:
    pairs: list[Any] = [lines] if lines and isinstance(lines[0], int) else list(lines)
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and [type(n) for n in pair] == [int, int]):
            raise BookError(
                f"lines={lines!r} is not a range; write lines=(first, last) or a list of such pairs"
            )
        if not definition.first <= pair[0] <= pair[1] <= definition.last:
            raise BookError(
                f"lines {pair[0]} to {pair[1]} are not within {definition.symbol}, which is lines "
                f"{definition.first} to {definition.last} of {definition.file}"
            )
    return [(a, b) for a, b in pairs]


def _closes_alone(definition: Definition, number: int) -> bool:
    return definition.lines[number - definition.first].strip() in ('"""', "'''")


def _opening(definition: Definition) -> range:
    """Return the lines up to and with the one that opens the body."""
    for offset, line in enumerate(definition.lines):
        code = re.sub(r"//.*|#.*", "", line).rstrip()
        if code.endswith(("{", ":")) and not code.endswith("::"):
            return range(definition.first, definition.first + offset + 1)
    return range(definition.first, definition.first + 1)


def _statement(
    definition: Definition, item: str | tuple[str, str], first: int, last: int
) -> set[int]:
    if not isinstance(item, str):
        begin = find_line(definition, item[0], first, last)
        return set(range(begin, find_line(definition, item[1], begin, last) + 1))
    begin = find_line(definition, item, first, last)
    depth, quiet = 0, re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*|#.*')
    for number in range(begin, last + 1):
        line = quiet.sub("", definition.lines[number - definition.first]).rstrip()
        depth += sum(line.count(sign) for sign in "([{") - sum(line.count(sign) for sign in ")]}")
        if definition.language == "python":
            if depth <= 0:
                return _block(definition, begin, number, last)
        elif depth < 0:
            return set(range(begin, max(begin, number - 1) + 1))
        elif depth == 0 and (line.endswith((";", "}", ",", ":")) or not line.strip()):
            return set(range(begin, number + 1))
    return {begin}


def _block(definition: Definition, begin: int, head: int, last: int) -> set[int]:
    """Return a Python statement with the block below it, if its head ends with a colon."""

    def text(number: int) -> str:
        return definition.lines[number - definition.first]

    if not re.sub(r"#.*", "", text(head)).rstrip().endswith(":"):
        return set(range(begin, head + 1))
    indent = len(text(begin)) - len(text(begin).lstrip())
    stop = head
    for number in range(head + 1, last + 1):
        line = text(number)
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        if line.strip():
            stop = number
    return set(range(begin, stop + 1))


def _rows(definition: Definition, first: int, last: int, hidden: set[int]) -> list[Row]:
    rows: list[Row] = []
    for number in range(first, last + 1):
        if number not in hidden:
            rows.append(Row(number, definition.lines[number - definition.first]))
        elif rows and rows[-1].gap:
            rows[-1] = Row(rows[-1].number, "", rows[-1].gap + 1)
        else:
            rows.append(Row(number, "", 1))
    return rows
