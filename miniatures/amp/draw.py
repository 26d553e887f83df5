"""Pictures of mixed precision: a grid of coloured words, a pass, numbers on a line, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, Patch

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.amp.watch_pass import Line, Place, State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cell = tuple[str, str]
"""What a cell says, and its colour's role; an empty role is an outline."""

TYPES = {"float32": "a", "bfloat16": "b", "float16": "f"}
_WIDE, _LETTER = 5.2, 0.083


def box(
    ax: Axes, x: float, y: float, wide: float, high: float, cell: Cell, size: float = 10.5
) -> None:
    """Draw a rounded box with words; `x`, `y` is its lower left corner."""
    says, role = cell
    colour = COLOURS[role or "line"]
    shape = "round,pad=0,rounding_size=0.06"
    if role:
        ax.add_patch(
            FancyBboxPatch((x, y), wide, high, boxstyle=shape, fc=colour, ec="none", alpha=0.22)
        )
    ax.add_patch(FancyBboxPatch((x, y), wide, high, boxstyle=shape, fc="none", ec=colour, lw=1.3))
    ax.text(
        x + wide / 2, y + high / 2, says, ha="center", va="center", fontsize=size, linespacing=1.1
    )


def _canvas(high: float) -> tuple[Figure, Axes]:
    fig = plt.figure(figsize=(_WIDE, high))
    fig.set_layout_engine("none")
    return fig, fig.add_axes((0.005, 0.005, 0.99, 0.99))


def legend(ax: Axes, keys: Mapping[str, str]) -> None:
    """Draw what the colours mean, above the picture."""
    ax.legend(
        handles=[Patch(fc=COLOURS[role], label=says) for role, says in keys.items()],
        ncols=len(keys), loc="upper left", frameon=False, fontsize=10.5, handlelength=0.9,
        columnspacing=1.3, borderaxespad=0,
    )  # fmt: skip


def draw_grid(
    rows: Mapping[str, Sequence[Cell]],
    columns: Sequence[str],
    *,
    keys: Mapping[str, str],
    caption: str = "",
    name: str = "",
    high: float = 0.31,
) -> Display:
    """Draw a table whose cells are coloured by what they mean.

    :param rows: the name of each row with its cells.
    :param keys: what each colour means.
    :param caption: with `name`, as `figure` takes them.
    """
    left = max(len(row) for row in rows) * _LETTER + 0.26
    wide = (_WIDE - left) / len(columns)
    lines = max(column.count("\n") + 1 for column in columns)
    head = (0.2 * lines + 0.06) * any(columns) + 0.3
    with style():
        fig, ax = _canvas(len(rows) * high + head)
        ax.set(xlim=(0, _WIDE), ylim=(-len(rows) * high, head))
        ax.axis("off")
        for at, column in enumerate(columns):
            ax.text(left + (at + 0.5) * wide, 0.05, column, ha="center", va="bottom",
                    fontsize=10.5, color=COLOURS["soft"], linespacing=1.05)  # fmt: skip
        for at, (row, cells) in enumerate(rows.items()):
            low = -(at + 1) * high
            ax.text(left - 0.1, low + high / 2, row, ha="right", va="center", fontsize=10.5)
            for place, cell in enumerate(cells):
                if cell[0]:
                    box(ax, left + place * wide + 0.03, low + 0.03, wide - 0.06, high - 0.06, cell)
        legend(ax, keys)
    said = "; ".join(
        f"{row}: "
        + ", ".join(
            f"{' '.join(column.split())} {' '.join(says.split())}".strip()
            for column, (says, _) in zip(columns, cells, strict=True)
            if says
        )
        for row, cells in rows.items()
    )
    meant = "; ".join(f"{says}: {_these(rows, role)}" for role, says in keys.items())
    return figure(fig, alt=f"{said}. {meant}.", caption=caption, name=name)


def _these(rows: Mapping[str, Sequence[Cell]], role: str) -> str:
    found = [row for row, cells in rows.items() if any(own == role for _, own in cells)]
    return ", ".join(dict.fromkeys(found)) or "none"


def draw_pass(state: State, codes: Sequence[str]) -> Display:
    """Draw a forward pass under autocast at one moment: a row for each call, casts in its boxes.

    :param codes: all calls of the pass, as text.
    """
    high, gap, head = 0.46, 0.29, 0.36
    tall = len(codes) * (high + gap) + 0.7
    with style():
        fig, ax = _canvas(tall + head)
        ax.set(xlim=(0, _WIDE), ylim=(-tall, head))
        ax.axis("off")
        for at, line in enumerate(state.lines):
            _row(ax, line, -(at + 1) * (high + gap), high)
        for at in range(len(state.lines), len(codes)):
            low = -(at + 1) * (high + gap) + high + 0.04
            ax.text(0.03, low, codes[at], va="bottom", fontsize=10.5, family="monospace",
                    color=COLOURS["soft"])  # fmt: skip
        ax.text(0.03, -tall + 0.43, "casts that the region keeps:", va="center", fontsize=10.5,
                color=COLOURS["soft"])  # fmt: skip
        for at, kept in enumerate(state.kept or ["none yet"]):
            role = "b" if state.kept else ""
            box(ax, 0.03 + at * 1.4, -tall + 0.02, 1.35, 0.3, (kept, role))
        legend(ax, {"a": "float32", "b": "bfloat16"})
    said = "; ".join(_words(line) for line in state.lines)
    alt = f"{said or 'Nothing has run'}. Kept casts: {', '.join(state.kept) or 'none'}."
    return figure(fig, alt=alt)


def _row(ax: Axes, line: Line, low: float, high: float) -> None:
    ax.text(0.03, low + high + 0.04, line.code, va="bottom", fontsize=10.5, family="monospace")
    for at, place in enumerate(line.inputs):
        _input(ax, 0.03 + at * 1.72, low, 1.64, high, place)
    ax.text(3.56, low + high / 2, "→", ha="center", va="center", fontsize=13)
    if line.result:
        says = f"{line.result.name}\n{line.result.came}"
        box(ax, 3.74, low, 1.4, high, (says, TYPES[line.result.came]))


def _input(ax: Axes, x: float, low: float, wide: float, high: float, place: Place) -> None:
    if not place.cast:
        box(ax, x, low, wide, high, (f"{place.name}\n{place.came}", TYPES[place.came]))
        return
    half = wide / 2
    how = "kept" if place.kept else "cast"
    box(ax, x, low, half - 0.02, high, (f"{place.name}\n{_bits(place.came)}", TYPES[place.came]))
    box(ax, x + half, low, half, high, (f"{how}\n{_bits(place.cast)}", TYPES[place.cast]))


def _bits(kind: str) -> str:
    return {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}[kind]


def _words(line: Line) -> str:
    inputs = [
        f"{p.name} {p.came}" + (f" {'kept as' if p.kept else 'cast to'} {p.cast}" if p.cast else "")
        for p in line.inputs
    ]
    result = f" gives {line.result.came}" if line.result else " has not run"
    return f"{line.code}: {', '.join(inputs)}{result}"


def draw_bytes(
    bars: Mapping[str, Mapping[str, int]], *, caption: str = "", name: str = ""
) -> Display:
    """Draw what a training step holds, a stacked bar for each way to run it, in MiB."""
    roles = dict(zip(next(iter(bars.values())), "acedbf", strict=False))
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, 0.45 * len(bars) + 1.25))
        for at, parts in enumerate(bars.values()):
            start = 0.0
            for part, size in parts.items():
                ax.barh(-at, size / 2**20, left=start, height=0.62, color=COLOURS[roles[part]],
                        alpha=0.75)  # fmt: skip
                start += size / 2**20
        ax.set_yticks([-at for at in range(len(bars))], list(bars))
        ax.set(xlabel="MiB")
        ax.grid(axis="y", visible=False)
        ax.legend(
            handles=[Patch(fc=COLOURS[role], label=part) for part, role in roles.items()],
            ncols=2, loc="lower left", bbox_to_anchor=(-0.3, 1), frameon=False, fontsize=10.5,
            handlelength=0.9,
        )  # fmt: skip
    said = "; ".join(
        f"{bar}: " + ", ".join(f"{part} {size / 2**20:.2f} MiB" for part, size in parts.items())
        for bar, parts in bars.items()
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)
