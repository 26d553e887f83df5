"""The level of `grad`: it writes down each call, and walks back when the function has returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from miniatures.modes_and_transforms.levels import Boxed, Level, bind, shape, under


class Track(Level):
    """The level of one `grad`: each result knows its parents, and how to pull a gradient back."""

    def __init__(self) -> None:
        self.made: list[Boxed] = []

    def run(self, op: str, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mine = [isinstance(x, Boxed) and x.level is self for x in args]
        below = [x.value if own else x for x, own in zip(args, mine, strict=True)]
        out = bind(op, *below, **params)
        if not any(mine):
            return out
        parents = tuple(x if own else None for x, own in zip(args, mine, strict=True))
        result = Boxed(out, self, parents=parents, pull=lambda g: PULL[op](g, out, below, params))
        self.made.append(result)
        return result


def fit(g: Any, like: Any) -> Any:
    """Sum a gradient over what broadcasting had repeated."""
    while len(shape(g)) > len(shape(like)):
        g = bind("sum", g, dim=0)
    for dim, size in enumerate(shape(like)):
        if size == 1 and shape(g)[dim] != 1:
            g = bind("unsqueeze", bind("sum", g, dim=dim), dim=dim)
    return g


def neg(x: Any) -> Any:
    """Return −x, out of operators that have rules."""
    return bind("mul", x, torch.tensor(-1.0, dtype=torch.float64))


PULL: dict[str, Callable[..., Sequence[Any]]] = {
    "add": lambda g, out, xs, p: [fit(g, xs[0]), fit(g, xs[1])],
    "mul": lambda g, out, xs, p: [
        fit(bind("mul", g, xs[1]), xs[0]), fit(bind("mul", g, xs[0]), xs[1])],
    "sin": lambda g, out, xs, p: [bind("mul", g, bind("cos", xs[0]))],
    "cos": lambda g, out, xs, p: [neg(bind("mul", g, bind("sin", xs[0])))],
    "exp": lambda g, out, xs, p: [bind("mul", g, out)],
    "sum": lambda g, out, xs, p: [
        bind("expand", bind("unsqueeze", g, dim=p["dim"]), size=shape(xs[0]))],
    "unsqueeze": lambda g, out, xs, p: [bind("sum", g, dim=p["dim"])],
    "movedim": lambda g, out, xs, p: [
        bind("movedim", g, source=p["destination"], destination=p["source"])],
    "expand": lambda g, out, xs, p: [fit(g, xs[0])],
}  # fmt: skip
"""From the gradient of a result to those of the arguments, by calls that lower levels see."""


def grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of a function with a scalar result by its first argument."""

    def gradient(first: Any, *rest: Any) -> Any:
        level = Track()
        start = Boxed(first, level)
        out = under(level, lambda: f(start, *rest))
        one = torch.ones((), dtype=torch.float64)
        found = {id(out): one}
        for box in reversed(level.made):
            if box.pull is None or id(box) not in found:
                continue
            for parent, part in zip(box.parents, box.pull(found.pop(id(box))), strict=True):
                if parent is not None:
                    old = found.get(id(parent))
                    found[id(parent)] = part if old is None else bind("add", old, part)
        nothing = bind("mul", first, torch.zeros((), dtype=torch.float64))
        return found.get(id(start), nothing)

    return gradient
