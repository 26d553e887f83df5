"""Rows of cells of different widths: memory by places, and who reads which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.patches import Patch, Rectangle

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

Cell = tuple[str, str, int]
"""What a cell says, its colour's role (empty: only outlined), and how many places it spans."""

GAP = ""
"""The text of a cell that is not drawn."""

_WIDE, _HIGH = 4.7, 0.34


def draw_rows(
    rows: Mapping[str, Sequence[Cell]],
    *,
    legend: Mapping[str, str] | None = None,
    top: str = "",
    caption: str = "",
    name: str = "",
    places: int = 0,
) -> Display:
    """Draw named rows of cells, one below the other, over the same places.

    :param rows: each row's name, which stands above it, with its cells from left to right.
    :param legend: what a colour means, by its role.
    :param top: what the columns are, written above the first row.
    :param places: how many places the picture is wide; without it, as many as the longest row.
    """
    most = places or max(sum(span for _, _, span in row) for row in rows.values())
    unit, step = _WIDE / most, _HIGH + 0.32
    head = 0.29 * (bool(legend) + bool(top))
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, len(rows) * step + head))
        ax.set(xlim=(0, _WIDE), ylim=(-len(rows) * step, head))
        ax.axis("off")
        if top:
            ax.text(0, 0.04, top, fontsize=10, va="bottom", color=COLOURS["soft"])
        for at, (title, row) in enumerate(rows.items()):
            low = -(at + 1) * step + 0.05
            ax.text(0.02, low + _HIGH + 0.04, title, fontsize=10.5, va="bottom")
            place = 0
            for said, role, span in row:
                corner, size = (place * unit + 0.02, low), (span * unit - 0.04, _HIGH)
                place += span
                if said == GAP:
                    continue
                colour = COLOURS[role or "line"]
                if role:
                    ax.add_patch(Rectangle(corner, *size, fc=colour, ec="none", alpha=0.22))
                ax.add_patch(Rectangle(corner, *size, fc="none", ec=colour, lw=1.4))
                ax.text(
                    corner[0] + size[0] / 2, low + _HIGH / 2, said, ha="center", va="center",
                    fontsize=10, linespacing=1.1,
                )  # fmt: skip
        if legend:
            ax.legend(
                handles=[Patch(fc=COLOURS[c], label=says) for c, says in legend.items()],
                ncols=len(legend), loc="upper left", frameon=False, fontsize=10,
                handlelength=0.9, borderaxespad=0, columnspacing=1.2,
            )  # fmt: skip
    said_all = "; ".join(
        f"{title}: {', '.join(' '.join(text.split()) or '–' for text, _, _ in row)}"
        for title, row in rows.items()
    )
    meant = "".join(f" {says}: {_words(rows, role)}." for role, says in (legend or {}).items())
    return figure(fig, alt=f"{said_all}.{meant}", caption=caption, name=name)


def _words(rows: Mapping[str, Sequence[Cell]], role: str) -> str:
    found = [" ".join(text.split()) for row in rows.values() for text, own, _ in row if own == role]
    return ", ".join(dict.fromkeys(found)) or "none"
