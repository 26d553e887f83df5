"""One drawing for what the dispatcher keeps: keys as rows, the first served on top."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

_LETTER = 0.083
"""Inches that a letter takes, about."""
_ROW = 0.25
"""Inches from one row to the next."""


@dataclass(frozen=True)
class Kind:
    """What a cell may be, and how it looks: a colour, a sign for those who see none, words.

    :param role: a colour of the book, or empty for a cell that is only outlined.
    :param sign: one or two letters inside the cell.
    :param says: what the legend says.
    """

    role: str
    sign: str
    says: str


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cell: Callable[[str, str], Kind | None],
    *,
    alt: str,
    caption: str = "",
    name: str = "",
    marked: Mapping[str, str] | None = None,
    legend: Sequence[Kind] = (),
    wide: float = 0.8,
) -> Display:
    """Draw a grid; a cell without a kind is empty.

    :param marked: rows with an arrow, and what stands beside each.
    :param legend: the kinds to explain; those that are in the grid unless given.
    :param wide: inches of a column.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    marked = marked or {}
    found = {(r, c): cell(row, column) for r, row in enumerate(rows)
             for c, column in enumerate(columns)}  # fmt: skip
    kinds = list(legend) or list(dict.fromkeys(kind for kind in found.values() if kind))
    heads = [textwrap.fill(column, max(int(wide / _LETTER), 7)) for column in columns]
    head = max(text.count("\n") + 1 for text in heads) * 0.2 + 0.1
    left = max(len(row) * _LETTER * (1.12 if row in marked else 1) for row in rows) + 0.3
    right = max((len(text) for text in marked.values()), default=0) * _LETTER + 0.15
    width = max(left + wide * len(columns) + right, 5.6)
    lines = _wrapped([kind.says for kind in kinds], width)
    high = head + _ROW * len(rows) + _ROW * len(lines) + 0.12
    with style():
        fig = plt.figure(figsize=(width, high))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(high, 0))
        ax.axis("off")

        def box(x: float, y: float, across: float, kind: Kind) -> None:
            colour = COLOURS[kind.role] if kind.role else "none"
            edge = COLOURS[kind.role or "line"]
            shape = "round,pad=0,rounding_size=0.05"
            ax.add_patch(
                FancyBboxPatch((x, y), across, 0.2, boxstyle=shape, facecolor=colour,
                               edgecolor=edge, linewidth=1, alpha=0.85 if kind.role else 1)
            )  # fmt: skip
            text = COLOURS["pane"] if kind.role else COLOURS["ink"]
            ax.text(x + across / 2, y + 0.105, kind.sign, ha="center", va="center", color=text,
                    fontsize=10.5, fontweight="bold" if kind.role else "normal")  # fmt: skip

        for c, text in enumerate(heads):
            middle = left + wide * (c + 0.5)
            ax.text(middle, head - 0.06, text, ha="center", va="bottom", fontsize=10.5,
                    color=COLOURS["soft"], linespacing=1.05)  # fmt: skip
        for r, row in enumerate(rows):
            y = head + _ROW * r
            bold = "bold" if row in marked else "normal"
            ax.text(left - 0.12, y + _ROW / 2, row, ha="right", va="center", fontsize=10.5,
                    fontweight=bold)  # fmt: skip
            ends = [left - 0.05, left + wide * len(columns)]
            ax.plot(ends, [y + _ROW] * 2, color=COLOURS["line"], linewidth=0.4, alpha=0.5)
            if row in marked:
                ax.text(left + wide * len(columns) + 0.08, y + _ROW / 2, marked[row], va="center",
                        fontsize=10.5, color=COLOURS["ink"])  # fmt: skip
            for c in range(len(columns)):
                kind = found[r, c]
                if kind is not None:
                    box(left + wide * c + 0.05, y + 0.025, wide - 0.1, kind)
        for n, line in enumerate(lines):
            x, y = 0.05, head + _ROW * len(rows) + 0.12 + _ROW * n
            for says in line:
                kind = next(kind for kind in kinds if kind.says == says)
                box(x, y, 0.52, kind)
                ax.text(x + 0.6, y + 0.1, says, va="center", fontsize=10.5, color=COLOURS["soft"])
                x += _legend_width(says)
    return figure(fig, alt=alt, caption=caption, name=name)


def _legend_width(says: str) -> float:
    return 0.85 + len(says) * _LETTER


def _wrapped(texts: Sequence[str], width: float) -> list[list[str]]:
    lines: list[list[str]] = [[]]
    used = 0.0
    for says in texts:
        if lines[-1] and used + _legend_width(says) > width:
            lines.append([])
            used = 0.0
        lines[-1].append(says)
        used += _legend_width(says)
    return lines


def in_words(
    rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], Kind | None]
) -> str:
    """Return what a grid says, column by column, for those who do not see it."""
    parts = []
    for column in columns:
        filled = [f"{row}: {kind.says}" for row in rows if (kind := cell(row, column))]
        parts.append(f"{column}: {', '.join(filled) or 'nothing'}")
    return "; ".join(parts) + "."
