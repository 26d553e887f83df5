"""Random programs of pointwise operations and reductions over rows, for PyTorch and the fuser."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

UNARY, BINARY, REDUCING = ("neg", "abs", "relu", "tanh"), ("add", "sub", "maximum"), ("sum", "amax")


def random_program(
    seed: int, size: int = 8, *, exact: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """Return a function of two matrices and a column, and of whatever has the same methods.

    :param seed: the same seed gives the same function.
    :param size: the most operations it has.
    :param exact: use no ``tanh``, so that integers give integers.
    """
    rng = random.Random(seed)
    forms, steps = ["full", "full", "row"], list[tuple[str, list[int]]]()
    for _ in range(rng.randint(3, size)):
        kind = rng.random()
        if kind < 0.3:
            operands = [rng.choice([n for n, form in enumerate(forms) if form == "full"])]
            steps.append((rng.choice(REDUCING), operands))
            forms.append("row")
            continue
        operands = rng.sample(range(len(forms)), 1 if kind < 0.6 else 2)
        steps.append(
            (rng.choice((UNARY[:-1] if exact else UNARY) if kind < 0.6 else BINARY), operands)
        )
        forms.append(min(forms[n] for n in operands))
    used = {n for _, operands in steps for n in operands}
    shown = [n for n in range(3, len(forms)) if n not in used or rng.random() < 0.1]

    def program(*inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for op, operands in steps:
            first, *rest = (values[n] for n in operands)
            method = getattr(first, op)
            values.append(method(1, keepdim=True) if op in REDUCING else method(*rest))
        return tuple(values[n] for n in shown)

    return program


def random_inputs(seed: int, rows: int = 16, columns: int = 32) -> list[Tensor]:
    """Return two matrices and a column of small integers."""
    made = torch.Generator().manual_seed(seed)
    shapes = [(rows, columns), (rows, columns), (rows, 1)]
    return [torch.randint(-4, 5, shape, generator=made).float() for shape in shapes]
