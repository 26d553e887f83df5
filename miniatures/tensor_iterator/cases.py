"""Random operands, and what PyTorch makes of them, to compare the miniature with."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from insidetorch import private
from miniatures.tensor_iterator.iterator import plan
from miniatures.tensor_iterator.promotion import Operand

TYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip
"""The types that `add` has a loop for, on every processor."""


def random_shapes(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two shapes that broadcast, most of them with sizes of 1, some with none or a 0."""
    whole = [rng.choice([1, 1, 2, 3, 4, 5, 0] if rng.random() < 0.1 else [1, 2, 3, 4, 5])
             for _ in range(rng.randint(0, 5))]  # fmt: skip

    def some() -> tuple[int, ...]:
        shape = [size if rng.random() < 0.75 else 1 for size in whole]
        return tuple(shape[rng.randint(0, len(shape)) if rng.random() < 0.3 else 0 :])

    return some(), some()


def random_tensor(rng: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a tensor of a shape in a random layout: permuted, with gaps, or repeated."""
    order = list(range(len(shape)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    gaps = [rng.choice([1, 1, 1, 2]) if rng.random() < 0.3 else 1 for _ in shape]
    held = torch.zeros([shape[at] * gaps[at] for at in order], dtype=dtype)
    x = held[tuple(slice(None, None, gaps[at]) for at in order)] if order else held
    x = x.permute([order.index(at) for at in range(len(shape))]) if order else x
    if len(shape) == 4 and rng.random() < 0.15:
        x = x.contiguous(memory_format=torch.channels_last)
    if shape and rng.random() < 0.15:
        at = rng.randrange(len(shape))
        if shape[at]:
            x = x.narrow(at, 0, 1).expand(shape)
    return x


def random_pair(seed: int) -> tuple[Operand, Operand]:
    """Return two operands: tensors, one of them sometimes a Python number."""
    rng = random.Random(seed)
    one, other = random_shapes(rng)
    types = [rng.choice(TYPES), rng.choice(TYPES)]
    if rng.random() < 0.4:
        types[1] = types[0]
    if torch.bfloat16 in types:  # has no sum with a complex operand, where there is bcomplex32
        types = [torch.float32 if dtype.is_complex else dtype for dtype in types]
    first: Operand = random_tensor(rng, one, types[0])
    second: Operand = random_tensor(rng, other, types[1])
    if rng.random() < 0.2:
        second = rng.choice([True, 2, 0.5, 1j if types[0] != torch.bfloat16 else 1.5])
    return (second, first) if rng.random() < 0.3 else (first, second)


def seen(one: Operand, other: Operand, operator: Callable[..., Tensor] = torch.add) -> Any:
    """Return shape, type and strides of what an operator of PyTorch returns."""
    with warnings.catch_warnings(action="ignore"):  # complex32 is called experimental
        found = operator(one, other)
    return tuple(found.shape), found.dtype, found.stride()


def planned(one: Operand, other: Operand, *, true_division: bool = False) -> Any:
    """Return shape, type and strides that the miniature gives the result."""
    with warnings.catch_warnings(action="ignore"):
        made = plan(one, other, true_division=true_division)
    return made.shape, made.dtype, made.out_strides


def loops_agree(one: Tensor, other: Tensor) -> bool:
    """Compare loops, steps and type with PyTorch's own iterator, where a release shows it."""
    with warnings.catch_warnings(action="ignore"):
        real, mine = private.binary_iterator(one, other), plan(one, other)
    return bool(real == (tuple(mine.loops), [tuple(row) for row in mine.steps], mine.dtype))
