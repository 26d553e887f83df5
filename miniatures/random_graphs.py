"""Random differentiable programs, on which an engine is compared with PyTorch's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable


@dataclass(frozen=True)
class Program:
    """What one random program made: its leaves, its results, and a gradient for each result."""

    leaves: list[Tensor]
    roots: list[Tensor]
    grads: list[Tensor]


class FirstOnly(Function):
    """Twice the first tensor plus the second; to the second it sends None instead of a gradient."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        return first * 2 + second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        return None if grads[0] is None else grads[0] * 2, None


def random_program(seed: int, *, size: int = 14, views: bool = False) -> Program:
    """Build a program of about `size` operations: the same one for the same arguments.

    Every value has the shape (2, 3) or broadcasts to it. There is fan-out, sharing of subgraphs,
    nodes with several outputs some of which stay unused, a float64 leaf in some programs, writes
    in place, nodes that return None, several roots, a root twice, and a leaf as a root.

    :param views: let views (`view`, `t`, `unsqueeze`) into the program.
    """
    rng, data = random.Random(seed), torch.Generator().manual_seed(seed)

    def fresh(shape: tuple[int, ...], wide: bool) -> Tensor:
        return torch.randn(shape, generator=data, dtype=torch.float64 if wide else torch.float32)

    leaves = [
        fresh(rng.choice([(2, 3), (1, 3), (3,)]), wide=rng.random() < 0.2).requires_grad_()
        for _ in range(rng.randint(1, 4))
    ]
    values = list(leaves)
    steps = _STEPS + 4 * _VIEWS if views else _STEPS
    for _ in range(size):
        first, second = rng.choice(values), rng.choice(values[-4:])
        made = rng.choice(steps)(first, second, rng)
        values += made if isinstance(made, list) else [made]
    roots = [values[-1], *rng.choices(values, k=rng.randint(0, 2))]
    grads = [fresh(tuple(root.shape), root.dtype == torch.float64) for root in roots]
    return Program(leaves, roots, grads)


def _rows(first: Tensor, second: Tensor, rng: random.Random) -> list[Tensor]:
    rows = list((first + second).expand(2, 3).tanh().unbind())
    return rows if rng.random() < 0.5 else rows[:1]


def _columns(first: Tensor, second: Tensor, rng: random.Random) -> Tensor:
    one, rest = torch.split((first * second).expand(2, 3), [1, 2], dim=-1)
    return one + rest.sum(-1, keepdim=True) if rng.random() < 0.5 else rest[..., :1]


def _in_place(first: Tensor, second: Tensor, rng: random.Random) -> Tensor:
    wide = torch.promote_types(first.dtype, second.dtype)
    return (first * second.sin()).to(wide).add_(second).tanh_()


_Step = Callable[[Tensor, Tensor, random.Random], Tensor | list[Tensor]]
_STEPS: list[_Step] = [
    lambda first, second, rng: first + second,
    lambda first, second, rng: first * second,
    lambda first, second, rng: first * first.sin(),
    lambda first, second, rng: (first - second).tanh(),
    lambda first, second, rng: first.sum(-1, keepdim=True) * 0.5,
    lambda first, second, rng: torch.where(second.detach() > 0, first, second),
    lambda first, second, rng: FirstOnly.apply(first, second),  # type: ignore[no-untyped-call]
    _rows,
    _columns,
    _in_place,
]
_VIEWS: list[_Step] = [
    lambda first, second, rng: first.view_as(first) + second.view_as(second),
    lambda first, second, rng: first.t().t() if first.dim() == 2 else first.unsqueeze(0),
]
