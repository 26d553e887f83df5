"""Random functions under random nests of transforms, for `torch.func` and for the miniature."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from miniatures.modes_and_transforms import derivatives, levels
from miniatures.modes_and_transforms.levels import Log, bind, under


class Torch:
    """The operators of the miniature, by PyTorch's own functions and transforms."""

    def call(self, op: str, *args: Any, **params: Any) -> Any:
        return levels.COMPUTE[op](*args, **params)

    def vmap(self, f: Callable[..., Any], in_dims: Sequence[int | None]) -> Callable[..., Any]:
        return torch.func.vmap(f, in_dims=tuple(in_dims))

    def grad(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return torch.func.grad(f)

    def rank(self, x: Any) -> int:
        return int(x.dim())


class Small:
    """The miniature's."""

    def call(self, op: str, *args: Any, **params: Any) -> Any:
        return bind(op, *args, **params)

    def vmap(self, f: Callable[..., Any], in_dims: Sequence[int | None]) -> Callable[..., Any]:
        return levels.vmap(f, in_dims)

    def grad(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return derivatives.grad(f)

    def rank(self, x: Any) -> int:
        return len(levels.shape(x))


@dataclass(frozen=True)
class Case:
    """A function of two vectors, a nest of transforms, and arguments.

    :param steps: operator and which earlier values it takes.
    :param nest: the transforms, the innermost first: ``grad``, or the ``in_dims`` of a `vmap`.
    """

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    nest: tuple[str | tuple[int | None, int | None], ...]
    args: tuple[Tensor, Tensor]

    @property
    def words(self) -> str:
        """The nest in words, the outermost first."""
        names = ["vmap" if isinstance(each, tuple) else each for each in reversed(self.nest)]
        return " of ".join(names)

    def run(self, by: Torch | Small) -> Any:
        """Return the result, by PyTorch or by the miniature."""

        def total(x: Any) -> Any:
            for _ in range(by.rank(x)):
                x = by.call("sum", x, dim=0)
            return x

        def inner(x: Any, y: Any) -> Any:
            values = [x, y]
            for op, of in self.steps:
                values.append(by.call(op, *(values[at] for at in of)))
            return total(values[-1])

        f: Callable[..., Any] = inner
        for each in self.nest:
            f = by.vmap(f, each) if isinstance(each, tuple) else by.grad(_summed(f, total))
        return f(*self.args)


def _summed(f: Callable[..., Any], total: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, y: total(f(x, y))


def random_case(seed: int, most: int = 3) -> Case:
    """Return a case with up to `most` transforms; equal seeds give equal cases."""
    draw = random.Random(seed)
    steps: list[tuple[str, tuple[int, ...]]] = []
    for at in range(draw.randint(2, 5)):
        known = range(at + 2)
        last = at + 1
        if draw.random() < 0.55:
            steps.append((draw.choice(["add", "mul"]), (last, draw.choice(known))))
        else:
            steps.append((draw.choice(["sin", "cos", "exp"]), (last,)))
    size = draw.randint(1, 4)
    shapes: list[list[int]] = [[size], [draw.choice([1, size])]]
    nest: list[str | tuple[int | None, int | None]] = []
    for _ in range(draw.randint(1, most)):
        if draw.random() < 0.5:
            nest.append("grad")
            continue
        batch = draw.randint(1, 3)
        shared = draw.choice([None, 0, 1])
        dims: list[int | None] = [draw.randint(0, len(each)) for each in shapes]
        if shared is not None:
            dims[shared] = None
        for each, dim in zip(shapes, dims, strict=True):
            if dim is not None:
                each.insert(dim, batch)
        nest.append((dims[0], dims[1]))
    made = torch.Generator().manual_seed(seed)
    first, second = (torch.rand(each, generator=made, dtype=torch.float64) for each in shapes)
    return Case(tuple(steps), tuple(nest), (first, second))


def equal(case: Case) -> bool:
    """Tell whether the miniature gives what PyTorch gives, to rounding."""
    theirs, ours = case.run(Torch()), case.run(Small())
    return bool(theirs.shape == ours.shape and torch.allclose(theirs, ours, rtol=1e-9, atol=1e-9))


def calls_below(case: Case) -> list[str]:
    """Return the operators that reach PyTorch while the miniature runs the case."""
    log = Log()
    under(log, lambda: case.run(Small()))
    return log.seen
