"""What a toolkit call shows: HTML for a notebook or the site, text for a terminal, and a record."""

from __future__ import annotations

import ast
import html as _html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from insidetorch.records import RECORD_MIME

_STYLE = re.compile(r"<style data-insidetorch>.*?</style>", re.DOTALL)
_UNITS = {
    "gb s": "GB/s", "tflop s": "TFLOP/s", "gflop s": "GFLOP/s", "us": "µs", "cpu": "CPU",
    "gpu": "GPU", "cuda": "CUDA", "mib": "MiB", "kib": "KiB", "gib": "GiB", "gb": "GB", "mb": "MB",
}  # fmt: skip
_UNIT = re.compile(rf"\b(?:{'|'.join(_UNITS)})\b")
_NUMBER = re.compile(r"(?<![\w.,'\"])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*[\w'\"]|,\d)")
_STARRED = re.compile(r"(?<![\w*])\*([A-Za-z](?:[^*\n]*[A-Za-z.])?)\*(?![\w*])")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ITEMS = 12
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@cache
def style_block() -> str:
    """Return the toolkit's style sheet as an inline block, for notebooks away from the site."""
    css = resources.files("insidetorch").joinpath("display.css").read_text(encoding="utf-8")
    css = " ".join(re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL).split())
    return f"<style data-insidetorch>{css}</style>"


def strip_style(html: str) -> str:
    """Return `html` without the inline style block; the site links the sheet once instead."""
    return _STYLE.sub("", html)


def escape(value: object) -> str:
    """Return `value` as text that is safe inside HTML elements and quoted attributes."""
    return _html.escape(str(value), quote=True)


def code_apart(text: str) -> list[str]:
    """Return the pieces of a text: prose and what stands in backticks, by turns."""
    return re.split(r"`([^`]+)`", text)


def marked(text: str) -> str:
    """Return text as HTML: what stands in backticks is code, a phrase between stars emphasis."""
    pieces = enumerate(map(escape, code_apart(text)))
    return "".join(
        f"<code>{piece}</code>" if n % 2 else _STARRED.sub(r"<em>\1</em>", piece)
        for n, piece in pieces
    )


def plain(text: str) -> str:
    """Return the words of a text that `marked` makes HTML of: without backticks and stars."""
    pieces = enumerate(code_apart(text))
    return "".join(piece if n % 2 else _STARRED.sub(r"\1", piece) for n, piece in pieces)


@dataclass(frozen=True)
class Display:
    """One thing shown.

    :param html: a self-contained fragment without scripts; classes start with ``it-``.
    :param text: the same in plain text, for terminals and for search.
    :param record: what the ledger keeps of it, a JSON object with a ``kind``; None for nothing.
    """

    html: str
    text: str
    record: Mapping[str, Any] | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.text, "text/html": style_block() + self.html}
        if self.record is not None:
            bundle[RECORD_MIME] = dict(self.record)
        return bundle

    def __repr__(self) -> str:
        return self.text


def show(display: Display) -> None:
    """Show `display` where the code runs: as a cell output under IPython, else on stdout."""
    if in_ipython():
        from IPython.display import display as publish

        publish(display)  # type: ignore[no-untyped-call]
    else:
        print(display.text)


def in_ipython() -> bool:
    """Tell whether this code runs in an IPython shell or kernel."""
    import sys

    module = sys.modules.get("IPython")
    return module is not None and module.get_ipython() is not None


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: Sequence[int] = (),
    prose: bool = False,
    record: Mapping[str, Any] | None = None,
) -> Display:
    """Return a table.

    :param header: column titles.
    :param rows: cells; a cell that is a `Display` keeps its own HTML, others are `marked`.
    :param caption: one line above the table.
    :param numeric: indices of the columns aligned to the right.
    :param prose: the cells hold sentences; on a narrow page their columns keep a width to read.
    :param record: what the ledger keeps of it.
    """
    right, rows = set(numeric), list(rows)

    def cell(tag: str, index: int, value: object) -> str:
        body = value.html if isinstance(value, Display) else marked(str(value))
        align = ' class="it-num"' if index in right else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{align}>{body}</{tag}>"

    head = "".join(cell("th" if title else "td", i, title) for i, title in enumerate(header))
    body = "".join(
        "<tr>" + "".join(cell("td", i, value) for i, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    html = (
        '<div class="it it-scroll" tabindex="0" role="group" '
        f'aria-label="{escape(caption or "table")}">'
        f'<table class="it-table{" it-prose" if prose else ""}">{title}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return Display(html, _text_table(header, rows, caption, right), record)


def _text_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], caption: str, right: set[int]
) -> str:
    grid = [list(header)] + [
        [value.text if isinstance(value, Display) else str(value) for value in row] for row in rows
    ]
    widths = [max(len(row[i]) for row in grid) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = (
            value.rjust(width) if i in right else value.ljust(width)
            for i, (value, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * width for width in widths)
    lines = [line(grid[0]), rule, *(line(row) for row in grid[1:])]
    return "\n".join([caption, *lines] if caption else lines)


def facts(values: Mapping[str, str]) -> str:
    """Return what decided a sentence as HTML: a name and a value each, as people write them.

    :param values: name → value, as Python shows it.
    """
    worded = {name: _worded(value) for name, value in values.items()}
    # Numbers that differ stay apart when they are rounded, and none is rounded to a whole one.
    found = {number for value in worded.values() for number in _NUMBER.findall(value)}
    items = "".join(
        f"<div><dt>{escape(_UNIT.sub(lambda unit: _UNITS[unit[0]], name.replace('_', ' ')))}</dt>"
        f"<dd>{escape(_NUMBER.sub(lambda number: _rounded(number[0], found), value))}</dd></div>"
        for name, value in worded.items()
    )
    return f'<dl class="it-values">{items}</dl>' if items else ""


def _worded(value: str) -> str:
    """Return a list or a dictionary without brackets and quotes, long ones cut; others as is."""
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, dict):
        items = [f"{_plain(name)}: {_plain(one)}" for name, one in found.items()]
    elif isinstance(found, list | set | frozenset):
        items = [_plain(one) for one in found]
    else:
        return value
    more = f" … and {len(items) - _ITEMS} more" if len(items) > _ITEMS else ""
    return ("; " if isinstance(found, dict) else ", ").join(items[:_ITEMS]) + more or "none"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _rounded(number: str, others: set[str]) -> str:
    """Return a number to three digits, or to as many as keep it apart from others."""
    if not {".", "e"} & set(number):
        return _grouped(int(number))
    value = float(number)
    rest = {float(other) for other in others} - {value}
    for digits in range(max(3, len(str(int(abs(value))))), 18):
        short = float(f"{value:.{digits}g}")
        whole = short.is_integer() and abs(value) < 10
        apart = all(float(f"{other:.{digits}g}") != short for other in rest)
        if short == value or (apart and not whole):
            break
    if short and not 1e-4 <= abs(short) < 1e9:
        base, _, power = f"{short:.{digits - 1}e}".partition("e")
        return f"{float(base):.15g} × 10{str(int(power)).translate(_RAISED)}"
    return _grouped(int(short)) if short.is_integer() else repr(short)


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f") if abs(number) >= 10_000 else str(number)


def significant(value: float) -> str:
    """Return a number to three significant digits, without an exponent: ``0.0123``, ``12,300``."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    rounded = f"{value:.3g}"
    return f"{float(rounded):.10f}".rstrip("0") if "e" in rounded else rounded


def seconds(value: float) -> str:
    """Return a time with the unit that fits it: ``1.25 µs``."""
    for size, name in _TIMES:
        if abs(value) >= size * 0.9995:
            return f"{significant(value / size)} {name}"
    return f"{significant(value * 1e9)} ns" if value else "0 s"
