"""A graph with the engine's counts, drawn: who waits, who is queued, who runs, who has run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from insidetorch.display import Display
from insidetorch.private.graph import sequence_nr
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.autograd_engine.engine import Node
from miniatures.autograd_engine.watch_queue import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {"waits": "ink", "in the queue": "a", "runs": "b", "has run": "c"}
_WIDE, _HIGH, _ROW = 2.3, 0.42, 0.58


def draw_state(
    state: State,
    label: Callable[[Node], str],
    *,
    queue: bool = True,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw the graph in one state of a pass, and the ready queue below it.

    :param label: a node's name.
    :param queue: draw the queue too.
    :param caption: with `name`, as `figure` takes them.
    """
    nodes = [*state.done, *state.waiting, *state.queue]
    nodes = list(dict.fromkeys([*nodes, *([state.running] if state.running else [])]))

    def kind(node: Node) -> str:
        if node is state.running:
            return "runs"
        if node in state.queue:
            return "in the queue"
        return "waits" if node in state.waiting else "has run"

    def text(node: Node) -> str:
        count = state.waiting.get(node, 0)
        return f"waits for {count}" if count else kind(node)

    said = "; ".join(f"{label(node)}: {text(node)}" for node in _rowwise(nodes))
    queued = ", ".join(label(node) for node in state.queue) or "empty"
    with style():
        fig, ax = _draw(nodes, label, kind, text, room=0.7 * queue)
        if queue:
            _queue(ax, [label(node) for node in state.queue])
    return figure(fig, alt=f"{said}. Queue: {queued}.", caption=caption, name=name)


def draw_ran(
    nodes: Sequence[Node],
    ran: Collection[Node],
    label: Callable[[Node], str],
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw a graph in which some nodes ran and the others did not.

    :param ran: those that ran.
    :param label: a node's name.
    :param caption: with `name`, as `figure` takes them.
    """
    seen = set(ran)

    def kind(node: Node) -> str:
        return "has run" if node in seen else "waits"

    def text(node: Node) -> str:
        return "ran" if node in seen else "did not run"

    said = "; ".join(f"{label(node)} {text(node)}" for node in _rowwise(nodes))
    with style():
        fig, _ = _draw(list(nodes), label, kind, text, legend={"ran": "c", "did not run": "ink"})
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def _draw(
    nodes: Sequence[Node],
    label: Callable[[Node], str],
    kind: Callable[[Node], str],
    text: Callable[[Node], str],
    *,
    room: float = 0.0,
    legend: dict[str, str] | None = None,
) -> tuple[Figure, Axes]:
    places = _places(nodes)
    top = max((y for _, y in places.values()), default=0)
    height = (top + 1) * _ROW + room + 0.35
    fig, ax = plt.subplots(figsize=(5.2, height))
    ax.set(xlim=(-2.6, 2.6), ylim=(-(top + 0.5) * _ROW - room, 0.5 * _ROW + 0.35))
    ax.axis("off")
    for node in nodes:
        x, row = places[node]
        for to in (after for after, _ in node.next_functions if after in places):
            end, below = places[to]
            ax.annotate(
                "",
                (end + 0.25 * (x - end) * (x != end), -below * _ROW + _HIGH / 2),
                (x, -row * _ROW - _HIGH / 2),
                arrowprops={"arrowstyle": "->", "color": COLOURS["soft"], "lw": 1.3},
            )
    for node in nodes:
        x, row = places[node]
        colour = COLOURS[KINDS[kind(node)]]
        corner = (x - _WIDE / 2, -row * _ROW - _HIGH / 2)
        box: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.1", "linewidth": 1.6}
        ax.add_patch(FancyBboxPatch(corner, _WIDE, _HIGH, fc="none", ec=colour, **box))
        if kind(node) in ("runs", "in the queue"):
            ax.add_patch(
                FancyBboxPatch(corner, _WIDE, _HIGH, fc=colour, ec="none", alpha=0.2, **box)
            )
        number = sequence_nr(node)
        after = text(node) if number is None or legend else f"#{number} · {text(node)}"
        words = f"{label(node)}\n{after}"
        ax.text(x, -row * _ROW, words, ha="center", va="center", fontsize=10, linespacing=1.15)
    keys = legend or KINDS
    ax.legend(
        handles=[Patch(fc=COLOURS[c], label=name) for name, c in keys.items()],
        ncols=len(keys), loc="upper center", frameon=False, fontsize=10,
        handlelength=0.9, columnspacing=1.2, borderaxespad=0,
    )  # fmt: skip
    return fig, ax


def _queue(ax: Axes, labels: Sequence[str]) -> None:
    low = ax.get_ylim()[0] + 0.08
    ax.text(-2.55, low + 0.21, "queue →", va="center", fontsize=10)
    for at, said in enumerate(labels or ["(empty)"]):
        x = -1.75 + at * 2.18
        colour = COLOURS["a" if labels else "line"]
        ax.add_patch(Rectangle((x, low), 2.1, 0.42, fc="none", ec=colour, lw=1.6))
        ax.text(x + 1.05, low + 0.21, said, ha="center", va="center", fontsize=10)


def _depths(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return for each node the longest way to it from a node that nobody sends to."""
    depth = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for node in nodes:
            for after, _slot in node.next_functions:
                if after in depth:
                    depth[after] = max(depth[after], depth[node] + 1)
    return depth


def _places(nodes: Sequence[Node]) -> dict[Node, tuple[float, int]]:
    depth = _depths(nodes)
    rows: dict[int, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: sequence_nr(node) or 0):
        rows.setdefault(depth[node], []).append(node)
    step = 2.6
    return {
        node: ((at - (len(row) - 1) / 2) * step, level)
        for level, row in rows.items()
        for at, node in enumerate(row)
    }


def _rowwise(nodes: Sequence[Node]) -> list[Node]:
    places = _places(nodes)
    return sorted(nodes, key=lambda node: (places[node][1], places[node][0]))
