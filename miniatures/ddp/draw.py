"""Pictures of data parallel training: time in lanes, a bucket in memory, a prediction, scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.patches import Patch, Rectangle

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

Bar = tuple[float, float, str, str]
"""When it begins and ends, what it says, and its colour's role."""


def draw_time(
    lanes: Mapping[str, Sequence[Bar]],
    *,
    unit: str,
    until: float | None = None,
    end: float | None = None,
    legend: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw what each lane did when, from left to right.

    :param unit: of the times, written under the axis.
    :param until: draw what had happened up to this moment, which gets a line.
    :param end: the right end of the axis, if it is not the end of the last bar.
    :param legend: what a colour means, by its role.
    :param caption: with `name`, as `figure` takes them.
    """
    last = end or max(bar[1] for bars in lanes.values() for bar in bars)
    shown: dict[str, list[Bar]] = {
        lane: [
            (start, stop if until is None else min(stop, until), says, role)
            for start, stop, says, role in bars
            if until is None or start < until
        ]
        for lane, bars in lanes.items()
    }
    step, high = 0.52, 0.3
    with style():
        fig, ax = plt.subplots(figsize=(5.2, step * len(lanes) + 0.55 + 0.3 * bool(legend)))
        for at, (lane, bars) in enumerate(shown.items()):
            low = -(at + 1) * step
            ax.text(0, low + high + 0.02, lane, fontsize=10, va="bottom", color=COLOURS["soft"])
            for at_bar, (start, stop, says, role) in enumerate(bars):
                following = bars[at_bar + 1][0] if at_bar + 1 < len(bars) else float("inf")
                size = (max(stop - start, last / 250), high)
                colour = COLOURS[role]
                ax.add_patch(Rectangle((start, low), *size, fc=colour, ec="none", alpha=0.28))
                ax.add_patch(Rectangle((start, low), *size, fc="none", ec=colour, lw=1.2))
                free = min(size[0], following - start)  # what the next bar does not cover
                if says and free > last * 0.019 * len(says):
                    ax.text(
                        start + free / 2, low + high / 2, says, fontsize=10,
                        ha="center", va="center",
                    )  # fmt: skip
        if until is not None:
            ax.axvline(until, color=COLOURS["soft"], lw=1)
        ax.set(xlim=(0, last * 1.01), ylim=(-len(lanes) * step - 0.05, 0.04), xlabel=unit)
        ax.set_yticks([])
        ax.grid(visible=False)
        ax.spines["left"].set_visible(False)
        if legend:
            ax.legend(
                handles=[
                    Patch(fc=COLOURS[c], alpha=0.6, label=says) for c, says in legend.items()
                ],
                ncols=len(legend), loc="lower left", bbox_to_anchor=(0, 1), frameon=False,
                fontsize=10, handlelength=0.9, borderaxespad=0, columnspacing=1.2,
            )  # fmt: skip
    said = "; ".join(
        f"{lane}: {', '.join(_span(bar, until) for bar in bars) or 'nothing yet'}"
        for lane, bars in shown.items()
    )
    return figure(fig, alt=f"Times in {unit}. {said}.", caption=caption, name=name)


def _span(bar: Bar, until: float | None) -> str:
    start, stop, says, _ = bar
    running = until is not None and stop >= until
    return f"{says or 'a piece'} from {start:.3g} {'on' if running else f'to {stop:.3g}'}"


def draw_memory(
    sizes: Mapping[str, int], apart: bool, *, caption: str = "", name: str = ""
) -> Display:
    """Draw a bucket in memory, and the gradients that are copied into it or lie in it.

    :param sizes: how many numbers each gradient has, in the bucket's order.
    :param apart: the gradients have memory of their own; else they are views of the bucket.
    """
    total, places, at = sum(sizes.values()), {}, 0
    for gradient, size in sizes.items():
        places[gradient] = (at, size)
        at += size
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.1 if apart else 1.35))
        for order, (gradient, (start, size)) in enumerate(places.items()):
            colour = COLOURS["abcdef"[order % 6]]
            x, wide = start / total * 5.2, size / total * 5.2
            for low in (0.0, 1.1) if apart else (0.0,):
                box = (x + 0.03, low), wide - 0.06, 0.42
                ax.add_patch(Rectangle(*box, fc=colour, ec="none", alpha=0.25))
                ax.add_patch(Rectangle(*box, fc="none", ec=colour, lw=1.4))
            says = f"{gradient}\n{size:,}" if wide > 0.7 else ""
            ax.text(x + wide / 2, 1.31 if apart else 0.21, says, ha="center", va="center",
                    fontsize=10, linespacing=1.05)  # fmt: skip
            if apart:
                ax.annotate("", (x + wide / 2, 0.46), (x + wide / 2, 1.06),
                            arrowprops={"arrowstyle": "<->", "color": COLOURS["soft"]})  # fmt: skip
        ax.text(0.03, -0.08, "the bucket: one flat piece of memory", fontsize=10, va="top",
                color=COLOURS["soft"])  # fmt: skip
        ax.text(0.03, 1.58 if apart else 0.5,
                "each .grad in memory of its own" if apart else "each .grad is a view",
                fontsize=10, va="bottom", color=COLOURS["soft"])  # fmt: skip
        ax.set(xlim=(0, 5.2), ylim=(-0.35, 1.85 if apart else 0.8))
        ax.axis("off")
    order_said = ", ".join(f"{gradient} with {size:,} numbers" for gradient, size in sizes.items())
    how = "copied into and out of" if apart else "views of"
    return figure(
        fig, alt=f"Gradients that are {how} one flat bucket, in this order: {order_said}.",
        caption=caption, name=name,
    )  # fmt: skip


Row = tuple[float, float, float]
"""What was predicted, the least that was measured, and the median, in milliseconds."""


def draw_predicted(
    panels: Mapping[str, Mapping[str, Row]], *, caption: str = "", name: str = ""
) -> Display:
    """Draw predicted beside measured times of backward, a panel for each kind of layers."""
    with style():
        fig, axes = plt.subplots(len(panels), 1, figsize=(5.2, 1.9 * len(panels) + 0.3))
        for ax, (title, rows) in zip(axes, panels.items(), strict=True):
            for at, (predicted, least, median) in enumerate(rows.values()):
                low = -at - 0.14
                ax.plot([least, median], [low] * 2, color=COLOURS["b"], lw=5)
                ax.plot([least], [low], "s", color=COLOURS["b"])
                ax.plot([predicted], [-at + 0.14], "o", color=COLOURS["a"])
            ax.set_yticks([-at for at in range(len(rows))], list(rows))
            most = max(max(row) for row in rows.values())
            ax.set(xlim=(0, most * 1.08), ylim=(-len(rows) + 0.5, 0.5), title=title)
            ax.grid(axis="y", visible=False)
        axes[-1].set_xlabel("ms of backward")
        axes[0].legend(
            handles=[Patch(fc=COLOURS["a"], label="predicted"),
                     Patch(fc=COLOURS["b"], label="measured: least to median")],
            ncols=2, loc="lower right", bbox_to_anchor=(1, 1.12), frameon=False, fontsize=10,
            handlelength=0.9,
        )  # fmt: skip
    said = "; ".join(
        f"{title}, {label}: predicted {row[0]:.0f}, measured {row[1]:.0f} to {row[2]:.0f} ms"
        for title, rows in panels.items()
        for label, row in rows.items()
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_scaling(
    worlds: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    *,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw which share of backward is computation, for numbers of ranks and sizes of buckets."""
    with style():
        fig, ax = plt.subplots()
        for mark, (label, values) in zip("os^Dv", lines.items(), strict=False):
            ax.plot(worlds, [100 * value for value in values], marker=mark, label=label)
        ax.set_xscale("log", base=2)
        ax.set(xlabel="ranks", ylabel="compute, % of backward", ylim=(0, 105))
        ax.set_xticks(worlds[::2], [str(world) for world in worlds[::2]])
        ax.minorticks_off()
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(lines), frameon=False)
    said = "; ".join(
        f"{label} {', '.join(f'{100 * value:.0f}' for value in values)}"
        for label, values in lines.items()
    )
    alt = (
        "Share of backward that is compute, in percent, for "
        f"{', '.join(map(str, worlds))} ranks, by bucket size: {said}."
    )
    return figure(fig, alt=alt, caption=caption, name=name)
