"""The pictures of "Inductor": nests that are fused, in the order of the scheduler's decisions."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.inductor.watch import Stages

_WIDE = 5.2
State = tuple[Display, str]


def fusing(seen: Stages) -> list[State]:
    """Return a picture and a sentence for each decision of the scheduler, for a replay.

    :param seen: nests that have operators, with decisions; a reason against a fusion is quoted.
    """
    groups = [[number] for number in range(len(seen.nests))]
    states = [(_nests(seen, groups), f"Before: {len(groups)} nests, one for each buffer.")]
    for one, other, what in seen.decisions:
        pair = [int(number) for number in f"{one}+{other}".split("+")]
        if what == "fused":
            place = min(at for at, group in enumerate(groups) if {*group} & {*pair})
            groups = [group for group in groups if not {*group} & {*pair}]
            groups.insert(place, sorted(pair))
            said = f"{one} with {other}: they are fused."
        else:
            said = f"{one} with {other}: no. The scheduler says “{what}”."
        states.append((_nests(seen, groups, pair, what == "fused"), said))
    return states


def ten_loops(seen: Stages) -> State:
    """Return the picture of a graph whose operators are a loop each, as in eager mode."""
    names = [line.split(" = ")[1].split(".")[1] for line in seen.graph]
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, 2.5))
        _plain(ax, 2.5)
        for at, name in enumerate(names):
            x, y = (at % 5) * 1.04, 1.72 - 1.1 * (at // 5)
            _box(ax, x + 0.04, y, 0.82, 0.62, "ink", 0.0)
            ax.text(x + 0.45, y + 0.42, name, ha="center", va="center", fontsize=11)
            ax.text(x + 0.45, y + 0.17, "a loop", ha="center", va="center", fontsize=10,
                    color=COLOURS["soft"])  # fmt: skip
            if at % 5 < 4:
                arrow = {"arrowstyle": "->", "color": COLOURS["soft"], "shrinkA": 0, "shrinkB": 0}
                ax.annotate("", (x + 1.06, y + 0.31), (x + 0.88, y + 0.31), arrowprops=arrow)
        ax.text(0.04, 0.15, "between two loops: a tensor in memory", fontsize=10,
                color=COLOURS["soft"])  # fmt: skip
    alt = f"Ten operators, each a loop of its own: {', '.join(names)}."
    said = "Eager mode: ten operators, ten loops, and a tensor in memory between them."
    return figure(fig, alt=alt), said


def _nests(
    seen: Stages, groups: Sequence[Sequence[int]], pair: Sequence[int] = (), fused: bool = False
) -> Display:
    step, gap = 0.62, 0.16
    high = step * len(seen.nests) + gap * (len(groups) + 1)
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, high))
        _plain(ax, high)
        top = high - gap / 2
        for group in groups:
            tall = step * len(group)
            if len(group) > 1:
                _box(ax, 0.02, top - tall - 0.05, _WIDE - 0.04, tall + 0.1, "c", 0.14)
            for at, number in enumerate(group):
                role = ("c" if fused else "f") if number in pair else "ink"
                low = top - (at + 1) * step + 0.05
                _box(ax, 0.12, low, _WIDE - 0.24, step - 0.1, role, 0.0)
                _words(ax, seen, number, low)
            top -= tall + gap
    parts = [_told(seen, number) for number in range(len(seen.nests))]
    joined = [" with ".join(map(str, group)) for group in groups if len(group) > 1]
    alt = f"{'; '.join(parts)}. Fused: {', '.join(joined) or 'none'}."
    return figure(fig, alt=alt)


def _words(ax: Axes, seen: Stages, number: int, low: float) -> None:
    _, kept, reduced, reads = seen.nests[number]
    ax.text(0.22, low + 0.36, f"{number}:  {', '.join(seen.ops[number])}", fontsize=10.5,
            va="center")  # fmt: skip
    loops = f"{kept}, reducing {reduced}" if reduced else kept
    ax.text(0.22, low + 0.13, f"loops {loops};  reads {reads}", fontsize=10, va="center",
            color=COLOURS["soft"])  # fmt: skip


def _told(seen: Stages, number: int) -> str:
    _, kept, reduced, reads = seen.nests[number]
    loops = f"{kept}, reducing {reduced}" if reduced else kept
    return f"nest {number}: {', '.join(seen.ops[number])}, loops {loops}, reads {reads}"


def _plain(ax: Axes, high: float) -> None:
    ax.set(xlim=(0, _WIDE), ylim=(0, high))
    ax.axis("off")


def _box(ax: Axes, x: float, y: float, wide: float, high: float, role: str, tint: float) -> None:
    shape = "round,pad=0,rounding_size=0.06"
    colour = COLOURS[role]
    if tint:
        filled = FancyBboxPatch((x, y), wide, high, shape, fc=colour, ec="none", alpha=tint)
        ax.add_patch(filled)
    ax.add_patch(FancyBboxPatch((x, y), wide, high, shape, fc="none", ec=colour, lw=1.5))
