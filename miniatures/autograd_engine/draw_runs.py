"""Pictures of one chapter: a buffer that fills, passes in lanes, hooks in turn, memory in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch

from insidetorch.display import Display
from insidetorch.show.figures import figure, style
from miniatures.autograd_engine.draw_cells import Cell, draw_cells


def draw_sums(*orders: Sequence[float], caption: str = "", name: str = "") -> Display:
    """Draw what a buffer holds after each gradient, for gradients that come in given orders."""
    rows: dict[str, Sequence[Cell]] = {}
    for at, order in enumerate(orders, 1):
        held, cells = torch.zeros(()), list[Cell]()
        for place, value in enumerate(order, 1):
            held = held + value
            colour = "b" if place == len(order) else "a"
            cells.append((f"{'' if place == 1 else '+ '}{value:g}\nholds {held.item():g}", colour))
        rows[f"order {at}"] = cells
    return draw_cells(
        rows, legend={"a": "on the way", "b": "what the node gets"}, caption=caption, name=name
    )


def draw_lanes(
    order: Sequence[str], lanes: Mapping[str, Sequence[int]], caption: str = "", name: str = ""
) -> Display:
    """Draw who ran when, a lane for each name.

    :param order: what ran, in order.
    :param lanes: for each lane the turns, from 0, that are its own.
    """
    rows = {
        lane: [
            (said.replace("Backward0", "").replace("AccumulateGrad", "leaf"), colour)
            if turn in turns
            else ("", "")
            for turn, said in enumerate(order)
        ]
        for (lane, turns), colour in zip(lanes.items(), "abcd", strict=False)
    }
    return draw_cells(rows, caption=caption, name=name)


def draw_saved(counts: Mapping[str, Sequence[int]], caption: str = "", name: str = "") -> Display:
    """Plot how many saved tensors are alive after each node of a pass."""
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 1.9))
        for mark, (line, alive) in zip("os", counts.items(), strict=False):
            ax.plot(range(len(alive)), alive, marker=mark, label=line)
        ax.set(xlabel="nodes that have run", ylabel="saved tensors alive", ylim=(-0.3, None))
        ax.legend(loc="lower left", frameon=False)
    said = "; ".join(f"{line}: {', '.join(map(str, alive))}" for line, alive in counts.items())
    return figure(
        fig, alt=f"Saved tensors alive after each node. {said}.", caption=caption, name=name
    )
