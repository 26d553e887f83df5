"""`vmap`, `grad` and a log, as levels of one stack: a call goes to the highest level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

COMPUTE: dict[str, Callable[..., Any]] = {
    "add": torch.add, "mul": torch.mul, "sin": torch.sin, "cos": torch.cos, "exp": torch.exp,
    "sum": torch.sum, "unsqueeze": torch.unsqueeze, "movedim": torch.movedim,
    "expand": torch.Tensor.expand,
}  # fmt: skip
"""The operators, and what computes each on plain tensors."""
STACK: list[Level] = []
"""The levels that are in force, the outermost transform first."""


class Level:
    """One running transform."""

    def run(self, op: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Take a call while this is the highest level, and call what is below."""
        raise NotImplementedError


@dataclass(eq=False)
class Boxed:
    """A value that belongs to a level: `dim` is for `Batch`, `parents` and `pull` for `Track`."""

    value: Any
    level: Level
    dim: int = 0
    parents: tuple[Any, ...] = ()
    pull: Callable[[Any], Sequence[Any]] | None = None


def bind(op: str, *args: Any, **params: Any) -> Any:
    """Call an operator: the highest level takes it, with that level off the stack."""
    if not STACK:
        return COMPUTE[op](*args, **params)
    level = STACK.pop()
    try:
        return level.run(op, args, params)
    finally:
        STACK.append(level)


def under(level: Level, run: Callable[[], Any]) -> Any:
    """Run with one level more."""
    STACK.append(level)
    try:
        return run()
    finally:
        STACK.pop()


def shape(x: Any) -> tuple[int, ...]:
    """Return the shape that the transformed function sees: without the hidden dimensions."""
    if not isinstance(x, Boxed):
        return tuple(x.shape)
    inner = list(shape(x.value))
    if isinstance(x.level, Batch):
        del inner[x.dim]
    return tuple(inner)


class Log(Level):
    """Writes down each call, and hands it on."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run(self, op: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
        self.seen.append(op)
        return bind(op, *args, **params)


class Batch(Level):
    """The level of one `vmap`: a dimension of its boxed values is hidden from the function."""

    def run(self, op: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mine = [isinstance(x, Boxed) and x.level is self for x in args]
        if not any(mine):
            return bind(op, *args, **params)
        most, values = max(len(shape(x)) for x in args), list(args)
        for at, x in enumerate(args):
            if mine[at]:
                values[at] = x.value
                if x.dim:
                    values[at] = bind("movedim", x.value, source=x.dim, destination=0)
                for _ in range(most - len(shape(x))):
                    values[at] = bind("unsqueeze", values[at], dim=1)
        size = next(shape(x)[0] for x, own in zip(values, mine, strict=True) if own)
        return Boxed(RULES[op](values, params, size), self)


def pointwise(op: str) -> Callable[..., Any]:
    """Return the rule of an operator that works element by element: call it once for all."""
    return lambda xs, params, size: bind(op, *xs, **params)


def _expand(xs: Any, params: dict[str, Any], size: int) -> Any:
    x = xs[0]
    for _ in range(len(params["size"]) + 1 - len(shape(x))):
        x = bind("unsqueeze", x, dim=1)
    return bind("expand", x, size=(size, *params["size"]))


RULES: dict[str, Callable[..., Any]] = {
    **{op: pointwise(op) for op in ("add", "mul", "sin", "cos", "exp")},
    "sum": lambda xs, p, size: bind("sum", xs[0], dim=p["dim"] + 1),
    "unsqueeze": lambda xs, p, size: bind("unsqueeze", xs[0], dim=p["dim"] + 1),
    "movedim": lambda xs, p, size: bind(
        "movedim", xs[0], source=p["source"] + 1, destination=p["destination"] + 1),
    "expand": _expand,
}  # fmt: skip
"""What each operator becomes when the hidden dimension is the first."""


def vmap(f: Callable[..., Any], in_dims: Sequence[int | None]) -> Callable[..., Any]:
    """Return `f` for whole batches; an argument whose entry is None is shared."""

    def mapped(*args: Any) -> Any:
        level = Batch()
        boxed = [x if d is None else Boxed(x, level, d) for x, d in zip(args, in_dims, strict=True)]
        out = under(level, lambda: f(*boxed))
        if not isinstance(out, Boxed) or out.level is not level:  # the batch did not reach it
            size = next(shape(x.value)[x.dim] for x in boxed if getattr(x, "level", 0) is level)
            return bind("expand", out, size=(size, *shape(out)))
        return bind("movedim", out.value, source=out.dim, destination=0) if out.dim else out.value

    return mapped
