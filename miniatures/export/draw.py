"""Pictures: the ways out, a program as it is written, sizes that are taken, branches, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, box

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 4.9
"""Inches: what a phone shows without scrolling."""


def _axes(high: float, across: float, down: float) -> tuple[Any, Axes]:
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(WIDE, high))
    ax.set(xlim=(0, across), ylim=(down, 0))
    ax.axis("off")
    return fig, ax


def ways(differences: Mapping[str, str], **picture: Any) -> Display:
    """Draw one program and three files that leave Python with it.

    :param differences: of each way ("python", "aoti", "onnx"), how far its output is from the
        model's.
    """
    files = {
        "python": ("a file .pt2", "torch.export.load\nin Python", "a"),
        "aoti": ("a compiled\npackage .pt2", "a C++ program,\nno Python", "b"),
        "onnx": ("a file .onnx", "ONNX Runtime,\nno PyTorch", "c"),
    }
    with style():
        fig, ax = _axes(4.0, 4.9, 4.0)
        box(ax, (2.45, 0.3), (3.3, 0.42), "your model: Python code and tensors", "line")
        box(ax, (2.45, 1.15), (3.3, 0.42), "exported program: graph and tensors", "d")
        arrow(ax, (2.45, 0.52), (2.45, 0.92), "ink")
        ax.text(2.55, 0.72, "torch.export", fontsize=10, va="center", color=COLOURS["soft"])
        for at, (way, (file, runs, role)) in enumerate(files.items()):
            x = 0.83 + 1.62 * at
            arrow(ax, (2.45 + (x - 2.45) * 0.8, 1.38), (x, 1.75), role)
            box(ax, (x, 2.03), (1.5, 0.52), file, role)
            arrow(ax, (x, 2.31), (x, 2.6), role)
            box(ax, (x, 2.9), (1.5, 0.56), runs, role)
            ax.text(
                x, 3.55, f"differs by\n{differences.get(way, '–')}", fontsize=10, ha="center",
                va="center", color=COLOURS["soft"],
            )  # fmt: skip
    alt = (
        "A model becomes an exported program, and that leaves Python in three files. "
        + "; ".join(
            f"{file[0]}, run by {file[1]}: differs by {differences.get(way, 'not run')}"
            for way, file in files.items()
        ).replace("\n", " ")
    )
    return figure(fig, alt=alt, **picture)


KINDS = {
    "PARAMETER": ("a", "parameter"),
    "BUFFER": ("b", "buffer"),
    "CONSTANT_TENSOR": ("e", "constant"),
    "USER_INPUT": ("c", "your input"),
}
"""Colour and word for each kind of input of a program."""


def written(
    holders: Sequence[tuple[str, str, str]], nodes: Sequence[tuple[str, str, str]], upto: int
) -> Display:
    """Draw a program after `upto` operators have been recorded.

    :param holders: name, kind and shape of each input of the graph.
    :param nodes: name, operator and shape of each recorded call.
    """
    lines = len(holders) + len(nodes)
    with style():
        fig, ax = _axes(0.31 * lines + 0.75, 4.9, lines + 2.3)
        y = 0.6
        ax.text(0.05, y, "inputs", fontsize=10, color=COLOURS["soft"], va="center")
        for name, kind, shape in holders:
            y += 1
            role, word = KINDS[kind]
            box(ax, (0.95, y), (1.75, 0.8), name, role)
            ax.text(2.0, y, f"{word}, {shape}", fontsize=10, va="center")
        y += 1.1
        ax.text(0.05, y, "calls", fontsize=10, color=COLOURS["soft"], va="center")
        for name, operator, shape in nodes[:upto]:
            y += 1
            last = name == nodes[upto - 1][0]
            box(ax, (0.95, y), (1.75, 0.8), name, "d" if last else "line")
            ax.text(2.0, y, f"= {operator}, {shape}", fontsize=10, va="center")
    calls = ", ".join(f"{name} = {operator} {shape}" for name, operator, shape in nodes[:upto])
    return figure(
        fig,
        alt=f"Inputs: {', '.join(name for name, _, _ in holders)}. Calls: {calls or 'none yet'}.",
    )


def sizes(
    found: Mapping[str, Sequence[int] | None], tried: Sequence[int], **picture: Any
) -> Display:
    """Draw which sizes of the first dimension each exported program takes.

    :param found: by what was asked for, the sizes that were taken; None where export refused.
    """
    with style():
        fig, ax = _axes(0.36 * len(found) + 0.75, 4.9, len(found) + 1.2)
        left, step = 2.15, 2.65 / (len(tried) - 1)
        for at, size in enumerate(tried):
            ax.text(left + at * step, 0.3, str(size), fontsize=10, ha="center", va="center")
        for row, (what, taken) in enumerate(found.items(), 1):
            ax.text(0.05, row, what, fontsize=10, va="center")
            if taken is None:
                ax.text(left, row, "export refuses", fontsize=10, va="center", color=COLOURS["b"])
                continue
            for at, size in enumerate(tried):
                took = size in taken
                ax.plot(
                    [left + at * step], [row], marker="o" if took else "x", ms=6 if took else 5,
                    color=COLOURS["c" if took else "line"], mew=1.4,
                )  # fmt: skip
        ax.text(
            left, len(found) + 0.85, "● taken      × refused", fontsize=10,
            color=COLOURS["soft"], va="center",
        )  # fmt: skip
    alt = "Sizes taken. " + "; ".join(
        f"{what}: {'export refuses' if taken is None else list(taken)}"
        for what, taken in found.items()
    )
    return figure(fig, alt=alt, **picture)


def branches(names: Mapping[str, str], **picture: Any) -> Display:
    """Draw a condition inside a program.

    :param names: "input", "asks", "true", "false" and the two results, "yes" and "no".
    """
    with style():
        fig, ax = _axes(2.55, 4.9, 2.75)
        box(ax, (2.45, 0.3), (1.5, 0.42), names["input"], "c")
        box(ax, (2.45, 1.0), (2.3, 0.42), names["asks"], "d")
        arrow(ax, (2.45, 0.52), (2.45, 0.78), "ink")
        for x, branch, result in (
            (1.2, "true", "yes"),
            (3.7, "false", "no"),
        ):
            arrow(ax, (2.45 + (x - 2.45) * 0.5, 1.22), (x, 1.55), "ink")
            ax.text(x, 1.32, branch, fontsize=10, ha="center", color=COLOURS["soft"], va="center")
            box(ax, (x, 1.8), (2.2, 0.46), names[branch], "a" if branch == "true" else "b")
            ax.text(x, 2.4, names[result], fontsize=10, ha="center", va="center")
    return figure(
        fig,
        alt=f"{names['input']} goes to {names['asks']}; if true, {names['true']} runs and gives "
        f"{names['yes']}; if false, {names['false']} runs and gives {names['no']}.",
        **picture,
    )


def files(found: Mapping[str, Mapping[str, int]], **picture: Any) -> Display:
    """Draw the bytes of each file by what they are for.

    :param found: by file, bytes by use, in the order in which they are to stand.
    """
    uses = list(dict.fromkeys(use for parts in found.values() for use in parts))
    roles = dict(zip(uses, "abcdef", strict=False))
    with style():
        import matplotlib.pyplot as plt

        rows = [(file, use, size) for file, parts in found.items() for use, size in parts.items()]
        high = 0.3 * (len(rows) + len(found)) + 0.5
        fig, ax = plt.subplots(figsize=(WIDE, high))
        y, ticks = 0.0, []
        for file, parts in found.items():
            ax.text(1.2, y, file, fontsize=10, va="center", weight="bold")
            y += 1
            for use, size in parts.items():
                ax.barh(y, size, left=1, height=0.66, color=COLOURS[roles[use]], alpha=0.65)
                ax.text(size * 1.25, y, f"{size:,}", fontsize=10, va="center")
                ticks.append((y, use))
                y += 1
        most = max(size for _, _, size in rows)
        ax.set(xscale="log", xlim=(1, most * 60), ylim=(y - 0.4, -0.7))
        ax.set_yticks([at for at, _ in ticks], [use for _, use in ticks], fontsize=10)
        ax.set_xlabel("bytes; from line to line a hundredfold")
        ax.grid(axis="y", visible=False)
    alt = ". ".join(
        f"{file}: " + ", ".join(f"{use} {size:,} bytes" for use, size in parts.items())
        for file, parts in found.items()
    )
    return figure(fig, alt=alt, **picture)


def translation(pairs: Sequence[tuple[str, str]], **picture: Any) -> Display:
    """Draw which call of the program became which node of the ONNX graph."""
    with style():
        fig, ax = _axes(0.42 * len(pairs) + 0.5, 4.9, len(pairs) + 1.1)
        ax.text(1.1, 0.35, "exported program", fontsize=10, ha="center", color=COLOURS["soft"])
        ax.text(3.85, 0.35, "ONNX", fontsize=10, ha="center", color=COLOURS["soft"])
        for row, (call, node) in enumerate(pairs, 1):
            box(ax, (1.1, row), (2.0, 0.68), call, "d")
            arrow(ax, (2.15, row), (2.85, row), "ink")
            box(ax, (3.85, row), (1.9, 0.68), node, "c")
    return figure(fig, alt="; ".join(f"{call} becomes {node}" for call, node in pairs), **picture)


def reading(given: Any, assumed: tuple[int, ...], **picture: Any) -> Display:
    """Draw which places of memory two rows are read from, with an input's strides and with others.

    :param given: the input, of two dimensions.
    :param assumed: the strides that are used instead of its own.
    """
    across = given.shape[1]
    grids = {"as it is": given.stride(), "as the package reads": assumed}
    places = {
        title: [[row * steps[0] + column * steps[1] for column in range(across)] for row in (0, 1)]
        for title, steps in grids.items()
    }
    with style():
        fig, ax = _axes(2.5, across + 0.2, 6.3)
        y = 0.35
        for (title, rows), role in zip(places.items(), "cb", strict=True):
            strides = ", ".join(str(step) for step in grids[title])
            ax.text(
                0.1, y, f"{title}, strides ({strides})", fontsize=10, va="center",
                color=COLOURS["soft"],
            )  # fmt: skip
            for row in rows:
                y += 1
                for column, place in enumerate(row):
                    box(ax, (column + 0.6, y), (0.9, 0.82), str(place), role)
            y += 1.15
    return figure(fig, alt=f"Places in memory of the first two rows: {places}.", **picture)
