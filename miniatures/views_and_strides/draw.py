"""Pictures of memory and of ways to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from insidetorch.display import Display
from miniatures.dispatcher.draw_grid import Kind, grid, in_words
from miniatures.gpu_performance.draw_chip import Box, boxes
from miniatures.views_and_strides.strides import Way
from miniatures.views_and_strides.watch import Stage

SIDE = 0.34
"""Inches of a cell."""


def strip(
    values: Sequence[object], left: float, top: float, filled: Mapping[int, str] | None = None,
    side: float = SIDE,
) -> list[Box]:  # fmt: skip
    """Return the cells of a piece of memory; `filled` gives some a colour."""
    filled = filled or {}
    return [
        (left + side * n, top, side * 0.94, 0.3, str(value), filled.get(n, ""))
        for n, value in enumerate(values)
    ]


def fates(rows: Sequence[tuple[str, Sequence[int], bool]], **picture: Any) -> Display:
    """Draw six numbers in memory, and below it what calls return: the places read, or new memory.

    :param rows: the call, the places in the order of the indices, and whether it has new memory.
    """
    cells = strip(range(6), 2.2, 0.05, dict.fromkeys(range(6), "a"))
    texts = [(0.05, 0.2, "memory of x", "left")]
    for n, (name, places, new) in enumerate(rows):
        top = 0.62 + 0.5 * n
        cells += strip(places, 2.2, top, dict.fromkeys(range(len(places)), "b") if new else {})
        texts += [
            (0.05, top + 0.15, name, "left"),
            (4.4, top + 0.15, "new memory" if new else "memory of x", "left"),
        ]
    alt = "; ".join(
        f"{name}: {'new memory with' if new else 'reads the places'} {', '.join(map(str, places))}"
        for name, places, new in rows
    )
    return boxes(cells, texts=texts, alt=f"Six numbers in memory. {alt}.", **picture)


def walk_state(way: Way, count: int, at: int, filled: Sequence[str]) -> Display:
    """Draw one step of a walk: the matrix with the index, the memory with the place.

    :param way: two dimensions.
    :param count: elements in memory.
    :param at: which element in the order of the indices.
    :param filled: colours of the present place and of places that were read.
    """
    rows, columns = way.sizes
    places = list(way.places())
    now, past = filled
    cells: list[Box] = []
    for n in range(rows * columns):
        role = now if n == at else past if n < at else ""
        i, j = divmod(n, columns)
        cells.append((0.3 + SIDE * j, 0.35 + SIDE * i, SIDE * 0.94, 0.31, str(places[n]), role))
    seen = {places[n]: past for n in range(at)} | {places[at]: now}
    cells += strip(range(count), 2.3, 0.35, seen)
    i, j = divmod(at, columns)
    said = f"{way.offset} + {i} · {way.strides[0]} + {j} · {way.strides[1]} = {places[at]}"
    texts = [(0.3, 0.17, f"index ({i}, {j})", "left"), (2.3, 0.17, "memory", "left"),
             (2.3, 0.95, said, "left")]  # fmt: skip
    return boxes(cells, texts=texts, alt=f"Index ({i}, {j}) lies at place {said}.")


def joints(ways: Mapping[str, Way], **picture: Any) -> Display:
    """Draw the dimensions of tensors, and which neighbours are one run."""
    cells: list[Box] = []
    texts: list[tuple[float, float, str, str]] = []
    said = []
    for row, (name, way) in enumerate(ways.items()):
        top = 0.1 + row * 0.62
        texts.append((0.05, top + 0.22, name, "left"))
        words = []
        for d, (size, stride) in enumerate(zip(way.sizes, way.strides, strict=True)):
            left = 1.65 + 1.42 * d
            cells.append((left, top, 0.8, 0.44, f"{size} by {stride}", "a"))
            words.append(f"{size} by {stride}")
            if d + 1 < len(way.sizes):
                span = way.sizes[d + 1] * way.strides[d + 1]
                joined = stride == span
                texts.append((left + 1.11, top + 0.22, "joins" if joined else "breaks", "center"))
                words.append("joins" if joined else "breaks")
        said.append(f"{name}: {' '.join(words)}")
    return boxes(cells, texts=texts, alt="; ".join(said) + ".", **picture)


def forty(
    calls: Mapping[str, Callable[[Tensor], Any]],
    inputs: Mapping[str, Tensor],
    told: Callable[[Callable[[Tensor], Any], Tensor], tuple[str, int]],
    **picture: Any,
) -> Display:
    """Draw a table of calls by inputs: itself, view, copy with its bytes, or an error."""
    kinds = {
        "itself": Kind("e", "same", "the tensor itself"),
        "view": Kind("c", "view", "a view, no byte copied"),
        "copy": Kind("b", "96", "a copy: bytes of new memory"),
        "raises": Kind("", "raises", "an error"),
    }
    found = {(name, column): told(call, x) for name, call in calls.items()
             for column, x in inputs.items()}  # fmt: skip

    def cell(row: str, column: str) -> Kind:
        fate, size = found[row, column]
        kind = kinds[fate]
        return Kind(kind.role, str(size), f"a copy of {size} bytes") if fate == "copy" else kind

    rows, columns = list(calls), list(inputs)
    return grid(rows, columns, cell, legend=list(kinds.values()), wide=1.0,
                alt=in_words(rows, columns, cell), **picture)  # fmt: skip


def answers(
    rows: Sequence[str], columns: Sequence[str], says: Mapping[tuple[str, str], str],
    roles: Mapping[str, str], **picture: Any,
) -> Display:  # fmt: skip
    """Draw a table of words, coloured by word."""
    kinds = {word: Kind(role, word, word) for word, role in roles.items()}

    def cell(row: str, column: str) -> Kind:
        return kinds[says[row, column]]

    legend = [Kind(role, "", word) for word, role in roles.items()]
    return grid(rows, columns, cell, wide=1.25, legend=legend,
                alt=in_words(rows, columns, cell), **picture)  # fmt: skip


def formats(images: Mapping[str, Tensor], names: Sequence[str], **picture: Any) -> Display:
    """Draw where the numbers of a small image lie, one strip for each format.

    :param images: of one image, channels by rows by columns, in each format.
    :param names: what the channels are called.
    """
    cells: list[Box] = []
    texts: list[tuple[float, float, str, str]] = []
    said = []
    for row, (name, image) in enumerate(images.items()):
        top = 0.32 + 0.72 * row
        one = image[0]
        way = Way(tuple(one.shape), one.stride())
        names_at = {}
        pixels = one.shape[1] * one.shape[2]
        for n, place in enumerate(way.places()):
            names_at[place] = (names[n // pixels], n % pixels)
        for place, (channel, pixel) in names_at.items():
            role = "abc"[list(names).index(channel)]
            cells.append((0.05 + 0.45 * place, top, 0.42, 0.3, f"{channel}{pixel}", role))
        texts.append((0.05, top - 0.14, f"{name}, strides {image.stride()}", "left"))
        said.append(f"{name}: " + " ".join(f"{c}{p}" for _, (c, p) in sorted(names_at.items())))
    return boxes(cells, texts=texts, alt="; ".join(said) + ".", **picture)


def stage_state(stage: Stage) -> Display:
    """Draw an operator of a call: sizes and strides of what goes in, and of what comes out."""
    cells: list[Box] = []
    words = []
    for n, (name, sizes, strides) in enumerate(stage.inputs):
        cells.append((0.1, 0.1 + 0.62 * n, 2.15, 0.52, _told(name, sizes, strides), "a"))
        words.append(_told(name, sizes, strides).replace("\n", ", strides "))
    role = "b" if stage.copies else "c"
    cells.append((3.4, 0.1, 2.15, 0.52, _told(*stage.output), role))
    out = _told(*stage.output).replace("\n", ", strides ")
    return boxes(cells, texts=[(2.83, 0.36, stage.name, "center")],
                 alt=f"{stage.name} of {' and '.join(words)} gives {out}.")  # fmt: skip


def _told(name: str, sizes: Sequence[int], strides: Sequence[int]) -> str:
    return f"{name}: {' × '.join(map(str, sizes))}\n{', '.join(map(str, strides))}"
