"""Pictures: who shares a mean, the memory as it follows, who answers for whom, what travels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, box

if TYPE_CHECKING:
    import torch


def flow(numbers: Mapping[str, str], **picture: Any) -> Display:
    """Draw the layer with the numbers of one batch.

    :param numbers: input, batch (its mean and variance), memory, output, evaluated.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 3.6))
        ax.set(xlim=(0, 4.9), ylim=(0, 3.6))
        ax.axis("off")
        box(ax, (1.2, 3.25), (2.2, 0.5), f"channel of the batch\n{numbers['input']}", "ink")
        box(ax, (1.2, 2.2), (2.2, 0.62), f"of this batch\n{numbers['batch']}", "a")
        box(ax, (3.75, 2.2), (2.2, 0.62), f"memory\n{numbers['memory']}", "c")
        box(ax, (1.2, 1.15), (2.2, 0.5), f"in training\n{numbers['output']}", "a")
        box(ax, (3.75, 1.15), (2.2, 0.5), f"in eval()\n{numbers['evaluated']}", "c")
        box(ax, (2.47, 0.25), (3.4, 0.42), "times weight, plus bias", "e")
        for start, end, role in (
            ((1.2, 2.98), (1.2, 2.53), "a"), ((1.2, 1.87), (1.2, 1.42), "a"),
            ((3.75, 1.87), (3.75, 1.42), "c"), ((1.2, 0.88), (1.75, 0.48), "e"),
            ((3.75, 0.88), (3.2, 0.48), "e"), ((2.32, 2.2), (2.63, 2.2), "b"),
        ):  # fmt: skip
            arrow(ax, start, end, role)
        ax.text(2.47, 2.66, "a tenth", ha="center", fontsize=10, color=COLOURS["b"])
    return figure(
        fig,
        alt=f"A channel of a batch, {numbers['input']}, has {numbers['batch']}; a tenth of that "
        f"goes into the memory, {numbers['memory']}. In training the output is "
        f"{numbers['output']}, in eval {numbers['evaluated']}; weight and bias come last.",
        **picture,
    )


def shared(found: Mapping[str, torch.Tensor], **picture: Any) -> Display:
    """Draw which inputs one output value reads, for layers on the same shape ``(N, C, L)``.

    :param found: for each layer a tensor of truth values of that shape.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    with style():
        fig, axes = plt.subplots(2, 3, figsize=(4.9, 3.7))
        for ax in axes.flat:
            ax.axis("off")
        for ax, (name, reads) in zip(axes.flat, found.items(), strict=False):
            rows, columns, length = reads.shape
            ax.set(xlim=(-0.75, columns), ylim=(rows + 0.08, -0.75), aspect="equal")
            ax.set_title(name, fontsize=10.5)
            for row in range(rows):
                for column in range(columns):
                    for place in range(length):
                        first = row == column == place == 0
                        role = "b" if first else "a" if reads[row, column, place] else "pane"
                        part = 0.86 / length
                        ax.add_patch(
                            Rectangle(
                                (column + 0.07 + place * part, row + 0.1), part * 0.86, 0.8,
                                fc=COLOURS[role], alpha=0.25 if role == "pane" else 0.95,
                            )
                        )  # fmt: skip
            ax.text(columns / 2, -0.12, "channels", ha="center", fontsize=9, color=COLOURS["soft"])
            ax.text(-0.12, rows / 2, "rows", ha="right", va="center", rotation=90, fontsize=9,
                    color=COLOURS["soft"])  # fmt: skip
        fig.set_layout_engine("tight", pad=0.3)
    told = "; ".join(f"{name}: {int(reads.sum())}" for name, reads in found.items())
    return figure(
        fig,
        alt="Grids of rows by channels, three values in each box. The inputs that the first output "
        f"reads are marked. Of {next(iter(found.values())).numel()} values: {told}.",
        **picture,
    )


def memory(
    batches: Sequence[float], kept: Sequence[float], until: int, truth: float, what: str
) -> Display:
    """Draw a statistic of each batch up to one step, and the running one that follows.

    :param kept: the running value before the first batch, and after each.
    :param truth: the value that the data were drawn with.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 2.5))
        ax.axhline(truth, color=COLOURS["line"], lw=1, ls=":")
        ax.plot(range(1, until + 1), batches[:until], "o", color=COLOURS["a"], label="of the batch")
        ax.plot(range(until + 1), kept[: until + 1], "-s", color=COLOURS["c"], label="running")
        ax.set(xlim=(-0.3, len(batches) + 0.3), ylim=(-0.3, max(*batches, truth) * 1.15))
        ax.set(xlabel="batches seen", ylabel=what)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return figure(
        fig,
        alt=f"After {until} batches: the running {what} is {kept[until]:.2f}; the data have "
        f"{truth:g}.",
    )


def jacobians(found: Mapping[str, torch.Tensor], **picture: Any) -> Display:
    """Draw the derivatives of outputs (rows) to inputs (columns), side by side."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    with style():
        fig, axes = plt.subplots(1, len(found), figsize=(4.9, 2.75))
        for ax, (name, values) in zip(axes, found.items(), strict=True):
            size = len(values)
            top = float(values.abs().max())
            ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
            ax.set(xticks=range(size), yticks=range(size), xlabel="to the input of row")
            ax.set_title(name, fontsize=10.5)
            ax.tick_params(length=0)
            for row in range(size):
                for column in range(size):
                    value = float(values[row, column])
                    role = "pane" if not value else "a" if value > 0 else "b"
                    ax.add_patch(
                        Rectangle(
                            (column - 0.46, row - 0.46), 0.92, 0.92, fc=COLOURS[role],
                            alpha=0.12 if not value else 0.2 + 0.75 * abs(value) / top,
                        )
                    )  # fmt: skip
        axes[0].set_ylabel("of the output of row")
        fig.set_layout_engine("tight", pad=0.3)
    told = "; ".join(f"{name}: {int((values != 0).sum())}" for name, values in found.items())
    return figure(
        fig,
        alt="Two squares of derivatives, of each row's output to each row's input. Not zero are: "
        f"{told}. Blue is positive, orange negative.",
        **picture,
    )


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, x: str, y: str, alt: str,
    **picture: Any,
) -> Display:  # fmt: skip
    """Draw lines over a logarithmic axis of batch sizes."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 2.7))
        for (name, (places, values)), mark in zip(series.items(), "os^", strict=False):
            ax.plot(places, values, marker=mark, label=name)
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set(xlabel=x, ylabel=y)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return figure(fig, alt=alt, **picture)


def meeting(counts: Sequence[int], sent: Sequence[tuple[str, int]], **picture: Any) -> Display:
    """Draw what two ranks do in a pass of SyncBatchNorm, and what travels.

    :param counts: how many values of a channel each rank has.
    :param sent: each collective and how many numbers a rank gives to it, in order.
    """
    import matplotlib.pyplot as plt

    (gather, gathered), (reduce, reduced) = sent
    with style():
        fig, ax = plt.subplots(figsize=(4.9, 4.7))
        ax.set(xlim=(0, 4.9), ylim=(0, 4.7))
        ax.axis("off")
        for x, (rank, count) in zip((1.2, 3.7), enumerate(counts), strict=True):
            steps = (
                (4.0, f"mean, 1/deviation,\ncount {count}", "a"),
                (2.65, "join, normalise", "a"),
                (1.75, "two sums of\nthe gradient", "d"),
                (0.4, "gradient of\nthe input", "d"),
            )
            ax.text(x, 4.5, f"rank {rank}", ha="center", fontsize=10.5)
            for y, text, role in steps:
                box(ax, (x, y), (2.1, 0.52), text, role)
            for start, end in (
                (3.74, 3.52),
                (3.16, 2.91),
                (2.39, 2.01),
                (1.49, 1.27),
                (0.91, 0.66),
            ):
                arrow(ax, (x, start), (x, end), "line")
        box(ax, (2.45, 3.34), (4.6, 0.34), f"{gather}: {gathered} numbers of each", "b")
        box(ax, (2.45, 1.09), (4.6, 0.34), f"{reduce}: {reduced} numbers of each", "b")
        ax.text(2.45, 2.2, "backward", ha="center", va="center", fontsize=9.5,
                color=COLOURS["soft"])  # fmt: skip
    return figure(
        fig,
        alt=f"Two ranks, with {counts[0]} and {counts[1]} values of a channel. Forward: each "
        f"computes mean, 1/deviation and count; {gather} of {gathered} numbers; each joins and "
        f"normalises. Backward: two sums; {reduce} of {reduced} numbers; each has its gradient.",
        **picture,
    )
