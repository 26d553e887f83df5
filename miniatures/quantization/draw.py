"""Pictures: codes, steps, ranges, products in integers, borders, gradients, graphs, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, box

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

WIDE = 4.9


def _canvas(ax: Axes, high: float) -> None:
    ax.set(xlim=(0, WIDE), ylim=(0, high))
    ax.axis("off")


def _cells(
    ax: Axes, corner: tuple[float, float], rows: Sequence[Sequence[object]], role: str,
    size: tuple[float, float] = (0.62, 0.36),
) -> None:  # fmt: skip
    """Draw a small matrix with its numbers, from its upper left corner."""
    from matplotlib.patches import Rectangle

    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            x, y = corner[0] + c * size[0], corner[1] - (r + 1) * size[1]
            for face, alpha in ((COLOURS[role], 0.18), ("none", 1.0)):
                edge = "none" if alpha < 1 else COLOURS[role]
                ax.add_patch(Rectangle((x, y), *size, fc=face, alpha=alpha, ec=edge, lw=0.9))
            ax.text(x + size[0] / 2, y + size[1] / 2, str(value), ha="center", va="center",
                    fontsize=9.5)  # fmt: skip


def stored(values: Mapping[str, Sequence[object]], **picture: Any) -> Display:
    """Draw rows of numbers one below the other: floats, codes, what the codes stand for."""
    import matplotlib.pyplot as plt

    with style():
        high = 0.62 * len(values) + 0.1
        fig, ax = plt.subplots(figsize=(WIDE, high))
        _canvas(ax, high)
        for line, ((name, row), role) in enumerate(zip(values.items(), "eacb", strict=False)):
            y = high - 0.1 - 0.62 * line
            _cells(ax, (1.2, y), [row], role, (3.65 / len(row), 0.4))
            ax.text(1.1, y - 0.2, name, ha="right", va="center", fontsize=10)
    told = "; ".join(f"{name}: {', '.join(map(str, row))}" for name, row in values.items())
    return figure(fig, alt=f"Rows of numbers. {told}.", **picture)


def steps(
    x: torch.Tensor, back: torch.Tensor, bounds: tuple[float, float], scale: float, **picture: Any
) -> Display:
    """Draw what comes back from the codes over what went in.

    :param bounds: the smallest and the largest number that has a code.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 3.0))
        ax.plot(x, x, color=COLOURS["soft"], lw=1.2, ls=":", label="the number itself")
        ax.step(x, back, where="mid", color=COLOURS["a"], lw=1.6, label="what its code stands for")
        for bound in bounds:
            ax.axvline(bound, color=COLOURS["b"], lw=1.2, ls="--")
        ax.set(xlabel="number", ylabel="comes back as")
        ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1), ncols=2, frameon=False, fontsize=10)
    return figure(
        fig,
        alt=f"A staircase with steps of {scale:g} along the diagonal between {bounds[0]:g} and "
        f"{bounds[1]:g}; outside, it is flat.",
        **picture,
    )


def watched(
    batches: Sequence[Sequence[float]], ranges: Mapping[str, Sequence[tuple[float, float]]],
    until: int,
) -> Display:  # fmt: skip
    """Draw the batches that observers have seen, and the range that each would choose now.

    :param ranges: for each observer its lower and upper end after each batch.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 2.9))
        for place, batch in enumerate(batches[:until], 1):
            ax.plot([place] * len(batch), batch, ".", ms=3, color=COLOURS["soft"], alpha=0.6)
        looks = ("b", "-s"), ("a", "-^"), ("c", ":o")
        for (name, ends), (role, mark) in zip(ranges.items(), looks, strict=False):
            places = range(1, until + 1)
            ax.plot(places, [end[1] for end in ends[:until]], mark, ms=4,
                    color=COLOURS[role], label=name)  # fmt: skip
            ax.plot(places, [end[0] for end in ends[:until]], mark, ms=4, color=COLOURS[role])
        most = max(max(map(abs, batch)) for batch in batches)
        ax.set(xlim=(0.5, len(batches) + 0.5), ylim=(-most * 1.1, most * 1.1))
        ax.set(xlabel="batch", ylabel="values, and the range kept")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False, fontsize=9)
    told = "; ".join(
        f"{name} from {ends[until - 1][0]:.1f} to {ends[until - 1][1]:.1f}"
        for name, ends in ranges.items()
    )
    return figure(fig, alt=f"After {until} batches the ranges are: {told}.")


def rows_of_codes(found: Mapping[str, torch.Tensor], **picture: Any) -> Display:
    """Draw the codes of the rows of a weight, under one scale for all and one for each row."""
    import matplotlib.pyplot as plt

    with style():
        fig, axes = plt.subplots(1, 2, figsize=(WIDE, 2.6), sharey=True)
        for ax, (name, codes), role in zip(axes, found.items(), "ba", strict=True):
            for row, values in enumerate(codes.tolist()):
                ax.plot(values, [row] * len(values), "|", ms=10, color=COLOURS[role])
            ax.set(xlim=(-134, 134), ylim=(len(codes) - 0.5, -0.5), xlabel="code")
            ax.set_title(name, fontsize=10.5)
            ax.set(xticks=[-128, 0, 127], yticks=range(len(codes)))
        axes[0].set_ylabel("row of the weight")
    told = "; ".join(
        f"{name}: {', '.join(str(len(set(row))) for row in codes.tolist())}"
        for name, codes in found.items()
    )
    return figure(fig, alt=f"Codes of each row. Different codes in use, by row: {told}.", **picture)


def product(parts: Mapping[str, list[list[int]]], last: str, **picture: Any) -> Display:
    """Draw a product in integers.

    :param parts: the matrices `input`, `weight`, `sums` and `moved`.
    :param last: the formula that leads to floats.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 3.7))
        _canvas(ax, 3.7)
        cell = (0.62, 0.36)
        places = (
            ("input", (0.05, 3.3), "e", "input, uint8"),
            ("weight", (2.75, 3.3), "a", "weight, int8"),
            ("sums", (0.05, 1.75), "d", "products summed, int32"),
            ("moved", (2.75, 1.75), "d", "minus zero point × row sums"),
        )
        for name, corner, role, says in places:
            _cells(ax, corner, parts[name], role, cell if name != "sums" else (0.8, 0.36))
            ax.text(corner[0], corner[1] + 0.1, says, fontsize=10, va="bottom")
        arrow(ax, (0.98, 2.9), (0.98, 2.06), "ink")
        arrow(ax, (2.7, 2.75), (1.75, 2.06), "ink")
        arrow(ax, (1.7, 1.57), (2.7, 1.57), "ink")
        box(ax, (2.45, 0.38), (4.7, 0.5), last, "c")
        arrow(ax, (3.37, 1.34), (3.37, 0.66), "ink")
    return figure(
        fig,
        alt=f"Input codes {parts['input']}, weight codes {parts['weight']}; their product "
        f"{parts['sums']}; without the zero point {parts['moved']}; then {last}.",
        **picture,
    )


def borders(steps: Sequence[tuple[str, str, str]], **picture: Any) -> Display:
    """Draw a model's operators from top to bottom, with the key of what comes out of each.

    :param steps: operator, key, type.
    """
    import matplotlib.pyplot as plt

    with style():
        high = 0.78 * len(steps)
        fig, ax = plt.subplots(figsize=(WIDE, high))
        _canvas(ax, high)
        for place, (name, key, kind) in enumerate(steps):
            y = high - 0.34 - 0.78 * place
            role = "a" if key.startswith("Quantized") else "e"
            box(ax, (1.35, y), (2.5, 0.46), name, role)
            ax.text(2.8, y, f"{key}\n{kind}", va="center", fontsize=10, color=COLOURS[role])
            if place:
                arrow(ax, (1.35, y + 0.55), (1.35, y + 0.23), "ink")
    told = "; ".join(f"{name} gives {kind} with the key {key}" for name, key, kind in steps)
    return figure(fig, alt=f"From top to bottom: {told}.", **picture)


def through(x: torch.Tensor, y: torch.Tensor, grad: torch.Tensor, **picture: Any) -> Display:
    """Draw a fake-quantized function, and the gradient that is given for it."""
    import matplotlib.pyplot as plt

    with style():
        fig, axes = plt.subplots(2, 1, figsize=(WIDE, 3.4), sharex=True)
        axes[0].step(x, y, where="mid", color=COLOURS["a"])
        axes[0].plot(x, x, color=COLOURS["line"], ls=":", lw=1)
        axes[0].set_ylabel("forward")
        axes[1].step(x, grad, where="mid", color=COLOURS["b"])
        axes[1].set(ylabel="gradient", xlabel="input", ylim=(-0.15, 1.25))
    return figure(
        fig,
        alt="Above, a staircase that is flat at both ends. Below, the gradient: 1 where the "
        "staircase rises, 0 at the flat ends.",
        **picture,
    )


def lanes(found: Mapping[str, Sequence[str]], **picture: Any) -> Display:
    """Draw the operators of a model in several states, side by side, from top to bottom."""
    import matplotlib.pyplot as plt

    with style():
        longest = max(map(len, found.values()))
        high = 0.5 * longest + 0.5
        fig, ax = plt.subplots(figsize=(WIDE, high))
        _canvas(ax, high)
        width = WIDE / len(found)
        for lane, (name, nodes) in enumerate(found.items()):
            x = (lane + 0.5) * width
            ax.text(x, high - 0.16, name, ha="center", va="center", fontsize=10)
            for place, node in enumerate(nodes):
                y = high - 0.58 - 0.5 * place
                role = "b" if "observer" in node else "e"
                role = "a" if "quant" in node or node.startswith("qlinear") else role
                box(ax, (x, y), (width - 0.14, 0.36), node, role)
    told = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in found.items())
    return figure(fig, alt=f"Operators in order. {told}.", **picture)


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, x: str, y: str, alt: str,
    **picture: Any,
) -> Display:  # fmt: skip
    """Draw measured points over two logarithmic axes."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 3.2))
        for (name, (places, values)), mark in zip(series.items(), "os^vD", strict=False):
            ax.plot(places, values, marker=mark, label=name)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set(xlabel=x, ylabel=y)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return figure(fig, alt=alt, **picture)
