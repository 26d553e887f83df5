"""Pictures of who steps in where: doors, levels, a wrapper, a Jacobian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, PALETTE, figure, style
from miniatures.modes_and_transforms.watch import Moment

KINDS = {"Vmap": "a", "Grad": "b", "Jvp": "d"}
"""The colour of a level."""


def _canvas(width: float, high: float) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    fig = plt.figure(figsize=(width, high))
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(high, 0))
    ax.axis("off")
    return fig, ax


def _box(ax: Any, x: float, y: float, w: float, h: float, role: str, text: str = "",
         **how: Any) -> None:  # fmt: skip
    from matplotlib.patches import FancyBboxPatch

    full = how.pop("full", True)
    shape = "round,pad=0,rounding_size=0.06"
    colour = COLOURS[role] if role else "none"
    ax.add_patch(
        FancyBboxPatch((x, y), w, h, boxstyle=shape, linewidth=1.2,
                       facecolor=colour if full else "none", edgecolor=COLOURS[role or "line"],
                       alpha=0.88 if full and role else 1)
    )  # fmt: skip
    ink = COLOURS["pane"] if role and full else COLOURS["ink"]
    ax.text(x + w / 2, y + h / 2, text, ha="center", va="center", color=ink, **how)


def draw_doors(rows: Sequence[tuple[str, str, str, bool]], **picture: Any) -> Display:
    """Draw what stands between a line of Python and the kernels, the first on top.

    :param rows: what stands there, what was seen there, in words, and whether Python can step in.
    """
    width, row = 6.4, 0.43
    high = row * len(rows) + 0.1
    with style():
        fig, ax = _canvas(width, high)
        for n, (what, seen, _, open_) in enumerate(rows):
            y = 0.06 + row * n
            _box(ax, 0.1, y, 2.9, row - 0.16, "b" if open_ else "", what, fontsize=10.5,
                 fontweight="bold" if open_ else "normal", full=open_)  # fmt: skip
            ax.text(3.15, y + (row - 0.16) / 2, seen, va="center", fontsize=10.5)
            if n:
                ax.annotate(
                    "", (1.55, y), (1.55, y - 0.16),
                    arrowprops={"arrowstyle": "-|>", "color": COLOURS["soft"]},
                )  # fmt: skip
    said = "; ".join(f"{what}: {words or seen}" for what, seen, words, _ in rows)
    return figure(fig, alt=f"From top to bottom. {said}.", **picture)


def moment(at: Moment, among: Sequence[Moment]) -> Display:
    """Draw one state of a run under transforms: the levels in force, and the value.

    :param among: all states, which are drawn to the same size.
    """
    width, row = 6.2, 0.34
    most = max(len(each.stack) for each in among)
    deep = max(len(each.layers) for each in among)
    high = 0.4 + row * max(most, deep) + 0.12
    with style():
        fig, ax = _canvas(width, high)
        ax.text(0.1, 0.2, "levels in force", va="center", fontsize=10.5, color=COLOURS["soft"])
        ax.text(2.2, 0.2, at.name, va="center", fontsize=10.5, fontweight="bold")
        bottom = 0.4 + row * max(most, deep)
        for n, (number, kind) in enumerate(at.stack):
            y = bottom - row * (n + 1)
            _box(ax, 0.1, y, 1.7, row - 0.06, KINDS.get(kind, "c"), f"{number}  {kind.lower()}",
                 fontsize=10.5, fontweight="bold")  # fmt: skip
        if not at.stack:
            ax.text(0.1, bottom - row / 2, "none", va="center", fontsize=10.5)
        for n, layer in enumerate(at.layers):
            y = 0.4 + row * n
            role = "a" if "vmap" in layer else "b" if "grad" in layer else ""
            _box(ax, 2.2 + 0.22 * n, y, 3.8 - 0.44 * n, row - 0.06, role, layer, fontsize=10,
                 full=bool(role))  # fmt: skip
    stack = ", ".join(f"{number} {kind}" for number, kind in at.stack) or "none"
    value = "; inside it ".join(at.layers) or "nothing shown"
    return figure(fig, alt=f"{at.name}. Levels in force: {stack}. The value: {value}.")


def wrapper(outer: Mapping[str, str], held: Mapping[str, str], **picture: Any) -> Display:
    """Draw a wrapper subclass: what the outside says of itself, and the tensor that it holds."""
    width, row = 6.2, 0.26
    rows = max(len(outer), len(held))
    high = row * rows + 1.0
    with style():
        fig, ax = _canvas(width, high)
        _box(ax, 0.08, 0.08, width - 0.16, high - 0.16, "b", full=False)
        _box(ax, 3.3, 0.5, 2.7, high - 0.72, "a", full=False)
        ax.text(0.25, 0.3, "the wrapper", fontsize=11, fontweight="bold", va="center")
        ax.text(3.45, 0.72, "the tensor it holds", fontsize=11, fontweight="bold", va="center")
        for n, (name, value) in enumerate(outer.items()):
            ax.text(0.25, 0.68 + row * n, f"{name}: {value}", fontsize=10.5, va="center")
        for n, (name, value) in enumerate(held.items()):
            ax.text(3.45, 1.06 + row * n, f"{name}: {value}", fontsize=10.5, va="center")
    said = "; ".join(f"{k} {v}" for k, v in outer.items())
    inside = "; ".join(f"{k} {v}" for k, v in held.items())
    return figure(fig, alt=f"The wrapper says: {said}. The tensor inside has: {inside}.", **picture)


def growth(sizes: Sequence[int], counts: Mapping[str, Sequence[int]], **picture: Any) -> Display:
    """Draw how many operators run, by the size of the batch, for several ways to run it."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.6, 3.2))
        for n, (way, found) in enumerate(counts.items()):
            ax.plot(sizes, found, "osD^"[n], linestyle="-", color=PALETTE[n], label=way)
        ax.set(xlabel="rows in the batch", ylabel="operators that ran", xscale="log", yscale="log")
        ax.set_xticks(list(sizes), [str(size) for size in sizes])
        ax.minorticks_off()
        ax.legend()
    said = "; ".join(f"{way}: {', '.join(map(str, found))}" for way, found in counts.items())
    return figure(fig, alt=f"Operators for {', '.join(map(str, sizes))} rows. {said}.", **picture)


def jacobian(rows: int, columns: int, **picture: Any) -> Display:
    """Draw a Jacobian twice: cut into rows, as `jacrev` makes it, and into columns."""
    cell, gap = 0.3, 0.9
    width = 2 * columns * cell + gap + 0.5
    width = max(width, 5.2)
    high = rows * cell + 0.75
    with style():
        fig, ax = _canvas(width, high)
        for at, (name, along) in enumerate((("jacrev", "rows"), ("jacfwd", "columns"))):
            left = 0.25 + at * (columns * cell + gap)
            ax.text(left, 0.22, f"{name}: {rows if at == 0 else columns} {along}", fontsize=11,
                    fontweight="bold", va="center")  # fmt: skip
            for n in range(rows if at == 0 else columns):
                role = "abcdef"[n % 6]
                if at == 0:
                    _box(ax, left, 0.45 + n * cell, columns * cell, cell - 0.05, role)
                else:
                    _box(ax, left + n * cell, 0.45, cell - 0.05, rows * cell, role)
    alt = (f"A Jacobian with {rows} rows and {columns} columns: jacrev makes it row by row, "
           f"jacfwd column by column.")  # fmt: skip
    return figure(fig, alt=alt, **picture)
