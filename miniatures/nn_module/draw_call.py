"""A call of a module as a row of stations: the number goes down, its gradient comes back up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.nn_module.watch_call import BACKWARD, STATIONS, Stop

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _HIGH, _LEFT, _WIDE = 0.35, 0.275, 1.35, 2.5

SAID = {
    "compiled code?": "`model.compile()` was not called: the ordinary way.",
    "any hook?": "There are hooks, so it is the long way. Without any, `forward` would be next.",
    "global pre-hooks": "Hooks of all modules see the arguments first. The one here, which the "
    "recording added, returns None: nothing changes.",
    "its own pre-hooks": "What a pre-hook returns replaces the arguments.",
    "mark the inputs": "There are backward hooks. The input goes through an identity function, "
    "which leaves a node, a recorded operation, in the graph.",
    "forward()": "Your `forward` runs, with what the hooks have made of the input.",
    "global forward hooks": "Hooks of all modules see arguments and result first.",
    "its own forward hooks": "What a forward hook returns replaces the result.",
    "mark the outputs": "The result goes through an identity function too: the second node. "
    "The call returns.",
}
"""What the book says of each station of a call."""

BACK = {
    "mark the outputs": "Backward. The node at the outputs has the gradient of the result, and "
    "runs the full backward pre-hooks.",
    "mark the inputs": "Through the operations of the hook and of `forward`, the gradient has "
    "reached the node at the inputs, which runs the full backward hooks.",
}
"""The same for the backward pass."""


def travelling(stops: Sequence[Stop]) -> list[tuple[Display, str]]:
    """Draw each moment of a recorded call, with the book's sentence for it."""
    return [(station_map(stops[: at + 1]), _says(stop)) for at, stop in enumerate(stops)]


def _says(stop: Stop) -> str:
    said = (BACK if stop.back else SAID)[stop.station]
    changed = f" {stop.before:g} → {stop.after:g}." if stop.before != stop.after else ""
    return said + changed


def station_map(stops: Sequence[Stop]) -> Display:
    """Draw the stations; those of `stops` are passed, and the last is where the call is now."""
    now = stops[-1]
    forward = {stop.station: stop for stop in stops if not stop.back}
    back = {stop.station: stop for stop in stops if stop.back}
    rows = len(STATIONS)
    with style():
        fig = plt.figure(figsize=(5.2, rows * _ROW + 0.32))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 5.2), ylim=(rows * _ROW, -0.32))
        ax.axis("off")
        for x, head, align in ((0.08, "value ↓", "left"), (5.12, "gradient ↑", "right")):
            ax.text(x, -0.12, head, ha=align, va="center", fontsize=10.5, color=COLOURS["soft"])
        for at, station in enumerate(STATIONS):
            here = station == now.station
            role = "b" if here else "c" if station in forward else "line"
            middle = at * _ROW + _ROW / 2
            corner = (_LEFT, middle - _HIGH / 2)
            shape = "round,pad=0,rounding_size=0.06"
            for fill, alpha in ((COLOURS[role], 0.28 if here else 0.1), ("none", 1.0)):
                ax.add_patch(
                    FancyBboxPatch(
                        corner, _WIDE, _HIGH, boxstyle=shape, facecolor=fill, alpha=alpha,
                        edgecolor=COLOURS[role], linewidth=1.8 if here else 1.1,
                    )
                )  # fmt: skip
            label = BACKWARD.get(station, station) if here and now.back else station
            ax.text(
                _LEFT + _WIDE / 2, middle, label, ha="center", va="center", fontsize=10.5,
                fontweight="bold" if here else "normal",
            )  # fmt: skip
            marked = STATIONS.index("mark the inputs")
            if at + 1 < rows and (at >= marked or not now.back):
                ends = (_LEFT + _WIDE / 2, middle + _ROW - _HIGH / 2 + 0.02)
                arrow = {"arrowstyle": "<-" if now.back else "->", "color": COLOURS["soft"]}
                ax.annotate("", ends, (ends[0], middle + _HIGH / 2 - 0.02), arrowprops=arrow)
            if station in forward:
                _value(ax, 0.62, middle, forward[station], "a", here and not now.back)
            if station in back:
                _value(ax, 4.55, middle, back[station], "d", here)
    return figure(fig, alt=_in_words(stops))


def _value(ax: Axes, x: float, y: float, stop: Stop, role: str, now: bool) -> None:
    changed = stop.before != stop.after
    text = f"{stop.before:g} → {stop.after:g}" if changed else f"{stop.after:g}"
    ax.text(
        x, y, text, ha="center", va="center", fontsize=10.5,
        color=COLOURS[role] if changed or now else COLOURS["soft"],
        fontweight="bold" if changed else "normal",
    )  # fmt: skip


def _in_words(stops: Sequence[Stop]) -> str:
    passed = "; ".join(
        f"{'back at ' if stop.back else ''}{stop.station} {stop.before:g} to {stop.after:g}"
        for stop in stops
    )
    return f"Stations of a call. Passed so far: {passed}. It is at: {stops[-1].station}."
