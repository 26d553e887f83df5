"""Pictures of memory: who reads which place, in which type, and what an object takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from torch import Tensor

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.tensor.cpp_layout import size_of
from miniatures.tensor.draw_rows import GAP, Cell, draw_rows
from miniatures.tensor.reader import impl_of, numbers, read


def offsets(tensor: Tensor) -> list[int]:
    """Return at which place of the storage each element lies, in the order of the indices."""
    impl = impl_of(tensor)
    sizes, strides = numbers(impl)
    found = [impl["storage_offset_"]]
    for size, stride in zip(sizes, strides, strict=True):
        found = [place + index * stride for place in found for index in range(size)]
    return found


def draw_reads(tensors: Mapping[str, Tensor], caption: str = "", name: str = "") -> Display:
    """Draw in which turn each tensor reads which place of the storage that all of them share."""
    first = next(iter(tensors.values()))
    count = read(first)["storage's bytes"] // first.itemsize
    values = torch.as_strided(first, (count,), (1,), 0).tolist()
    rows: dict[str, Sequence[Cell]] = {"in memory": [(f"{value:g}", "", 1) for value in values]}
    for colour, (title, tensor) in zip("abcdef", tensors.items(), strict=False):
        turns: dict[int, list[str]] = {}
        for turn, place in enumerate(offsets(tensor), 1):
            turns.setdefault(place, []).append(str(turn))
        sizes, strides = numbers(impl_of(tensor))
        said = f"{title}: {list(sizes)}, strides {list(strides)}, "
        rows[said + f"offset {tensor.storage_offset()}"] = [
            (", ".join(turns[place]), colour, 1) if place in turns else (GAP, "", 1)
            for place in range(count)
        ]
    return draw_rows(rows, caption=caption, name=name)


def draw_types(
    tensor: Tensor, dtypes: Sequence[torch.dtype], caption: str = "", name: str = ""
) -> Display:
    """Draw the bytes of a tensor, and what they are when read as elements of other types."""
    rows: dict[str, Sequence[Cell]] = {
        "the bytes": [(str(byte), "", 1) for byte in tensor.view(torch.uint8).tolist()]
    }
    for colour, dtype in zip("abcd", dtypes, strict=False):
        rows[str(dtype)] = [
            (f"{value:g}" if isinstance(value, float) else str(value), colour, dtype.itemsize)
            for value in tensor.view(dtype).tolist()
        ]
    return draw_rows(rows, caption=caption, name=name)


def draw_conjugates(tensors: Mapping[str, Tensor], caption: str = "", name: str = "") -> Display:
    """Draw the floats of a complex storage, and what each tensor over it makes of them."""
    first = next(iter(tensors.values()))
    floats = torch.view_as_real(first).flatten().tolist()
    rows: dict[str, Sequence[Cell]] = {"in memory": [(f"{value:g}", "", 1) for value in floats]}
    for tensor_name, tensor in tensors.items():
        bits = [word for word, there in (("Conjugate", tensor.is_conj()),
                                         ("Negative", tensor.is_neg())) if there]  # fmt: skip
        title = f"{tensor_name}, bit {' and '.join(bits)}" if bits else f"{tensor_name}, no bit"
        colour = "b" if bits else "a"
        cells: list[Cell] = []
        if tensor.is_complex():
            cells = [(_complex(value), colour, 2) for value in tensor.tolist()]
        else:
            cells = [(GAP, "", 1)] * len(floats)
            for value, place in zip(tensor.tolist(), offsets(tensor), strict=True):
                cells[place] = (f"{value:g}", colour, 1)
        rows[title] = cells
    return draw_rows(
        rows, legend={"a": "read as it lies", "b": "read with the sign turned"},
        caption=caption, name=name,
    )  # fmt: skip


def _complex(value: complex) -> str:
    sign = "+" if value.imag >= 0 else "−"
    return f"{value.real:g} {sign} {abs(value.imag):g}j"


def draw_pieces(tensors: Mapping[str, Tensor], caption: str = "", name: str = "") -> Display:
    """Draw how many bytes each piece of a tensor takes."""
    pieces: dict[str, Callable[[Tensor], int]] = {
        "Python object": sys.getsizeof,
        "TensorImpl": lambda tensor: size_of("TensorImpl")[0],
        "StorageImpl": lambda tensor: size_of("StorageImpl")[0],
        "VersionCounter": lambda tensor: size_of("VersionCounter")[0],
        "the elements": lambda tensor: read(tensor)["storage's bytes"],
    }
    taken = {piece: [size(tensor) for tensor in tensors.values()]
             for piece, size in pieces.items()}  # fmt: skip
    with style():
        fig, ax = plt.subplots(figsize=(4.7, 0.95 + 0.42 * len(tensors)))
        left = [0] * len(tensors)
        for colour, (piece, sizes) in zip("abced", taken.items(), strict=True):
            bars = ax.barh(list(tensors), sizes, left=left, label=piece, color=COLOURS[colour],
                           alpha=0.75, height=0.62)  # fmt: skip
            ax.bar_label(bars, labels=[f"{size}" if size > 50 else "" for size in sizes],
                         label_type="center", fontsize=10, color=COLOURS["pane"])  # fmt: skip
            left = [start + size for start, size in zip(left, sizes, strict=True)]
        ax.invert_yaxis()
        ax.set(xlabel="bytes")
        ax.grid(axis="y", visible=False)
        fig.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=10,
                   handlelength=0.9, columnspacing=1.2)  # fmt: skip
    said = "; ".join(
        f"{tensor}: {', '.join(f'{piece} {sizes[at]}' for piece, sizes in taken.items())}"
        for at, tensor in enumerate(tensors)
    )
    return figure(fig, alt=f"Bytes of each piece. {said}.", caption=caption, name=name)


def draw_heap(
    steps: Sequence[tuple[str, float, float]], caption: str = "", name: str = ""
) -> Display:
    """Plot what the C library has given out, and what the system counts, in MiB, step by step."""
    with style():
        fig, ax = plt.subplots(figsize=(4.7, 0.75 + 0.44 * len(steps)))
        places = range(len(steps))
        series = ((-0.19, 1, "given out", "a"), (0.19, 2, "resident", "b"))
        for shift, at, label, colour in series:
            bars = ax.barh([place + shift for place in places], [step[at] for step in steps],
                           height=0.36, label=label, color=COLOURS[colour], alpha=0.8)  # fmt: skip
            ax.bar_label(bars, labels=[str(round(float(step[at]))) for step in steps], padding=3,
                         fontsize=10)  # fmt: skip
        ax.set_yticks(list(places), [step[0] for step in steps])
        ax.invert_yaxis()
        ax.set(xlabel="MiB")
        ax.margins(x=0.12)
        ax.grid(axis="y", visible=False)
        fig.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=10,
                   handlelength=0.9, columnspacing=1.2)  # fmt: skip
    said = "; ".join(f"{what}: {out:.0f} given out, {held:.0f} resident"
                     for what, out, held in steps)  # fmt: skip
    return figure(fig, alt=f"Memory in MiB, step by step. {said}.", caption=caption, name=name)
