"""Pictures of numbers: the formats on a line, gradients that fall off its end, a scale in steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (torch.float32, torch.bfloat16, torch.float16)
_ROLES = {torch.float32: "a", torch.bfloat16: "b", torch.float16: "f"}


def least(kind: torch.dtype) -> float:
    """Return the least number above 0 that a type has."""
    info = torch.finfo(kind)
    return float(info.smallest_normal * info.eps)


def draw_line(grads: Tensor, *, scale: float = 1.0, caption: str = "", name: str = "") -> Display:
    """Draw the reach of each format on a line of powers of ten, and gradients below it.

    :param grads: the gradients of a float32 pass; zeros are left out.
    :param scale: with one, the gradients times it are drawn too.
    """
    sizes = grads.abs()[grads != 0].log10()
    gone = int((grads.abs()[grads != 0] * scale < least(torch.float16) / 2).sum())
    with style():
        fig, (top, low) = plt.subplots(2, 1, figsize=(5.2, 3.7), height_ratios=[1.0, 1.25])
        for at, kind in enumerate(KINDS):
            info, colour = torch.finfo(kind), COLOURS[_ROLES[kind]]
            start, normal = math.log10(least(kind)), math.log10(info.smallest_normal)
            end = math.log10(info.max)
            top.barh(-at, end - normal, left=normal, height=0.5, color=colour, alpha=0.8)
            top.barh(-at, normal - start, left=start, height=0.5, color=colour, alpha=0.3)
            top.text(end + 1.2, -at, str(kind)[6:], va="center", fontsize=10.5)
        _axis(top, (-47, 60), [-40, -20, 0, 20, 40])
        top.set_ylim(-2.6, 0.6)
        bins = [x / 4 for x in range(-44, 9)]
        low.hist(sizes.numpy(), bins=bins, color=COLOURS["ink"], alpha=0.55)
        if scale != 1:
            moved = (sizes + math.log10(scale)).numpy()
            low.hist(moved, bins=bins, color=COLOURS["c"], alpha=0.55)
        edge, few = math.log10(least(torch.float16) / 2), math.log10(2**-14)
        most = low.get_ylim()[1]
        low.axvspan(-11, edge, color=COLOURS["f"], alpha=0.18)
        low.axvline(few, linestyle="--", color=COLOURS["f"], linewidth=1.2)
        low.text(edge - 0.1, most * 0.97, "0 in float16", ha="right", va="top", fontsize=10.5)
        low.text(few + 0.1, most * 0.97, "all digits", va="top", fontsize=10.5)
        _axis(low, (-11, 2), list(range(-10, 3, 2)))
        low.set_xlabel("size of a number" if scale == 1 else "size; green: times the scale")
    share = gone / len(sizes)
    alt = "; ".join(
        f"{str(kind)[6:]} from {least(kind):.2g}, with all digits from "
        f"{torch.finfo(kind).smallest_normal:.2g}, to {torch.finfo(kind).max:.3g}"
        for kind in KINDS
    )
    return figure(
        fig,
        alt=f"{alt}. Below, the gradients of one pass; {share:.1%} of those times {scale:g} lie "
        "below the end of float16.",
        caption=caption,
        name=name,
    )


def _axis(ax: Axes, limits: tuple[float, float], ticks: Sequence[int]) -> None:
    ax.set_xlim(*limits)
    ax.set_xticks(list(ticks), [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y", visible=False)


def draw_trail(
    rows: Sequence[tuple[float, float, float]], *, caption: str = "", name: str = ""
) -> Display:
    """Draw the scale of each step, and whether the step was made or skipped.

    :param rows: for each step the scale, the gradient, and how the weight moved.
    """
    scales = [row[0] for row in rows]
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.2))
        ax.step(range(len(rows)), scales, where="mid", color=COLOURS["a"])
        for made, role, mark, says in ((True, "a", "o", "step"), (False, "b", "X", "skipped")):
            at = [i for i, row in enumerate(rows) if (row[2] != 0) == made]
            ax.plot(at, [scales[i] for i in at], mark, color=COLOURS[role], label=says,
                    markersize=8, linestyle="none")  # fmt: skip
        ax.set_yscale("log", base=2)
        powers = sorted({int(math.log2(scale)) for scale in scales})
        ax.set_yticks([2.0**p for p in powers], [f"{2**p:g}" for p in powers])
        ax.minorticks_off()
        ax.set_xticks(range(len(rows)))
        ax.set(xlabel="step", ylabel="scale")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    said = ", ".join(
        f"step {i}: {scale:g}{'' if moved else ', skipped'}"
        for i, (scale, _, moved) in enumerate(rows)
    )
    return figure(fig, alt=f"The scale. {said}.", caption=caption, name=name)


def draw_states(
    found: Mapping[tuple[str, str], str], *, caption: str = "", name: str = ""
) -> Display:
    """Draw a scaler's states, with an arrow for each call that was accepted.

    :param found: (state, call) → the next state, or the error.
    """
    states = list(dict.fromkeys(state for state, _ in found))
    edges: dict[tuple[str, str], list[str]] = {}
    refused: dict[str, list[str]] = {state: [] for state in states}
    for (state, call), end in found.items():
        if end in states:
            edges.setdefault((state, end), []).append(call)
        else:
            refused[state].append(call)
    roles = dict(zip(states, "abc", strict=False))
    lines = []
    for state in states:
        no = "\\nraises: " + ", ".join(refused[state]) if refused[state] else ""
        lines.append(f'{state} [label="{state}{no}", color="{COLOURS[roles[state]]}", penwidth=2];')
    lines += [f'{a} -> {b} [label=" {", ".join(calls)} "];' for (a, b), calls in edges.items()]
    text = "digraph { rankdir=TB; nodesep=0.5; ranksep=0.45; node [shape=box, style=rounded]; "
    alt = "; ".join(f"from {a} by {', '.join(calls)} to {b}" for (a, b), calls in edges.items())
    no = "; ".join(
        f"in {state} {', '.join(calls)} raises" for state, calls in refused.items() if calls
    )
    return graph(text + " ".join(lines) + "}", alt=f"{alt}. {no}.", caption=caption, name=name)


def draw_price(
    sizes: Sequence[int], per_byte: Sequence[float], *, caption: str = "", name: str = ""
) -> Display:
    """Plot the arithmetic of a product for each byte that its casts move."""
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.5))
        ax.loglog(sizes, per_byte, "o-", color=COLOURS["a"], base=2)
        ax.set_xticks(list(sizes[::2]), [f"{n:,}" for n in sizes[::2]])
        powers = [10.0**k for k in range(0, 5) if 10.0**k < 2 * max(per_byte)]
        ax.set_yticks(powers, [f"{power:,.0f}" for power in powers])
        ax.minorticks_off()
        ax.set(xlabel="n", ylabel="FLOP per byte cast")
    said = ", ".join(f"{n}: {value:.0f}" for n, value in zip(sizes, per_byte, strict=True))
    alt = f"FLOP of an n by n product for each byte of its casts. {said}."
    return figure(fig, alt=alt, caption=caption, name=name)
