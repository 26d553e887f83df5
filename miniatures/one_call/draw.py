"""The pictures of "One call": its steps, who has Python's lock, tables, vectors, prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style
from miniatures.one_call.watch_steps import (
    PARTS,
    Step,
    arithmetic,
    first,
    lock_given_back,
    part,
    spans,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT = COLOURS["ink"], COLOURS["soft"]
WIDTH = 4.5
"""Inches of a drawing: with text of 10 points it fits a phone without scrolling."""

SAID = {
    "THPVariable_add": "Python's interpreter enters `THPVariable_add`, a function in C++ that a "
    "program wrote.",
    "PythonArgParser::raw_parse": "The arguments are held against the signatures of `add`, one "
    "after the other, until one fits.",
    "gil_scoped_release::gil_scoped_release": "From here on no Python object is touched, so the "
    "lock is given back: other Python threads may run.",
    "add_Tensor::call": "The dispatcher unites what the two tensors ask for, and looks up the "
    "kernel of the first key: autograd's.",
    "VariableType::add_Tensor": "Autograd's kernel asks whether a gradient is wanted. Here none "
    "is, and it notes nothing.",
    "add_Tensor::redispatch": "The dispatcher again, with the keys that are left: the CPU's kernel "
    "is next.",
    "wrapper_CPU_add_Tensor": "The CPU's kernel makes the object in which `meta` will leave its "
    "plan.",
    "structured_add_Tensor::meta": "`meta` works out type, shape and order of the loop, and gets "
    "memory for 16 numbers. It is the longest step.",
    "structured_ufunc_add_CPU::impl": "`impl` looks up the loop that was compiled for this kind "
    "of processor.",
    "function_ref::callback_fn": "The loop runs: here, and nowhere else, numbers are added.",
    "TensorIteratorBase::~TensorIteratorBase": "The plan is thrown away.",
    "gil_scoped_release::~gil_scoped_release": "The lock is taken again, since a Python object is "
    "to be made.",
    "THPVariable_Wrap": "The result, until now a tensor of C++, becomes an object of Python.",
}
"""What is said of each step of the call, by the function that it begins with."""


def timeline(call: Sequence[Step], *, caption: str, name: str) -> Display:
    """Draw which part of PyTorch each instruction of a call belongs to, in order."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    loop, counts = first(call, "function_ref::callback_fn"), Counter(map(part, call))
    colours = [COLOURS[role] for role in "abcdef"] + [SOFT]
    with style():
        fig, ax = plt.subplots(figsize=(4.9, 3.0))
        for row, layer in enumerate(PARTS):
            ax.broken_barh(spans(call, layer), (row - 0.4, 0.8), color=colours[row])
            ax.text(len(call) * 1.02, row, f"{counts[layer]:,}", va="center", fontsize=11,
                    color=SOFT)  # fmt: skip
        ax.axvline(loop, color=INK, linewidth=1.2, linestyle=":")
        ax.text(loop, -0.75, "the loop", ha="center", fontsize=11)
        ax.set(xlabel="instruction, in the order in which they run", yticks=range(len(PARTS)),
               xlim=(0, len(call)), yticklabels=list(PARTS))  # fmt: skip
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
    told = ", ".join(f"{layer} {counts[layer]:,}" for layer in PARTS)
    alt = (
        f"Time runs to the right, {len(call):,} instructions in all; each row is a part of PyTorch "
        f"and is filled where it runs: {told}. A dotted line at instruction {loop:,}: the loop."
    )
    return figure(fig, alt=alt, caption=caption, name=name)


def stations(
    call: Sequence[Step], milestones: Mapping[str, str], each: float
) -> list[tuple[Display, str]]:
    """Draw a call that grows step by step, and say of each step what it is.

    :param milestones: the function that each step begins with, and words for the step.
    :param each: nanoseconds of an instruction, on the average.
    """
    begins = [first(call, function) for function in milestones]
    ends = [*begins[1:], len(call)]
    steps = [
        (words, begin, end)
        for words, begin, end in zip(milestones.values(), begins, ends, strict=True)
    ]
    return [
        (_grown(steps, at, len(call), each), SAID[function])
        for at, function in enumerate(milestones)
    ]


def _grown(steps: Sequence[tuple[str, int, int]], at: int, total: int, each: float) -> Display:
    pitch, left, room = 0.28, 2.12, 1.22
    ax = canvas(WIDTH, pitch * (len(steps) + 1))
    top = pitch * len(steps)
    ax.text(left, top + 0.12, "so far →", fontsize=10, color=SOFT, va="center")
    ax.text(
        WIDTH,
        top + 0.12,
        "instructions of this step",
        fontsize=10,
        color=SOFT,
        va="center",
        ha="right",
    )
    for row, (words, begin, end) in enumerate(steps[: at + 1]):
        y, now = top - pitch * (row + 1), row == at
        bold = "bold" if now else "normal"
        ax.text(0.0, y + 0.13, words, fontsize=10, va="center", fontweight=bold)
        x, wide = left + room * begin / total, max(room * (end - begin) / total, 0.02)
        box(ax, x, y + 0.03, wide, 0.2, "b" if now else "a", 0.95 if now else 0.5)
        price = f"{end - begin:,} ≈ {(end - begin) * each:,.0f} ns"
        ax.text(WIDTH, y + 0.13, price, fontsize=10, va="center", ha="right", fontweight=bold,
                color=INK if now else SOFT)  # fmt: skip
    words, begin, end = steps[at]
    alt = (
        f"Step {at + 1} of {len(steps)}, {words}: {end - begin:,} instructions, after {begin:,} "
        f"before it; {total:,} in all."
    )
    return figure(ax.figure, alt=alt)  # type: ignore[arg-type]


def lock(traces: Mapping[str, Sequence[Step]], *, caption: str, name: str) -> Display:
    """Draw in which part of each call Python's lock is held."""
    from matplotlib.patches import Rectangle

    pitch, left, room = 0.34, 1.4, 3.05
    ax = canvas(WIDTH, pitch * len(traces) + 0.65)
    longest, told = max(map(len, traces.values())), []
    for row, (words, call) in enumerate(traces.items()):
        y = pitch * (len(traces) - 1 - row) + 0.35
        ax.text(left - 0.1, y + 0.13, words, fontsize=10.5, va="center", ha="right")
        free, scale = lock_given_back(call), room / longest
        box(ax, left, y, scale * len(call), 0.26, "b", 0.8)
        for begin, end in free:
            wide = scale * (end - begin)
            ax.add_patch(Rectangle((left + scale * begin, y), wide, 0.26, facecolor=COLOURS["c"],
                                   linewidth=0))  # fmt: skip
        given = sum(end - begin for begin, end in free)
        told.append(f"{words}: {len(call):,} instructions, {given:,} of them without the lock")
    legend(ax, {"b": "it holds the lock", "c": "the lock is given back"}, 0.0)
    alt = f"Instructions of {len(traces)} statements. {'; '.join(told)}."
    return figure(ax.figure, alt=alt, caption=caption, name=name)  # type: ignore[arg-type]


def board(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[int, int], tuple[str, str]],
    *,
    told: Mapping[str, str],
    caption: str,
    name: str,
    left: float = 1.6,
) -> Display:
    """Draw a table of which the cells have a colour.

    :param cells: row and column → text, and the role of its colour; empty for none.
    :param told: the roles, and what each colour says.
    :param left: inches for the names of the rows.
    """
    width, pitch = WIDTH, 0.3
    wide = (width - left) / len(columns)
    head = 0.2 * max(column.count("\n") + 1 for column in columns) + 0.08
    foot = 0.32 if told else 0.0
    ax = canvas(width, pitch * len(rows) + head + foot)
    top = pitch * len(rows) + foot
    for c, column in enumerate(columns):
        ax.text(left + wide * (c + 0.5), top + 0.06, column, fontsize=10, color=SOFT, ha="center",
                va="bottom", linespacing=1.1)  # fmt: skip
    for r, row in enumerate(rows):
        y = top - pitch * (r + 1)
        ax.text(left - 0.1, y + 0.15, row, fontsize=10, va="center", ha="right")
        for c in range(len(columns)):
            text, role = cells.get((r, c), ("", ""))
            x = left + wide * c + 0.03
            box(ax, x, y + 0.03, wide - 0.06, pitch - 0.06, role or "line", 0.22 if role else 0.0)
            ax.text(x + wide / 2 - 0.03, y + 0.15, text, fontsize=10, ha="center", va="center")
    legend(ax, told, 0.0)
    parts = [
        f"{row}: "
        + ", ".join(f"{_flat(column)} {cells.get((r, c), ('nothing', ''))[0] or 'nothing'}"
                    for c, column in enumerate(columns))
        for r, row in enumerate(rows)
    ]  # fmt: skip
    return figure(ax.figure, alt="; ".join(parts) + ".", caption=caption, name=name)  # type: ignore[arg-type]


def variants(*, caption: str, name: str) -> Display:
    """Draw what is generated around the two functions of a structured kernel, that of `mul`."""
    made = {
        "f": ("mul.Tensor", "new memory"),
        "i": ("mul_.Tensor", "the tensor itself"),
        "o": ("mul.out", "what you gave as out="),
    }
    written = {
        "meta": ("first meta", "type, shape, order of the loop", COLOURS["a"]),
        "impl": ("then impl", "runs the loop", COLOURS["c"]),
    }
    grey = f'style="rounded,filled" fillcolor="{SOFT}33"'
    lines = [f'{key} [label="{head}\\n{says}" color="{SOFT}" {grey}]; {key} -> {{meta impl}};'
             for key, (head, says) in made.items()]  # fmt: skip
    lines += [f'{key} [label="{head}\\n{says}" color="{colour}" penwidth=2];'
              for key, (head, says, colour) in written.items()]  # fmt: skip
    told = ", ".join(f"{head} with {says}" for head, says in made.values())
    return graph(
        "digraph { rankdir=TB; nodesep=0.25; ranksep=0.3; node [shape=box style=rounded "
        f"height=0.35]; {' '.join(lines)} }}",
        alt=f"Three grey boxes, {told}, each lead to two boxes: first meta, with type, shape, "
        "order of the loop; then impl, which runs the loop.",
        caption=caption,
        name=name,
    )


def visits(operands: Mapping[str, Any], *, caption: str, name: str) -> Display:
    """Draw which element of its memory each operand gives in each turn of the innermost loop.

    :param operands: tensors of one shape, given by name; their strides say where they read.
    """
    import torch

    shape = next(iter(operands.values())).shape
    places = {
        key: torch.as_strided(
            torch.arange(10**4), tuple(shape), tensor.stride(), tensor.storage_offset()
        ).flatten().tolist()
        for key, tensor in operands.items()
    }  # fmt: skip
    rows = list(places)
    turns = [str(turn) for turn in range(len(places[rows[0]]))]
    cells = {
        (r, c): (str(place), "b" if place in places[row][:c] else "a")
        for r, row in enumerate(rows)
        for c, place in enumerate(places[row])
    }
    told = {"a": "first time here", "b": "read again: stride 0"}
    return board(rows, turns, cells, told=told, caption=caption, name=name, left=1.5)


def vectors(traces: Mapping[str, Sequence[Step]], *, caption: str, name: str) -> Display:
    """Draw the instructions that do the arithmetic of calls, each over the numbers that it does."""
    pitch, left = 0.42, 1.15
    calls = {words: [_width(code) for code in arithmetic(call)] for words, call in traces.items()}
    most = max(sum(wide) for wide in calls.values())
    unit = (WIDTH - left) / most
    ax = canvas(WIDTH, pitch * len(calls) + 0.3)
    told = []
    for row, (words, widths) in enumerate(calls.items()):
        y, x = pitch * (len(calls) - 1 - row) + 0.34, left
        ax.text(left - 0.1, y + 0.16, words, fontsize=10.5, ha="right", va="center")
        for wide in widths:
            role = "a" if wide > 1 else "b"
            box(ax, x + 0.015, y, unit * wide - 0.03, 0.32, role, 0.35)
            for lane in range(wide):
                ax.plot([x + unit * (lane + 0.5)], [y + 0.16], ".", color=INK, markersize=4)
            x += unit * wide
        told.append(f"{words}: instructions for {', '.join(map(str, widths))} numbers")
    legend(ax, {"a": "one vector instruction", "b": "one number"}, 0.0)
    return figure(ax.figure, alt="; ".join(told) + ".", caption=caption, name=name)  # type: ignore[arg-type]


def _width(code: str) -> int:
    """Return how many float32 an instruction works on."""
    if "ss" in code.split()[0][-3:]:
        return 1
    register = {"zmm": 16, "ymm": 8, "xmm": 4}
    return next((wide for name, wide in register.items() if name in code), 4)


def prices(sizes: Mapping[str, int], *, caption: str, name: str) -> Display:
    """Draw how many instructions statements take, as bars, with a line at the first."""
    pitch, left, room = 0.27, 1.75, 2.05
    ax = canvas(WIDTH, pitch * len(sizes) + 0.05)
    most, base = max(sizes.values()), next(iter(sizes.values()))
    for row, (words, count) in enumerate(sizes.items()):
        y = pitch * (len(sizes) - 1 - row)
        ax.text(left - 0.1, y + 0.13, words, fontsize=10, ha="right", va="center")
        role = "a" if count <= 1.1 * base else "b"
        box(ax, left, y + 0.03, room * count / most, 0.2, role, 0.7)
        ax.text(left + room * count / most + 0.06, y + 0.13, f"{count:,}", fontsize=10,
                color=SOFT, va="center")  # fmt: skip
    x = left + room * base / most
    ax.plot([x, x], [0, pitch * len(sizes)], ":", color=INK, linewidth=1)
    told = "; ".join(f"{words} {count:,}" for words, count in sizes.items())
    return figure(ax.figure, alt=f"Instructions: {told}.", caption=caption, name=name)  # type: ignore[arg-type]


def curves(
    sizes: Sequence[int], lines: Mapping[str, Sequence[float]], *, caption: str, name: str
) -> Display:
    """Draw seconds of a call against the number of elements, both logarithmic."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 2.9))
        for mark, dash, (words, times) in zip("os^", ("-", "-", "--"), lines.items(), strict=False):
            ax.loglog(sizes, [t * 1e6 for t in times], marker=mark, linestyle=dash, label=words)
        ax.set(xlabel="elements", ylabel="µs for each call")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.legend(loc="upper left", frameon=False)
    said = "; ".join(
        f"{words} {', '.join(f'{t * 1e6:.2g}' for t in times)}" for words, times in lines.items()
    )
    alt = f"Microseconds for {', '.join(f'{size:,}' for size in sizes)} elements: {said}."
    return figure(fig, alt=alt, caption=caption, name=name)


def canvas(width: float, height: float) -> Axes:
    """Return axes without a frame, measured in inches from the lower left."""
    import matplotlib.pyplot as plt

    with style():
        fig = plt.figure(figsize=(width, height))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(0, height))
        ax.axis("off")
    return ax


def box(ax: Axes, x: float, y: float, wide: float, high: float, role: str, alpha: float) -> None:
    """Draw a rectangle, filled with a colour of the book as strongly as `alpha` says."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), wide, high, facecolor=COLOURS[role], alpha=alpha, linewidth=0))
    if alpha < 0.5:
        edge = COLOURS[role]
        ax.add_patch(Rectangle((x, y), wide, high, fill=False, edgecolor=edge, linewidth=0.9))


def legend(ax: Axes, told: Mapping[str, str], y: float) -> None:
    """Draw what colours say, in a row."""
    x = 0.05
    for role, words in told.items():
        box(ax, x, y + 0.06, 0.22, 0.16, role, 0.6)
        ax.text(x + 0.3, y + 0.14, words, fontsize=10, color=SOFT, va="center")
        x += 0.55 + 0.078 * len(words)


def _flat(text: str) -> str:
    return " ".join(text.split())
