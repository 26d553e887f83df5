"""Pictures of the iterator: its stages, boards of cells, strips of elements, sums, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch, Rectangle

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, PALETTE, figure, graph, style

Cell = tuple[str, str]
"""What stands in a cell, and a role of the book's colours, or an empty text for none."""


def stages(caption: str, name: str) -> Display:
    """Draw what happens between a call and its loop, in order."""
    plan = [("one shape", "broadcasting: stride 0", "iter-broadcast"),
            ("one type", "type promotion", "iter-promotion"),
            ("an order", "small strides inside", "iter-order"),
            ("a result", "new, or checked and resized", "iter-out")]  # fmt: skip
    loop = [("pieces", "for threads, if there is enough work", "iter-loops"),
            ("inner loops", "a pointer and steps for each operand", "iter-loops"),
            ("vectors", "if the strides allow it", "iter-vectors")]  # fmt: skip

    def cluster(key: str, title: str, rows: Sequence[tuple[str, str, str]], role: str) -> str:
        boxes = "".join(
            f'{key}{at} [label=<<b>{head}</b><br/>{says}>, URL="tensor-iterator.html#{anchor}", '
            f'style="rounded,filled", fillcolor="{COLOURS[role]}33", color="{COLOURS[role]}"];'
            for at, (head, says, anchor) in enumerate(rows)
        )
        chain = " -> ".join(f"{key}{at}" for at in range(len(rows)))
        return (
            f'subgraph cluster_{key} {{ label="{title}"; color="{COLOURS["line"]}"; '
            f'fontcolor="{COLOURS["ink"]}"; {boxes} {chain} [weight=9]; }}'
        )

    source = (
        "digraph { rankdir=TB; ranksep=0.16; nodesep=0.5; splines=line; "
        'node [shape=box, margin="0.1,0.04"]; '
        f'call [label="torch.add(a, b)", shape=plain]; '
        f"{cluster('p', 'the plan: no result is computed yet', plan, 'a')} "
        f"{cluster('l', 'the loop', loop, 'c')} call -> p0; p0 -> l0 [style=invis]; "
        "p3:e -> l0:w [constraint=false]; }"
    )
    said = "; ".join(f"{head}: {says}" for head, says, _ in [*plan, *loop])
    return graph(source, alt=f"Four steps of a plan, then three of a loop. {said}.",
                 caption=caption, name=name)  # fmt: skip


def board(
    rows: Mapping[str, Sequence[Cell]], columns: Sequence[str], *, wide: float = 0.85,
    told: Mapping[str, str] | None = None, caption: str = "", name: str = "",
) -> Display:  # fmt: skip
    """Draw rows of cells, some coloured.

    :param wide: inches of a column.
    :param told: a role of the colours and what it means, for the legend.
    """
    left = max((len(row) for row in rows), default=0) * 0.087 + 0.25
    across, high = left + wide * len(columns) + 0.05, 0.29
    head = 0.3 * (1 + max((text.count("\n") for text in columns), default=0) * 0.7)
    with style():
        fig = plt.figure(figsize=(max(across, 4.4), head + high * len(rows) + 0.36 * bool(told)))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, max(across, 4.4)), ylim=(fig.get_figheight(), 0))
        ax.axis("off")
        for c, text in enumerate(columns):
            ax.text(left + wide * (c + 0.5), head - 0.06, text, ha="center", va="bottom",
                    fontsize=10.5, color=COLOURS["soft"], linespacing=1.05)  # fmt: skip
        for r, (row, cells) in enumerate(rows.items()):
            y = head + high * r
            ax.text(left - 0.1, y + high / 2, row, ha="right", va="center", fontsize=10.5)
            for c, (text, role) in enumerate(cells):
                ax.add_patch(
                    Rectangle((left + wide * c + 0.02, y + 0.02), wide - 0.04, high - 0.04,
                              facecolor=COLOURS[role] if role else "none", alpha=0.3,
                              linewidth=0)
                )  # fmt: skip
                ax.add_patch(
                    Rectangle((left + wide * c + 0.02, y + 0.02), wide - 0.04, high - 0.04,
                              facecolor="none", edgecolor=COLOURS[role or "line"], linewidth=0.8)
                )  # fmt: skip
                ax.text(left + wide * (c + 0.5), y + high / 2, text, ha="center", va="center",
                        fontsize=10.5, color=COLOURS["ink"])  # fmt: skip
        if told:
            marks = [Patch(facecolor=COLOURS[role], alpha=0.4) for role in told]
            ax.legend(marks, list(told.values()), ncols=len(told), frameon=False, fontsize=10.5,
                      loc="lower left", bbox_to_anchor=(0, 0), handlelength=0.9,
                      columnspacing=1.2, borderpad=0.1)  # fmt: skip
    said = "; ".join(
        f"{row}: " + ", ".join(f"{column} {text}".replace("\n", " ")
                               for column, (text, _) in zip(columns, cells, strict=True))
        for row, cells in rows.items()
    )  # fmt: skip
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def strides(rows: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Display:
    """Draw strides, a row for each operand, a column for each loop; a 0 is coloured."""
    return board({row: [(text, "b" if text == "0" else "") for text in cells]
                  for row, cells in rows.items()}, columns,
                 told={"b": "stride 0: repeated"})  # fmt: skip


def strips(
    rows: Mapping[str, Sequence[bool]], told: tuple[str, str], *, caption: str, name: str
) -> Display:
    """Draw a row of elements for each case, coloured by which of two loops computed them."""
    with style():
        fig, ax = plt.subplots(figsize=(5.4, 0.3 * len(rows) + 0.75))
        for at, marks in enumerate(rows.values()):
            for i, vector in enumerate(marks):
                ax.add_patch(
                    Rectangle((i + 0.08, -at - 0.34), 0.84, 0.68, linewidth=0,
                              facecolor=COLOURS["a" if vector else "b"],
                              alpha=0.85 if vector else 0.55)
                )  # fmt: skip
        ax.set(xlim=(0, max(map(len, rows.values()))), ylim=(-len(rows) + 0.5, 0.6),
               xlabel="element, in the order of the result's memory")  # fmt: skip
        ax.set_yticks([-at for at in range(len(rows))], list(rows))
        ax.grid(visible=False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        marked = [Patch(facecolor=COLOURS[role], alpha=0.8) for role in "ab"]
        ax.legend(marked, told, ncols=2, frameon=False, loc="lower left", fontsize=10.5,
                  bbox_to_anchor=(-0.3, 1), handlelength=0.9, columnspacing=1.2)  # fmt: skip
    said = "; ".join(f"{row}: {sum(marks)} of {len(marks)} by vectors"
                     for row, marks in rows.items())  # fmt: skip
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def adding(x: Sequence[float], lanes: int = 8, parts: int = 4) -> list[tuple[Display, str]]:
    """Draw how a short row is added up: into accumulators, over the vectors, over the lanes."""
    values = np.asarray(x, np.float32).reshape(-1, parts, lanes)
    one = [f"lane {at + 1}" for at in range(lanes)]

    def shown(rows: Mapping[str, Iterable[float]], heads: Sequence[str]) -> Display:
        cells = {
            row: [(f"{value:g}", "abcd"[at % 4]) for value in numbers]
            for at, (row, numbers) in enumerate(rows.items())
        }
        return board(cells, heads, wide=0.58)

    flat = {f"vector {1 + at}": row for at, row in enumerate(values.reshape(-1, lanes))}
    added = values.sum(0)
    whole = added.sum(0)
    return [
        (shown(flat, one), f"The row in memory, as {len(flat)} vectors of {lanes}. Each colour has "
         "an accumulator of its own: vectors 1 and 5 go into the first."),
        (shown({f"accumulator {1 + at}": row for at, row in enumerate(added)}, one),
         "All vectors are added, four accumulators side by side. No number met its neighbour "
         "yet: what was added stood 32 places apart."),
        (shown({"one vector": whole}, one), "The four accumulators are added, the first plus the "
         "second, plus the third, plus the fourth."),
        (shown({"the sum": [float(whole.sum())]}, [""]), "Last, the lanes are added from left to "
         "right, to 0. (Numbers left over that fill no vector are added up before, and stand "
         "in place of the 0.)"),
    ]  # fmt: skip


def errors(
    sizes: Sequence[int], found: Mapping[str, Sequence[float]], *, caption: str, name: str
) -> Display:
    """Draw relative errors by the length of a row, both on logarithmic axes.

    :param found: relative errors; 0 is drawn at the bottom.
    """
    floor = 1e-9
    with style():
        fig, ax = plt.subplots(figsize=(5.4, 3.3))
        for at, (label, values) in enumerate(found.items()):
            ax.plot(sizes, [max(value, floor) for value in values], label=label,
                    color=PALETTE[at % 6], marker="os^D"[at % 4], markersize=4)  # fmt: skip
        ax.axhline(2**-24, linestyle=":", color=COLOURS["line"])
        ax.text(sizes[0], 4e-9, "dotted: half a unit in the last place", fontsize=10.5,
                va="center", color=COLOURS["soft"])  # fmt: skip
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set(xlabel="numbers in the row", ylabel="relative error")
        ax.legend(frameon=False, fontsize=10.5, ncols=2, loc="lower left",
                  bbox_to_anchor=(-0.1, 1))  # fmt: skip
    said = "; ".join(f"{label}: {values[-1]:.1e} at {sizes[-1]:,}"
                     for label, values in found.items())  # fmt: skip
    return figure(fig, alt=f"Relative error of sums. {said}.", caption=caption, name=name)


def on_a_gpu(caption: str, name: str) -> Display:
    """Draw which loop a GPU takes for an iterator."""
    source = f"""digraph {{ ranksep=0.25; node [shape=box, style=rounded, margin="0.1,0.05"];
      start [label="the iterator\\nof section 4", shape=plain];
      small [label="fits 32-bit offsets?", shape=plain];
      cast [label="all operands of the\\nkernel's types?", shape=plain];
      lie [label="all side by side?", shape=plain];
      halves [label="cut in two, again", color="{COLOURS["b"]}"];
      cast2 [label="each thread converts\\nwhat it reads", color="{COLOURS["d"]}"];
      vector [label="a thread can read\\nseveral elements at once", color="{COLOURS["a"]}"];
      offset [label="each thread divides its\\nnumber into offsets", color="{COLOURS["c"]}"];
      start -> small; small -> halves [label="no"]; small -> cast [label="yes"];
      cast -> cast2 [label="no"]; cast -> lie [label="yes"];
      lie -> vector [label="yes"]; lie -> offset [label="no"];
    }}"""
    alt = (
        "An iterator that does not fit 32-bit offsets is cut in two, again. If types differ, each "
        "thread converts what it reads. If all lies side by side, a thread can read several "
        "elements at once. Else each thread divides its number into offsets."
    )
    return graph(source, alt=alt, caption=caption, name=name)
