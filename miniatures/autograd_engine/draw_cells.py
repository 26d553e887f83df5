"""Rows of cells: lanes of threads, buffers that fill up, places that share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.patches import Patch, Rectangle

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

Cell = tuple[str, str]
"""What a cell says, and its colour's role, such as ``"a"``; an empty text is a gap."""


def draw_cells(
    rows: Mapping[str, Sequence[Cell]],
    *,
    legend: Mapping[str, str] | None = None,
    top: str = "",
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw named rows of cells, one below the other.

    :param rows: each row's name, which stands above it, with its cells from left to right.
    :param legend: what a colour means, by its role.
    :param top: what the columns are, written above the first row.
    :param caption: with `name`, as `figure` takes them.
    """
    most = max(len(row) for row in rows.values())
    wide, high, step = 5.2 / most, 0.4, 0.72
    head = 0.3 * (bool(legend) + bool(top))
    with style():
        fig, ax = plt.subplots(figsize=(5.2, len(rows) * step + head))
        ax.set(xlim=(0, 5.2), ylim=(-len(rows) * step, head))
        ax.axis("off")
        if top:
            ax.text(0, 0.06, top, fontsize=10, va="bottom", color=COLOURS["soft"])
        for at, (title, row) in enumerate(rows.items()):
            low = -(at + 1) * step + 0.06
            ax.text(0.02, low + high + 0.05, title, fontsize=10.5, va="bottom")
            for place, (said, role) in enumerate(row):
                if not said:
                    continue
                corner = (place * wide + 0.03, low)
                size = (wide - 0.06, high)
                ax.add_patch(Rectangle(corner, *size, fc=COLOURS[role], ec="none", alpha=0.2))
                ax.add_patch(Rectangle(corner, *size, fc="none", ec=COLOURS[role], lw=1.5))
                ax.text(
                    place * wide + wide / 2, low + high / 2, said, ha="center", va="center",
                    fontsize=10, linespacing=1.1,
                )  # fmt: skip
        if legend:
            ax.legend(
                handles=[Patch(fc=COLOURS[c], label=says) for c, says in legend.items()],
                ncols=len(legend), loc="upper left", frameon=False, fontsize=10,
                handlelength=0.9, borderaxespad=0,
            )  # fmt: skip
    said = "; ".join(
        f"{title}: {', '.join(' '.join(text.split()) or '–' for text, _ in row)}"
        for title, row in rows.items()
    )
    meant = "".join(f" {says}: {_words(rows, role)}." for role, says in (legend or {}).items())
    return figure(fig, alt=f"{said}.{meant}", caption=caption, name=name)


def _words(rows: Mapping[str, Sequence[Cell]], role: str) -> str:
    found = [" ".join(said.split()) for row in rows.values() for said, own in row if own == role]
    return ", ".join(dict.fromkeys(found)) or "none"
