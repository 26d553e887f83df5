"""Random differentiable programs, on which an engine is compared with PyTorch's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.autograd.graph import get_gradient_edge

from miniatures.autograd_engine.engine import count_dependencies


@dataclass(frozen=True)
class Program:
    """What one random program made: its leaves, its results, and a gradient for each result.

    `steps` names the operations that made it, in order.
    """

    leaves: list[Tensor]
    roots: list[Tensor]
    grads: list[Tensor]
    steps: list[str]


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
    steps = [*_STEPS.items(), *(4 * [*_VIEWS.items()] if views else [])]
    names = []
    for _ in range(size):
        first, second = rng.choice(values), rng.choice(values[-4:])
        name, step = rng.choice(steps)
        made = step(first, second, rng)
        names.append(name)
        values += made if isinstance(made, list) else [made]
    roots = [values[-1], *rng.choices(values, k=rng.randint(0, 2))]
    grads = [fresh(tuple(root.shape), root.dtype == torch.float64) for root in roots]
    return Program(leaves, roots, grads, names)


def traits(program: Program) -> set[str]:
    """Return which of the cases that an engine can get wrong a program has."""
    counts = count_dependencies([get_gradient_edge(root)[:2] for root in program.roots])
    leaf_counts = [n for node, n in counts.items() if hasattr(node, "variable")]
    inner = [n for node, n in counts.items() if not hasattr(node, "variable")]
    ids = [id(root) for root in program.roots]
    found = {
        "a value used several times": any(n > 1 for n in inner),
        "a leaf used several times": any(count > 1 for count in leaf_counts),
        "a leaf that gets nothing": len(leaf_counts) < len(program.leaves),
        "a leaf as a root": any(root.is_leaf for root in program.roots),
        "several roots": len(set(ids)) > 1,
        "a root given twice": len(set(ids)) < len(ids),
        "a node with several outputs": not {"rows", "columns"}.isdisjoint(program.steps),
        "a write in place": "in place" in program.steps,
        "None for a gradient": "FirstOnlyBackward" in {node.name() for node in counts},
        "a float64 leaf": any(leaf.dtype == torch.float64 for leaf in program.leaves),
    }
    return {name for name, has in found.items() if has}


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
_STEPS: dict[str, _Step] = {
    "add": lambda first, second, rng: first + second,
    "multiply": lambda first, second, rng: first * second,
    "multiply by its sine": lambda first, second, rng: first * first.sin(),
    "tanh": lambda first, second, rng: (first - second).tanh(),
    "sum": lambda first, second, rng: first.sum(-1, keepdim=True) * 0.5,
    "where": lambda first, second, rng: torch.where(second.detach() > 0, first, second),
    "first only": lambda first, second, rng: FirstOnly.apply(first, second),  # type: ignore[no-untyped-call]
    "rows": _rows,
    "columns": _columns,
    "in place": _in_place,
}
_VIEWS: dict[str, _Step] = {
    "view": lambda first, second, rng: first.view_as(first) + second.view_as(second),
    "t": lambda first, second, rng: first.t().t() if first.dim() == 2 else first.unsqueeze(0),
}
