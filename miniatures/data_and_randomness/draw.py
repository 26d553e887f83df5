"""Draws the chapter's pictures: numbers and who takes them, seeds, queues, losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.autograd_engine.draw_cells import Cell, draw_cells
from miniatures.data_and_randomness.generators import Philox
from miniatures.data_and_randomness.watch import Pass

WORKERS = "ab"
"""The colours of two workers."""


def draw_stream(takes: Mapping[str, int], length: int, caption: str, name: str) -> Display:
    """Draw for each call which numbers of a fresh generator it takes.

    :param takes: how many each call takes.
    """
    rows: dict[str, Sequence[Cell]] = {
        call: [
            (str(at + 1), "a") if at < count else ("·", "line") for at in range(length)
        ]
        for call, count in takes.items()
    }  # fmt: skip
    return draw_cells(
        rows,
        top="the numbers of the generator, 32 bits each, from the seed on",
        legend={"a": "taken by the call", "line": "left for the next"},
        caption=caption,
        name=name,
    )


def draw_counters(seed: int, threads: int, caption: str, name: str) -> Display:
    """Draw for some threads the four numbers that Philox makes of seed, thread and offset 0."""
    rows: dict[str, Sequence[Cell]] = {
        f"seed {seed}, thread {thread}, offset 0": [
            (f"{number:08x}", "a" if at == 0 else "line")
            for at, number in enumerate(Philox(seed, thread).four())
        ]
        for thread in range(threads)
    }
    return draw_cells(
        rows,
        legend={"a": "becomes the element", "line": "not used here"},
        caption=caption,
        name=name,
    )


def draw_pass(state: Pass) -> Display:
    """Draw where the batches of a pass are."""

    def cells(numbers: Sequence[int]) -> list[Cell]:
        shown: list[Cell] = [(str(at), WORKERS[at % 2]) for at in numbers]
        return shown + [("", "line")] * (6 - len(shown))

    return draw_cells(
        {
            "asked of worker 0": cells(state.asked[0]),
            "asked of worker 1": cells(state.asked[1]),
            "came too early, kept": cells(state.early),
            "yours": cells(state.given),
        },
        legend={"a": "made by worker 0", "b": "made by worker 1"},
    )


def draw_losses(
    whole: Sequence[float], runs: Mapping[str, Sequence[float]], stop: int, caption: str, name: str
) -> Display:
    """Draw losses by step: a whole run, and runs that were stopped and continued."""
    steps = range(1, len(whole) + 1)
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 3.3))
        ax.plot(steps, whole, "o-", color=COLOURS["line"], lw=5, alpha=0.6, label="never stopped")
        for (label, losses), role, mark in zip(runs.items(), "acb", "osv", strict=False):
            ax.plot(
                range(stop + 1, len(whole) + 1), losses[stop:], mark + "-", color=COLOURS[role],
                lw=1.4, ms=4, label=label,
            )  # fmt: skip
        ax.axvline(stop + 0.5, color=COLOURS["soft"], lw=1, ls=":")
        ax.set(xlabel="step", ylabel="loss")
        ax.legend(fontsize=10, ncols=2, loc="lower left", bbox_to_anchor=(-0.1, 1.0), frameon=False)
    first = ", ".join(f"{loss:.4f}" for loss in whole)
    said = f"Losses of a run that was never stopped: {first}. Stopped after step {stop}: "
    said += "; ".join(
        f"{label}: {', '.join(f'{loss:.4f}' for loss in losses[stop:])}"
        for label, losses in runs.items()
    )
    return figure(fig, alt=said, caption=caption, name=name)


def draw_sums(sums: Mapping[int, float], exact: float, caption: str, name: str) -> Display:
    """Draw one sum by the number of threads that computed it, as its distance from the exact one.

    :param sums: by number of threads.
    """
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.2))
        ax.axvline(0, color=COLOURS["line"], lw=3, alpha=0.6)
        places = [1e4 * (value - exact) for value in sums.values()]
        ax.plot(places, [str(count) for count in sums], "o", color=COLOURS["a"])
        ax.set(xlabel="sum minus the exact sum, in ten-thousandths", ylabel="threads")
        ax.margins(y=0.25)
    said = "; ".join(f"{count} threads: {value - exact:+.2e}" for count, value in sums.items())
    alt = f"Distance of a float32 sum from the exact one by threads: {said}."
    return figure(fig, alt=alt, caption=caption, name=name)
