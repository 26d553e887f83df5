"""What PyTorch did, read off its results: which loop computed an element, how far a sum is off."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor

from miniatures.tensor_iterator.iterator import broadcast, merge, sort, spread
from miniatures.tensor_iterator.summation import Floats, total

Pair = tuple[float, float]
State = tuple[str, list[str], dict[str, list[str]]]
"""A sentence, heads of columns, and rows of cells."""


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let loops use so many threads, inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def telltale() -> Pair | None:
    """Return two numbers whose `atan2` has other bits by a vector than by the loop for single ones.

    None where no such pair was found: both are the same function then, as without AVX2.
    """
    generator = torch.Generator().manual_seed(0)
    with threads(1):
        for one, other in torch.rand(500, 2, generator=generator).tolist():
            line = torch.atan2(torch.full((65,), one), torch.full((65,), other))
            if line[0] != line[64]:
                return one, other
    return None


def block() -> int:
    """Return how many float32 numbers one turn of the vectors' loop takes, two vectors.

    Read off the bits where `telltale` finds a pair; else 16, the block of AVX2.
    """
    pair = telltale()
    if pair is None:
        return 16
    line = by_bits(torch.full((63,), pair[0]), torch.full((63,), pair[1]))
    return {56: 8, 48: 16, 32: 32}.get(line.count(True), 64)


def by_bits(one: Tensor, other: Tensor) -> list[bool]:
    """Tell for each element, in the order of the result's memory, whether a vector computed it.

    :param one: filled with the first number of `telltale`, in any layout; `other` likewise.
    """
    pair = telltale()
    assert pair is not None
    single = torch.atan2(torch.full((65,), pair[0]), torch.full((65,), pair[1]))[64]
    with threads(1):
        found = torch.atan2(one, other)
    memory = found.as_strided((found.numel(),), (1,))
    return [bool(value != single) for value in memory]


def layouts(pair: Pair) -> dict[str, tuple[Tensor, Tensor]]:
    """Return operands of many layouts, all filled with the same two numbers."""
    one, other = pair
    return {
        "side by side": (torch.full((82,), one), torch.full((82,), other)),
        "both transposed": (torch.full((41, 2), one).t(), torch.full((41, 2), other).t()),
        "one a number": (torch.full((82,), one), torch.tensor(other)),
        "one a column": (torch.full((2, 41), one), torch.full((2, 1), other)),
        "one a row": (torch.full((2, 41), one), torch.full((41,), other)),
        "rows with a gap": (torch.full((2, 50), one)[:, :41], torch.full((2, 41), other)),
        "every other one": (torch.full((164,), one)[::2], torch.full((82,), other)),
        "one transposed": (torch.full((2, 41), one), torch.full((41, 2), other).t()),
        "both repeated": (torch.tensor([one]).expand(82), torch.tensor([other]).expand(82)),
        "rows of 8": (torch.full((10, 9), one)[:, :8], torch.full((10, 8), other)),
    }


def ordering(tensors: Mapping[str, Tensor]) -> list[State]:
    """Return how dimensions are put in order and merged, step by step.

    Columns are dimensions, the outermost loop on the left; cells are strides in elements.
    """
    shape = broadcast([tuple(x.shape) for x in tensors.values()])
    steps = [spread(x, shape) for x in tensors.values()]
    names = list(tensors)

    def state(said: str, sizes: Sequence[int], rows: Sequence[Sequence[int]]) -> State:
        heads = [f"size {size}" for size in reversed(sizes)]
        return said, heads, {
            name: [str(step) for step in reversed(row)]
            for name, row in zip(names, rows, strict=True)
        }  # fmt: skip

    def placed(order: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        return [shape[at] for at in order], [[row[at] for at in order] for row in steps]

    given = list(range(len(shape)))[::-1]
    found = [state("As given: the last dimension is the innermost loop, on the right.",
                   *placed(given))]  # fmt: skip
    sizes, moved = placed(sort(shape, steps))
    found.append(
        state("In order: the dimension with the smallest strides moves inside. The first operand "
              "that has no 0 in either of two dimensions decides.", sizes, moved)
    )  # fmt: skip
    for most in range(2, len(sizes) + 1):
        loops, merged = merge(sizes[:most], [row[:most] for row in moved])
        now = state(
            f"Merged: a loop of {loops[-1]}. For every operand, the outer stride was the inner "
            "stride times the inner size.",
            loops + sizes[most:],
            [new + row[most:] for new, row in zip(merged, moved, strict=True)],
        )
        if now[1] != found[-1][1]:
            found.append(now)
    return found


def sums(x: Floats) -> dict[str, float]:
    """Return a row's sum, made in several ways; the exact one first, rounded to a double."""
    row = torch.from_numpy(x)
    with threads(1):
        return {
            "exactly": math.fsum(x.tolist()),
            "left to right, in float32": float(np.add.accumulate(x, dtype=np.float32)[-1]),
            "numpy.sum": float(x.sum()),
            "torch.sum": row.sum().item(),
            "torch.cumsum, the last": row.cumsum(0)[-1].item(),
            "torch.sum(dtype=float64)": row.sum(dtype=torch.float64).item(),
        }


def lanes() -> int:
    """Return the vector width, in float32 numbers, with which the miniature sums as PyTorch does.

    :raises ValueError: none of 4, 8 and 16 fits.
    """
    x = np.random.default_rng(5).standard_normal(1003).astype(np.float32)
    with threads(1):
        real = torch.from_numpy(x).sum().item()
        for width in (8, 4, 16):
            if float(total(x, width)) == real:
                return width
    raise ValueError("this processor's vectors are of another width than 4, 8 or 16 numbers")


def bits_under(capability: str, program: str) -> str:
    """Run a line of PyTorch in a new process that may use only some instructions.

    :param capability: ``default`` or ``avx2``: what `ATEN_CPU_CAPABILITY` may lower.
    :return: what the program printed.
    """
    code = f"import torch; torch.set_num_threads(1); torch.manual_seed(0); {program}"
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
