"""Pictures over several calls: entries that pile up, who is compiled, what a training step does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import figure, style
from miniatures.dispatcher.draw_grid import Kind, grid, in_words

RESUMES = Kind("c", "2", "two graphs: it resumes behind the break")
SKIPPED = Kind("f", "0", "no graph: the frame is skipped")
WHOLE = Kind("a", "1", "one graph")
COMPILED = Kind("a", "●", "compiled code runs")
PLAIN = Kind("f", "py", "Python runs it as it is")
MADE = Kind("b", "new", "compiled at this moment")
BEFORE = Kind("d", "(1)", "one graph, of what stands before the block")
KINDS = {"none": SKIPPED, "before": BEFORE, "whole": WHOLE, "resumes": RESUMES}


def stairs(counts: Mapping[str, Sequence[int]], limit: int, **picture: Any) -> Display:
    """Draw how many graphs there are after each call, a line for each kind of argument.

    :param limit: the number of entries at which Dynamo stops.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.6, 3.0))
        calls = range(1, max(map(len, counts.values())) + 1)
        # Where two lines are one, the lower one is seen on both sides of the upper.
        for mark, wide, (what, found) in zip("os^D", (7, 1.5) * 2, counts.items(), strict=True):
            ax.plot(range(1, len(found) + 1), found, marker=mark, markersize=4 + wide,
                    linewidth=wide, label=what)  # fmt: skip
        ax.axhline(limit, linestyle="--", linewidth=1, color="C5")
        ax.text(1, limit + 0.15, f"recompile_limit: {limit}", fontsize=10, color="C5")
        ax.set(xlabel="call", ylabel="graphs so far", xticks=list(calls), ylim=(0, limit + 1.2))
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    said = "; ".join(f"{what}: {', '.join(map(str, found))}" for what, found in counts.items())
    return figure(fig, alt=f"Graphs after each call. {said}.", **picture)


def regions(found: Mapping[str, Sequence[str]], columns: Sequence[str], **picture: Any) -> Display:
    """Draw how many graphs a function gives, by what is open where it breaks.

    :param found: by the block's name, a key of `KINDS` for each column.
    """

    def cell(row: str, column: str) -> Kind | None:
        return KINDS[found[row][columns.index(column)]]

    rows = list(found)
    return grid(rows, columns, cell, alt=in_words(rows, columns, cell), wide=1.1, **picture)


def who_runs(rows: Mapping[str, Sequence[bool]], **picture: Any) -> Display:
    """Draw for each call which functions ran compiled.

    :param rows: by the function's words, whether it did in each call.
    """
    columns = [str(n) for n in range(1, len(next(iter(rows.values()))) + 1)]

    def cell(row: str, column: str) -> Kind | None:
        return COMPILED if rows[row][int(column) - 1] else PLAIN

    names = list(rows)
    return grid(names, columns, cell, alt=in_words(names, columns, cell), wide=0.32, **picture)


def step(said: Mapping[str, Sequence[str]], **picture: Any) -> Display:
    """Draw who compiles at which moment of training.

    :param said: by moment, those that were asked to compile.
    """
    names = {
        "Dynamo": "Dynamo: Python to a graph",
        "forward": "the forward graph",
        "backward": "the backward graph",
        "inference": "a graph without gradients",
    }

    def cell(row: str, column: str) -> Kind | None:
        who = next(key for key, words in names.items() if words == row)
        return MADE if who in said[column] else None

    rows, columns = list(names.values()), list(said)
    return grid(rows, columns, cell, alt=in_words(rows, columns, cell), wide=0.72, **picture)


def cost(rows: Sequence[tuple[int, float, float]], **picture: Any) -> Display:
    """Draw what a call costs against the number of guards.

    :param rows: guards, µs of a compiled call that computes nothing, µs without compilation.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.6, 3.4))
        for mark, column, label in (
            ("o", 1, "finding the entry, guards, instructions"),
            ("s", 2, "the module, not compiled"),
        ):
            ax.loglog([row[0] for row in rows], [row[column] for row in rows], marker=mark,
                      label=label)  # fmt: skip
        ax.set(xlabel="guards in the tree", ylabel="µs for a call")
        ax.minorticks_off()
        ax.set_xticks([row[0] for row in rows])
        ax.set_yticks([10, 20, 50, 100, 200, 500, 1000])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.legend(loc="upper left", frameon=False)
    said = "; ".join(f"{n} guards: {a:.0f} and {b:.0f}" for n, a, b in rows)
    alt = f"Microseconds for a call, compiled and not, by the number of guards. {said}."
    return figure(fig, alt=alt, **picture)
