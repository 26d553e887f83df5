"""What `torch.compile` does with modes, subclasses and transforms: traced, run beside, left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functionalize, grad, jvp

from insidetorch.private.transforms import each_leaf, wrapper_tensor
from miniatures.modes_and_transforms.watch import PassFunctions, PassOperators, Tagged


@dataclass(frozen=True)
class Found:
    """What became of a compiled function.

    :param graphs: graphs that were captured.
    :param runs: how often a captured graph ran at the second call.
    :param whole: with ``fullgraph=True`` it does not raise, and one graph is captured.
    :param equal: the results are those of eager mode.
    """

    graphs: int
    runs: int
    whole: bool
    equal: bool

    @property
    def words(self) -> str:
        """What that means."""
        if self.whole:
            return "traced into one graph"
        return "in pieces, between graph breaks" if self.graphs else "not captured: eager mode"


class Scaled(torch.Tensor):
    """A wrapper: numbers times a scale. It does not say of what it is made."""

    @staticmethod
    def __new__(cls, held: Tensor, scale: float) -> Any:
        return wrapper_tensor(cls, held)

    def __init__(self, held: Tensor, scale: float) -> None:
        self.held, self.scale = held, scale

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = each_leaf(
            lambda x: x.held * x.scale if isinstance(x, Scaled) else x, (args, kwargs or {})
        )
        out = func(*args, **kwargs)
        return each_leaf(lambda x: cls(x, 1.0) if isinstance(x, Tensor) else x, out)


class Flat(Scaled):
    """The same, and it says of what it is made."""

    def __tensor_flatten__(self) -> tuple[list[str], float]:
        return ["held"], self.scale

    @staticmethod
    def __tensor_unflatten__(held: Any, scale: float, size: Any, stride: Any) -> Flat:
        return Flat(held["held"], scale)


def _function_mode(x: Tensor) -> Tensor:
    with PassFunctions():
        return torch.sin(x)


def _dispatch_mode(x: Tensor) -> Tensor:
    with PassOperators():
        return torch.sin(x)


def _loss(x: Tensor) -> Tensor:
    return (x * x).sum()


def situations() -> dict[str, Found]:
    """Return what `torch.compile` does in each situation, by what it is."""
    with warnings.catch_warnings(action="ignore"):  # each graph break may give one
        return _situations()


def _situations() -> dict[str, Found]:
    x = torch.arange(6.0).reshape(3, 2)
    inside: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "a function mode inside": (_function_mode, x),
        "a subclass without code as argument": (torch.sin, x.as_subclass(Tagged)),
        "`vmap` inside": (torch.vmap(torch.sin), x),
        "`grad` inside": (grad(_loss), x),
        "`jvp` inside": (lambda t: jvp(torch.sin, (t,), (t,))[1], x),
        "`functionalize` inside": (lambda t: functionalize(_loss)(t), x),
        "a wrapper with `__tensor_flatten__` as argument": (torch.sin, Flat(x, 2.0)),
        "a wrapper without it as argument": (torch.sin, Scaled(x, 2.0)),
        "a dispatch mode inside": (_dispatch_mode, x),
    }
    found = {name: _try(function, value) for name, (function, value) in inside.items()}
    found["a function mode outside"] = _try(torch.sin, x, lambda: PassFunctions())
    found["a dispatch mode outside"] = _try(torch.sin, x, lambda: PassOperators())
    found["`vmap` outside"] = _try(torch.sin, x, around=torch.vmap)
    found["`grad` outside"] = _try(_loss, x, around=grad)
    return found


def _try(
    function: Callable[[Any], Any],
    value: Any,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    around: Callable[[Any], Any] | None = None,
) -> Found:
    graphs: list[Any] = []
    runs: list[None] = []

    def backend(module: Any, example: Any) -> Any:
        graphs.append(module)

        def run(*args: Any) -> Any:
            runs.append(None)
            return module(*args)

        return run

    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend)
    outer, plain = (around or _same)(compiled), (around or _same)(function)
    with context():
        outer(value)
        runs.clear()
        got = outer(value)
        want = plain(value)
    captured, ran = len(graphs), len(runs)
    graphs.clear()
    torch.compiler.reset()
    strict = (around or _same)(torch.compile(function, backend=backend, fullgraph=True))
    try:
        with context():
            strict(value)
        whole = len(graphs) == 1
    except Exception:  # dynamo's own classes, which differ between releases
        whole = False
    torch.compiler.reset()
    return Found(captured, ran, whole, bool(torch.equal(_numbers(got), _numbers(want))))


def _same(function: Any) -> Any:
    return function


def _numbers(x: Any) -> Tensor:
    return x.held * x.scale if isinstance(x, Scaled) else x
