"""The plan for an elementwise operator: shape, type, result, and the loops over dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from miniatures.tensor_iterator.promotion import Operand, category, result_type

Sizes = tuple[int, ...]


@dataclass
class Plan:
    """What is known before the first result is computed.

    :param shape: of the result.
    :param dtype: in which the numbers are computed.
    :param out_strides: of the result, in elements.
    :param loops: sizes of the loops, the innermost first.
    :param steps: for the result and each operand, its stride in each loop, in elements.
    """

    shape: Sizes
    dtype: torch.dtype
    out_strides: Sizes
    loops: list[int]
    steps: list[list[int]]


def broadcast(shapes: Sequence[Sizes]) -> Sizes:
    """Return the common shape; sizes are compared from the right, and 1 fits all."""
    found: list[int] = []
    for shape in shapes:
        found = [1] * (len(shape) - len(found)) + found
        for at in range(1, len(shape) + 1):
            if found[-at] != shape[-at] and 1 not in (found[-at], shape[-at]):
                raise RuntimeError(f"{found[-at]} and {shape[-at]} do not fit together")
            found[-at] = shape[-at] if found[-at] == 1 else found[-at]
    return tuple(found)


def plan(*operands: Operand, true_division: bool = False) -> Plan:
    """Plan an operator such as `add` for these operands; the result is new."""
    dtype = result_type(operands)
    if true_division and category(dtype) < 2:
        dtype = torch.get_default_dtype()
    tensors = [x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x) for x in operands]
    shape = broadcast([tuple(x.shape) for x in tensors])
    if all(tuple(x.shape) == shape for x in tensors) and (kept := _shortcut(tensors)):
        one = [1] if shape else []
        return Plan(shape, dtype, kept, [prod(shape)] if shape else [], [one] * (len(tensors) + 1))
    steps = [spread(x, shape) for x in tensors]
    order = sort(shape, steps)
    sizes = [shape[at] for at in order]
    out, filled = [0] * len(shape), 1
    for at in order:
        out[at] = filled
        filled *= shape[at]
    loops, merged = merge(sizes, [[row[at] for at in order] for row in [out, *steps]])
    if order == list(range(len(shape)))[::-1]:
        out = list(torch.empty(shape, device="meta").stride())
    return Plan(shape, dtype, tuple(out), loops, merged)


def spread(x: Tensor, shape: Sizes) -> list[int]:
    """Return the strides of an operand in the common shape: 0 where it is repeated."""
    new = len(shape) - x.dim()
    return [0] * new + [0 if size == 1 != whole else step for size, whole, step in
                        zip(x.shape, shape[new:], x.stride(), strict=True)]  # fmt: skip


def _shortcut(tensors: Sequence[Tensor]) -> Sizes | None:
    """Return the result's strides if all operands lie alike and without gaps."""
    if all(x.is_contiguous() for x in tensors):
        return torch.empty(tensors[0].shape, device="meta").stride()
    last = torch.channels_last
    if tensors[0].dim() == 4 and all(x.is_contiguous(memory_format=last) for x in tensors):
        return torch.empty(tensors[0].shape, device="meta", memory_format=last).stride()
    if all(_dense(x) and x.stride() == tensors[0].stride() for x in tensors):
        return tensors[0].stride()
    return None


def _dense(x: Tensor) -> bool:
    """Tell whether the elements fill their memory, each place once."""
    filled = 1
    for step, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size != 1:
            if step != filled:
                return False
            filled *= size
    return True


def sort(shape: Sizes, steps: Sequence[Sequence[int]]) -> list[int]:
    """Return the dimensions in the order of the loops, the innermost first.

    The first operand that repeats neither of two dimensions decides which is inside.
    """
    order = list(range(len(shape)))[::-1]
    for last in range(1, len(order)):
        at = last
        for before in range(last - 1, -1, -1):
            said = _compare(shape, steps, order[before], order[at])
            if said > 0:
                order[before], order[at], at = order[at], order[before], before
            elif said < 0:
                break
    return order


def _compare(shape: Sizes, steps: Sequence[Sequence[int]], one: int, other: int) -> int:
    for row in steps:
        if row[one] == 0 or row[other] == 0:
            continue  # repeated along one of them: no opinion, ask the next operand
        if row[one] != row[other]:
            return 1 if row[one] > row[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0


def merge(
    sizes: Sequence[int], steps: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Merge neighbouring loops where, for every operand, one walk covers both."""
    loops, rows = list(sizes[:1]), [[row[0]] if row else [] for row in steps]
    for at in range(1, len(sizes)):
        joined = all(loops[-1] * new[-1] == row[at] for new, row in zip(rows, steps, strict=True))
        if joined or 1 in (loops[-1], sizes[at]):
            if loops[-1] == 1:
                for new, row in zip(rows, steps, strict=True):
                    new[-1] = row[at]
            loops[-1] *= sizes[at]
        else:
            loops.append(sizes[at])
            for new, row in zip(rows, steps, strict=True):
                new.append(row[at])
    return loops, rows
