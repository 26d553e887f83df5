"""The pictures of "How to see inside": layers, what an instrument lists, memory that is held."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.how_to_see_inside.watch_run import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, LINE = (COLOURS[role] for role in ("ink", "soft", "line"))
KINDS = {"function": "a", "operator": "b", "observer": "d"}


def ladder(
    rows: Sequence[tuple[str, str, str]],
    roles: str,
    heads: tuple[str, str, str],
    *,
    wide: tuple[float, float, float] = (1.5, 2.15, 1.6),
    arrows: bool = True,
) -> Display:
    """Draw steps from top to bottom: a box, what is said of it, and a name beside it.

    :param rows: box, words, name.
    :param roles: a colour of the book for each box.
    :param heads: what the three columns are.
    :param wide: inches of each column.
    """
    cells = [
        [textwrap.wrap(text, max(int(inches / 0.082), 8)) for text, inches in
         zip(row, (wide[0] - 0.12, *wide[1:]), strict=True)] for row in rows
    ]  # fmt: skip
    highs = [max(map(len, row)) * 0.185 + 0.17 for row in cells]
    gap, head = 0.13, 0.3
    high = head + sum(highs) + gap * (len(rows) - 1) + 0.03
    ax = _canvas(sum(wide), high)
    starts = (0.0, wide[0] + 0.1, wide[0] + wide[1] + 0.08)
    for x, text in zip((0.06, *starts[1:]), heads, strict=True):
        ax.text(x, high - 0.12, text, fontsize=10, color=SOFT, va="center")
    y = high - head
    for at, (lines, tall, role) in enumerate(zip(cells, highs, roles, strict=True)):
        y -= tall
        _box(ax, 0.0, y, wide[0], tall, COLOURS[role], 0.16)
        for x, words, colour, weight in (
            (0.08, lines[0], INK, "bold"), (starts[1], lines[1], INK, "normal"),
            (starts[2], lines[2], SOFT, "normal"),
        ):  # fmt: skip
            ax.text(x, y + tall / 2, "\n".join(words), fontsize=10, color=colour, va="center",
                    weight=weight, linespacing=1.15)  # fmt: skip
        if arrows and at + 1 < len(rows):
            ax.annotate("", (wide[0] / 2, y - gap), (wide[0] / 2, y), arrowprops={
                "arrowstyle": "->", "color": INK, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        y -= gap
    told = "; ".join(f"{box}: {says}, {name}" if name else f"{box}: {says}"
                     for box, says, name in rows)  # fmt: skip
    return figure(ax.figure, alt=f"From top to bottom, {', '.join(heads)}: {told}.")  # type: ignore[arg-type]


def looked(look: Look, rows: int) -> Display:
    """Draw a run as a tree, the rows that an instrument lists filled.

    :param rows: how many rows the picture has room for.
    """
    step = 0.27
    high = step * (rows + 1) + 0.12
    ax = _canvas(5.0, high)
    ax.text(0.0, high - 0.13, look.title, fontsize=11, weight="bold", color=INK, va="center")
    for at, row in enumerate(look.rows):
        y = high - step * (at + 2)
        x = 0.05 + 0.3 * row.depth
        inside = at in look.listed
        colour = COLOURS[KINDS[row.kind]]
        _box(ax, x, y + 0.02, 2.5, step - 0.05, colour if inside else LINE, 0.3 * inside)
        ax.text(x + 0.1, y + step / 2, row.name, fontsize=10, va="center",
                color=INK if inside else SOFT, weight="bold" if inside else "normal")  # fmt: skip
        if at in look.beside:
            text = "\n".join(textwrap.wrap(look.beside[at], 22))
            ax.text(x + 2.6, y + step / 2, text, fontsize=10, va="center", color=INK)
    listed = [look.rows[at].name for at in sorted(look.listed)]
    said = "; ".join(f"beside {look.rows[at].name}: {text}" for at, text in look.beside.items())
    return figure(
        ax.figure,  # type: ignore[arg-type]
        alt=f"{look.title} lists {len(listed)} of {len(look.rows)} rows"
        f"{': ' if listed else ''}{', '.join(listed)}. {said}",
    )


def held(after: Sequence[int], begins: int, peak: int) -> Display:
    """Draw the bytes that are held after each allocation and release.

    :param after: bytes held, from the start.
    :param begins: the step at which the backward pass begins.
    :param peak: the step after which most is held.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.7))
        thousand = [bytes / 1024 for bytes in after]
        ax.step(range(len(after)), thousand, where="post", color=COLOURS["a"])
        ax.axvline(begins, ls="--", color=COLOURS["b"])
        ax.text(begins + 0.3, max(thousand) * 0.06, "backward", color=COLOURS["b"], fontsize=11)
        ax.plot([peak], [thousand[peak]], "o", color=COLOURS["d"])
        ax.text(peak + 0.5, thousand[peak] * 1.01, f"peak {thousand[peak]:.0f} KiB",
                fontsize=11, va="bottom", color=INK)  # fmt: skip
        ax.set(xlabel="allocations and releases, in order", ylabel="KiB held")
        ax.set_ylim(0, max(thousand) * 1.18)
    return figure(
        fig,
        alt=f"KiB held after each of {len(after) - 1} allocations and releases: it rises to "
        f"{thousand[peak]:.0f} KiB at step {peak} and ends at {thousand[-1]:.0f} KiB. "
        f"The backward pass begins at step {begins}.",
    )


def _canvas(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    with style():
        axes: Axes = plt.subplots(figsize=(width, height))[1]
    axes.set(xlim=(-0.03, width + 0.03), ylim=(-0.03, height))
    axes.set_axis_off()
    return axes


def _box(
    axes: Axes, x: float, y: float, width: float, height: float, colour: str, alpha: float
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=alpha, linewidth=0))
    axes.add_patch(
        Rectangle((x, y), width, height, facecolor="none", edgecolor=colour, linewidth=1.1)
    )
