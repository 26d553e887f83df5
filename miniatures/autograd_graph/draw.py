"""Pictures of one chapter: a graph that grows, grids of outcomes, bytes kept, who holds whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.autograd_graph.watch import Kept, Row, Stage

Cell = tuple[str, str]
"""What a cell says, and its colour's role, such as ``"a"``."""

_OWNERS = {
    "graph": ("b", "the graph alone holds it"),
    "name": ("a", "a name holds it too"),
    "again": ("line", "counted above"),
}
_MONO = "DejaVu Sans Mono"


def draw_growth(stages: Sequence[Stage]) -> list[tuple[Display, str]]:
    """Draw each stage of a program, with a sentence that says what its line changed."""
    full = max(stages, key=lambda stage: len(stage.rows))
    places = {row.number: at for at, row in enumerate(full.rows)}
    most = max(k.bytes for stage in stages for row in stage.rows for k in row.keeps)
    before: Sequence[Row] = ()
    drawn = []
    for stage in stages:
        drawn.append((_stage(stage, places, most), _change(stage, before)))
        before = stage.rows
    return drawn


def _change(stage: Stage, before: Sequence[Row]) -> str:
    known = {row.number for row in before}
    new = [row for row in stage.rows if row.number not in known]
    if not stage.rows:
        return f"`{stage.line}`: no name leads to the nodes any more, and all of them go."
    if new:
        row = new[0]
        kept = " and ".join(_words(one) for one in row.keeps) or "nothing"
        return f"`{stage.line}` makes `{row.node}`. It keeps {kept}."
    freed = [row.node for row in stage.rows if row.freed]
    return (
        f"`{stage.line}` frees what {len(freed)} nodes kept, {stage.bytes} bytes are left. "
        "The nodes stay."
    )


def _words(kept: Kept) -> str:
    more = ", which is kept above already" if kept.owner == "again" else ""
    return f"`{kept.name}`, {kept.bytes} bytes{more}"


def _stage(stage: Stage, places: Mapping[int, int], most: int) -> Display:
    step, count = 0.54, len(places)
    high = count * step + 1.15
    with style():
        fig, ax = plt.subplots(figsize=(5.2, high))
        ax.set(xlim=(0, 5.2), ylim=(-count * step - 0.67, 0.48))
        ax.axis("off")
        ax.text(0.02, 0.3, f">>> {stage.line}", family=_MONO, fontsize=11, va="center")
        for at in range(count):
            y = -(at + 0.5) * step
            ax.plot([1.25, 5.15], [y - step / 2, y - step / 2], color=COLOURS["line"], lw=0.4)
        for row in stage.rows:
            _row(ax, row, places, most, step)
        ax.text(
            0.02, -count * step - 0.2, f"the graph keeps {stage.bytes} bytes",
            fontsize=11, va="center", weight="bold",
        )  # fmt: skip
        ax.legend(
            handles=[
                Patch(
                    fc=COLOURS[role] if owner != "again" else "none", ec=COLOURS[role],
                    ls="-" if owner != "again" else ":", label=says,
                )
                for owner, (role, says) in _OWNERS.items()
            ],
            ncols=3, loc="lower left", bbox_to_anchor=(-0.02, -0.03), frameon=False, fontsize=10.5,
            handlelength=0.9, columnspacing=0.8, handletextpad=0.4, borderaxespad=0,
        )  # fmt: skip
    named: dict[int | str, str] = {row.number: row.node for row in stage.rows}
    said = "; ".join(
        f"{row.node} points to "
        + (", ".join(named.get(to, str(to)) for to in row.to) or "nothing")
        + ", keeps "
        + ("nothing any more" if row.freed else ", ".join(map(_words, row.keeps)) or "nothing")
        for row in stage.rows
    )
    alt = f"After {stage.line}: {said or 'no nodes'}. The graph keeps {stage.bytes} bytes."
    return figure(fig, alt=alt.replace("`", ""))


def _row(ax: Axes, row: Row, places: Mapping[int, int], most: int, step: float) -> None:
    y = -(places[row.number] + 0.5) * step
    _box(ax, 1.25, y, 1.75, row.node, "a")
    for target in row.to:
        if isinstance(target, str):
            _box(ax, 0.05, y, 0.7, f"leaf {target}", "c")
            start, end = (1.25, y), (0.75, y)
        else:
            start = (2.1, y + 0.2)
            end = (2.1, -(places[target] + 0.5) * step - 0.2)
        ax.annotate(
            "", end, start, arrowprops={"arrowstyle": "->", "color": COLOURS["soft"], "lw": 1.3}
        )
    left = 3.15
    if row.freed:
        ax.text(left, y, "freed", va="center", fontsize=10.5, color=COLOURS["soft"], style="italic")
    for kept in row.keeps:
        role = _OWNERS[kept.owner][0]
        wide = max(0.5, 0.94 * kept.bytes / most)
        ax.add_patch(
            Rectangle((left, y - 0.22), wide, 0.44, fc=COLOURS[role], ec="none",
                      alpha=0.28 if kept.owner != "again" else 0.12)
        )  # fmt: skip
        ax.add_patch(
            Rectangle((left, y - 0.22), wide, 0.44, fc="none", ec=COLOURS[role], lw=1.4,
                      ls="-" if kept.owner != "again" else ":")
        )  # fmt: skip
        says = f"{kept.name}\n{kept.bytes} B"
        ax.text(left + wide / 2, y, says, ha="center", va="center", fontsize=10.5, linespacing=1.05)
        left += wide + 0.08


def _box(ax: Axes, left: float, y: float, wide: float, says: str, role: str) -> None:
    look: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.08", "linewidth": 1.5}
    corner = (left, y - 0.19)
    ax.add_patch(
        FancyBboxPatch(corner, wide, 0.38, fc=COLOURS[role], ec="none", alpha=0.14, **look)
    )
    ax.add_patch(FancyBboxPatch(corner, wide, 0.38, fc="none", ec=COLOURS[role], **look))
    ax.text(left + wide / 2, y, says, ha="center", va="center", fontsize=10.5)


def draw_grid(
    columns: Sequence[str],
    rows: Mapping[str, Sequence[Cell]],
    *,
    legend: Mapping[str, str],
    first: float = 1.75,
    code: bool = True,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw a table of coloured cells: a row for each thing tried, a column for each answer.

    :param legend: what a colour means, by its role.
    :param first: how wide the names of the rows are, in inches of 5.2.
    :param code: the names of the rows are code.
    """
    step, wide = 0.37, (5.2 - first) / len(columns)
    with style():
        fig, ax = plt.subplots(figsize=(5.2, len(rows) * step + 0.72))
        ax.set(xlim=(0, 5.2), ylim=(-len(rows) * step - 0.02, 0.7))
        ax.axis("off")
        for at, column in enumerate(columns):
            ax.text(
                first + (at + 0.5) * wide, 0.07, column, ha="center", va="bottom", fontsize=10.5,
                color=COLOURS["soft"], linespacing=1.05,
            )  # fmt: skip
        for at, (title, cells) in enumerate(rows.items()):
            y = -(at + 0.5) * step
            ax.text(
                0.0, y, title, va="center", fontsize=10.5, family=_MONO if code else "sans-serif"
            )
            for place, (says, role) in enumerate(cells):
                corner = (first + place * wide + 0.03, y - step / 2 + 0.03)
                size = (wide - 0.06, step - 0.06)
                ax.add_patch(Rectangle(corner, *size, fc=COLOURS[role], ec="none", alpha=0.2))
                ax.add_patch(Rectangle(corner, *size, fc="none", ec=COLOURS[role], lw=1.3))
                ax.text(
                    first + (place + 0.5) * wide, y, says, ha="center", va="center", fontsize=10.5
                )
        ax.legend(
            handles=[Patch(fc=COLOURS[role], label=says) for role, says in legend.items()],
            ncols=len(legend), loc="upper left", frameon=False, fontsize=10.5, handlelength=0.9,
            columnspacing=1.2, borderaxespad=0,
        )  # fmt: skip
    said = "; ".join(
        f"{title}: "
        + ", ".join(
            f"{' '.join(column.split())} {says}"
            for column, (says, _) in zip(columns, cells, strict=True)
        )
        for title, cells in rows.items()
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_bars(
    rows: Mapping[str, Mapping[str, float]],
    *,
    unit: str,
    roles: Mapping[str, str],
    code: bool = True,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw a horizontal bar for each row, stacked of named parts.

    :param unit: what the numbers count.
    :param roles: the colour's role of each part, by its name; the legend shows them.
    """
    total = {title: sum(parts.values()) for title, parts in rows.items()}
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.31 * len(rows) + 1.05))
        for at, (title, parts) in enumerate(rows.items()):
            left = 0.0
            for part, size in parts.items():
                ax.barh(at, size, left=left, height=0.62, color=COLOURS[roles[part]])
                left += size
            ax.text(
                left, at, f" {total[title]:,.0f}", va="center", fontsize=10.5, color=COLOURS["ink"]
            )
        ax.set_yticks(range(len(rows)), list(rows), fontsize=10.5)
        if code:
            for label in ax.get_yticklabels():
                label.set_fontfamily(_MONO)
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.set(xlabel=unit, xlim=(0, 1.2 * max(total.values())))
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        if len(roles) > 1:
            ax.legend(
                handles=[Patch(fc=COLOURS[role], label=part) for part, role in roles.items()],
                ncols=len(roles), loc="lower left", bbox_to_anchor=(0, 1), frameon=False,
                fontsize=10.5, handlelength=0.9, borderaxespad=0.2,
            )  # fmt: skip
    said = "; ".join(
        f"{title}: {', '.join(f'{part} {size:,.0f}' for part, size in parts.items() if size) or 0}"
        for title, parts in rows.items()
    )
    return figure(fig, alt=f"{unit}. {said}.", caption=caption, name=name)


_HOLDERS = {
    "result": (0.75, 1.45, "a"), "input": (2.6, 1.45, "a"), "leaf": (4.45, 1.45, "c"),
    "node": (0.75, 0.45, "b"), "node before": (2.6, 0.45, "b"), "leaf's node": (4.45, 0.45, "b"),
}  # fmt: skip


def draw_holds(found: Mapping[tuple[str, str], bool], caption: str = "", name: str = "") -> Display:
    """Draw who keeps whom alive: an arrow where it was seen, a dashed one where it was not."""
    looks = {True: ("ink", "-", "keeps alive"), False: ("f", "--", "does not")}
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.45))
        ax.set(xlim=(0, 5.2), ylim=(-0.35, 2.1))
        ax.axis("off")
        for title, (x, y, role) in _HOLDERS.items():
            _box(ax, x - 0.62, y, 1.24, title, role)
        for (holder, held), alive in found.items():
            colour, line, _ = looks[alive]
            (x, y, _r), (to_x, to_y, _s) = _HOLDERS[holder], _HOLDERS[held]
            bent = "arc3"
            if x == to_x:  # up and down between the same two: side by side
                shift = 0.28 if y > to_y else -0.28
                start, end = (x - shift, y), (to_x - shift, to_y)
                up = 0.21 if to_y > y else -0.21
                start, end = (start[0], start[1] + up), (end[0], end[1] - up)
            elif y != to_y:
                start, end = (x + 0.4, y + 0.21), (to_x - 0.4, to_y - 0.21)
            elif to_x - x > 2:  # over a box between them
                start, end, bent = (x, y - 0.2), (to_x, to_y - 0.2), "arc3,rad=0.22"
            else:
                start, end = (x + 0.62, y), (to_x - 0.62, to_y)
            ax.annotate(
                "", end, start,
                arrowprops={"arrowstyle": "-|>", "color": COLOURS[colour], "lw": 1.6,
                            "ls": line, "connectionstyle": bent, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
        ax.legend(
            handles=[
                Line2D([], [], color=COLOURS[colour], ls=line, lw=1.6, label=says)
                for colour, line, says in looks.values()
            ],
            ncols=2, loc="upper left", frameon=False, fontsize=10.5, handlelength=2,
            borderaxespad=0,
        )  # fmt: skip
    said = "; ".join(
        f"{holder} {'keeps' if alive else 'does not keep'} {held} alive"
        for (holder, held), alive in found.items()
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_steps(
    steps: Sequence[tuple[str, str, bool]], caption: str = "", name: str = ""
) -> Display:
    """Draw the steps of one call from top to bottom.

    :param steps: what is done, the code that does it, and whether a call that is not recorded
        does it too.
    """
    step = 0.48
    with style():
        fig, ax = plt.subplots(figsize=(5.2, len(steps) * step + 0.35))
        ax.set(xlim=(0, 5.2), ylim=(-len(steps) * step, 0.35))
        ax.axis("off")
        for at, (says, code, always) in enumerate(steps):
            y, role = -(at + 0.5) * step, "a" if always else "b"
            _box(ax, 0.05, y, 2.5, f"{at + 1}. {says}", role)
            ax.text(2.68, y, code, va="center", fontsize=10.5, family=_MONO)
            if at + 1 < len(steps):
                ax.annotate(
                    "", (1.2, y - step + 0.19), (1.2, y - 0.19),
                    arrowprops={"arrowstyle": "->", "color": COLOURS["soft"], "lw": 1.2},
                )  # fmt: skip
        ax.legend(
            handles=[
                Patch(fc=COLOURS["a"], label="each call"),
                Patch(fc=COLOURS["b"], label="a recorded call only"),
            ],
            ncols=2, loc="upper left", frameon=False, fontsize=10.5, handlelength=0.9,
            borderaxespad=0,
        )  # fmt: skip
    said = "; ".join(
        f"{at}. {says}, {code}{'' if always else ', only if recorded'}"
        for at, (says, code, always) in enumerate(steps, 1)
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_lines(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x: str,
    y: str,
    caption: str = "",
    name: str = "",
) -> Display:
    """Plot points joined by lines, a curve for each name; equal curves stay visible."""
    looks = [("o", "-", 5.5), ("s", "--", 1.8), ("^", "-", 1.8), ("d", ":", 1.8)]
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.9))
        for (title, points), (mark, line, wide) in zip(curves.items(), looks, strict=False):
            across, up = zip(*points, strict=True)
            ax.plot(across, up, line, marker=mark, lw=wide, label=title, alpha=0.8)
        ax.set(xlabel=x, ylabel=y)
        ax.legend(loc="upper left", frameon=False, fontsize=10.5)
    said = "; ".join(
        f"{title}: {', '.join(f'{up:g} at {across:g}' for across, up in points)}"
        for title, points in curves.items()
    )
    return figure(fig, alt=f"{y} against {x}. {said}.", caption=caption, name=name)
