"""Which type a result has: categories, sizes, and who has a say."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Operand = Tensor | complex
"""What stands in an expression: a tensor, or a Python number (`bool` and `int` count as such)."""


def category(dtype: torch.dtype) -> int:
    """Return 0 for bool, 1 for integers, 2 for floating point, 3 for complex."""
    return 0 if dtype == torch.bool else 3 if dtype.is_complex else 1 + dtype.is_floating_point


def promote(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """Return the type that holds both, as `torch.promote_types` does.

    :raises RuntimeError: one of them is `uint16`, `uint32` or `uint64`, the other another integer.
    """
    low, high = sorted((one, other), key=category)
    if one == other or category(low) == 0 or category(low) == 1 < category(high):
        return high
    if category(high) == 1:
        signed = [torch.int8, torch.int16, torch.int32, torch.int64]
        if {one, other} - {torch.uint8, *signed}:
            raise RuntimeError("Promotion for uint16, uint32, uint64 types is not supported")
        if torch.uint8 in (one, other):
            signed = signed[1:]  # no int8 holds 200
        return next(t for t in signed if t.itemsize >= max(one.itemsize, other.itemsize))
    if category(low) == 2 == category(high):
        wider = max(one, other, key=lambda dtype: dtype.itemsize)
        return wider if one.itemsize != other.itemsize else torch.float32  # half and bfloat16
    real = promote(_real(one), _real(other))
    return real.to_complex()


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype


def result_type(operands: Sequence[Operand]) -> torch.dtype:
    """Return the common type of operands: dimensions speak first, numbers last."""
    ranks: list[torch.dtype | None] = [None, None, None]
    for operand in operands:
        rank = 2 if not isinstance(operand, Tensor) else 0 if operand.dim() else 1
        dtype = operand.dtype if isinstance(operand, Tensor) else _of_number(operand)
        before = ranks[rank]
        ranks[rank] = dtype if before is None else promote(before, dtype)
    found = ranks[0]
    for lower in ranks[1:]:
        if found is None or lower is None:
            found = found or lower
        elif category(lower) > category(found):  # only a higher category changes anything
            found = _made_complex(found) if category(found) == 2 else promote(found, lower)
    assert found is not None
    return found


def _of_number(number: complex) -> torch.dtype:
    default = torch.get_default_dtype()
    kinds = {bool: torch.bool, int: torch.int64, float: default, complex: default.to_complex()}
    return kinds[type(number)]


def _made_complex(dtype: torch.dtype) -> torch.dtype:
    if dtype == torch.bfloat16:  # a release that has the complex type of its size takes that
        return getattr(torch, "bcomplex32", torch.complex64)
    return dtype.to_complex()
