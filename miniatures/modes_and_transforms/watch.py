"""Who is asked about a call, in which order, and with what: modes, subclasses, transforms."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from insidetorch.private.modes import dispatch_mode
from insidetorch.private.transforms import (
    each_leaf,
    levels_in_force,
    modes_in_force,
    unwrapped,
    wrapper_of,
    wrapper_tensor,
)


class PassFunctions(TorchFunctionMode):
    """A function mode that hands every call on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class PassOperators(dispatch_mode()):  # type: ignore[misc]
    """A dispatch mode that hands every call on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class SeesFunctions(TorchFunctionMode):
    """Writes down each torch function that Python calls, into a list that several may share."""

    def __init__(self, seen: list[tuple[str, str]], name: str = "function mode") -> None:
        super().__init__()
        self.seen, self.name = seen, name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((self.name, said(func)))
        return func(*args, **(kwargs or {}))


class SeesOperators(dispatch_mode()):  # type: ignore[misc]
    """Writes down each operator that reaches a kernel, into a list that several may share."""

    def __init__(self, seen: list[tuple[str, str]], name: str = "dispatch mode") -> None:
        super().__init__()
        self.seen, self.name = seen, name

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append((self.name, str(func)))
        return func(*args, **(kwargs or {}))


SEEN: list[tuple[str, str]] = []
"""What `Everywhere` writes down."""


class Everywhere(torch.Tensor):
    """A tensor made of a tensor, that defines both methods and writes both down in `SEEN`."""

    @staticmethod
    def __new__(cls, held: Tensor, requires_grad: bool = False) -> Any:
        return wrapper_tensor(cls, held, requires_grad=requires_grad)

    def __init__(self, held: Tensor, requires_grad: bool = False) -> None:
        self.held = held

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(("subclass, __torch_function__", said(func)))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        SEEN.append(("subclass, __torch_dispatch__", str(func)))
        args, kwargs = each_leaf(
            lambda x: x.held if isinstance(x, cls) else x, (args, kwargs or {})
        )
        out = func(*args, **kwargs)
        return each_leaf(lambda x: cls(x) if isinstance(x, Tensor) else x, out)


def said(func: Any) -> str:
    """Return a torch function's name without the address that some carry: ``torch.Tensor.add``."""
    return str(resolve_name(func) or getattr(func, "__name__", str(func)))


def doors(call: Callable[[Any], Any], value: Tensor) -> list[tuple[str, str]]:
    """Return who saw a call, in order: both modes, and a subclass with both methods."""
    SEEN.clear()
    with SeesFunctions(SEEN), SeesOperators(SEEN):
        given = Everywhere(value)
        SEEN.clear()
        call(given)
    return list(SEEN)


def operators_under(run: Callable[[], object]) -> list[str]:
    """Return the operators that reach a kernel while `run` runs, transforms included."""
    seen: list[tuple[str, str]] = []
    with SeesOperators(seen):
        run()
    return [name.removesuffix(".default") for _, name in seen]


def products_under(run: Callable[[], object]) -> list[tuple[int, ...]]:
    """Return the shape of the second factor of each `aten.mm` that reaches a kernel."""
    shapes: list[tuple[int, ...]] = []

    class Products(dispatch_mode()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if str(func) == "aten.mm.default":
                shapes.append(tuple(args[1].shape))
            return func(*args, **(kwargs or {}))

    with Products():
        run()
    return shapes


def functions_under(run: Callable[[], object]) -> list[str]:
    """Return the torch functions that Python calls while `run` runs, as a function mode sees."""
    seen: list[tuple[str, str]] = []
    with SeesFunctions(seen):
        run()
    return [name for _, name in seen]


def python_calls(
    run: Callable[[], object], inside: Callable[[], AbstractContextManager[Any]] | None = None
) -> int:
    """Return how many Python functions one call enters, after two that filled caches."""
    entered: list[None] = []
    with ExitStack() as stack:
        if inside is not None:
            stack.enter_context(inside())
        run()
        run()
        sys.setprofile(lambda frame, event, _: entered.append(None) if event == "call" else None)
        try:
            run()
        finally:
            sys.setprofile(None)
    return len(entered) - 1  # `run` itself


class Tagged(torch.Tensor):
    """A subclass without any code."""


def kept() -> dict[str, str]:
    """Return what becomes of a subclass without code, by the way it is used."""
    x = torch.arange(6.0).reshape(3, 2)
    tagged = x.as_subclass(Tagged)
    leaf = x.clone().as_subclass(Tagged).requires_grad_()
    ways: dict[str, Callable[[], Any]] = {
        "tagged + 1, sin(tagged)": lambda: torch.sin(tagged + 1),
        "plain + tagged": lambda: x + tagged,
        "plain.add_(tagged)": lambda: x.clone().add_(tagged),
        "tagged[0], tagged.view(6)": lambda: tagged[0].view(2),
        "tagged.max(0)": lambda: tagged.max(0)[0],
        "torch.cat([plain, tagged])": lambda: torch.cat([x, tagged]),
        "tagged.detach()": tagged.detach,
        "torch.zeros_like(tagged)": lambda: torch.zeros_like(tagged),
        "torch.nn.Parameter(tagged)": lambda: torch.nn.Parameter(tagged),
        "copy.copy(tagged)": lambda: copy.copy(tagged),
        "torch.tensor(tagged)": lambda: torch.tensor(tagged),
        "torch.zeros(tagged.shape)": lambda: torch.zeros(tagged.shape),
        "torch.from_numpy(tagged.numpy())": lambda: torch.from_numpy(tagged.numpy()),
        "torch.vmap(sin)(tagged)": lambda: torch.vmap(torch.sin)(tagged),
        "leaf.grad": lambda: _gradient(leaf),
        "copy.deepcopy(tagged)": lambda: copy.deepcopy(tagged),
    }
    with warnings.catch_warnings(action="ignore"):  # `torch.tensor` of a tensor gives one
        return {way: _outcome(run) for way, run in ways.items()}


def _gradient(leaf: Tensor) -> Tensor | None:
    torch.autograd.backward((leaf * 2).sum())
    return leaf.grad


def _outcome(run: Callable[[], Any]) -> str:
    try:
        made = run()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error).__name__
    return type(made).__name__


@dataclass(frozen=True)
class Moment:
    """One event of a run under transforms.

    :param what: ``enter``, ``wrap``, ``call``, ``kernel``, ``unwrap`` or ``leave``.
    :param name: of the function or the operator.
    :param stack: the levels in force, the outermost first: number and kind.
    :param layers: of the value in question, the outermost wrapper first; the plain tensor is last.
    """

    what: str
    name: str
    stack: tuple[tuple[int, str], ...]
    layers: tuple[str, ...]


_EVENTS = {
    "_vmap_increment_nesting": "enter", "_grad_increment_nesting": "enter",
    "_vmap_decrement_nesting": "leave", "_grad_decrement_nesting": "leave",
    "_add_batch_dim": "wrap", "_wrap_for_grad": "wrap",
    "_remove_batch_dim": "unwrap", "_unwrap_for_grad": "unwrap",
}  # fmt: skip


def layers(tensor: Tensor) -> tuple[str, ...]:
    """Return a value's wrappers in words, the outermost first, with the shape that each shows."""
    found = []
    while (wrapper := wrapper_of(tensor)) is not None:
        level, dim = wrapper
        kind = "grad" if dim is None else f"vmap, hides dimension {dim}"
        found.append(f"level {level} ({kind}): {_shape(tensor)}")
        tensor = unwrapped(tensor)
    return (*found, f"tensor: {_shape(tensor)}")


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "scalar"


def record_levels(
    run: Callable[[], object], calls: Sequence[str], function: Callable[..., object]
) -> list[Moment]:
    """Return what happens while `run` calls transforms: levels, wrappers, calls and kernels.

    :param calls: names of the torch functions that the transformed `function` calls.
    """
    moments: list[Moment] = []
    value: list[tuple[str, ...]] = [()]

    def note(what: str, name: str, of: tuple[str, ...]) -> None:
        moments.append(Moment(what, name, tuple(levels_in_force()), of))

    class Kernels(dispatch_mode()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            shapes = [f"tensor: {_shape(x)}" for x in args if isinstance(x, Tensor)]
            note("kernel", str(func).removesuffix(".default"), tuple(shapes[:1]))
            return func(*args, **(kwargs or {}))

    def profile(frame: Any, event: str, about: Any) -> None:
        if event == "call" and frame.f_code is getattr(function, "__code__", None):
            value[0] = layers(next(iter(frame.f_locals.values())))
        name = getattr(about, "__name__", "")
        if event == "c_return" and name in _EVENTS:
            note(_EVENTS[name], name, ())
        elif event == "c_call" and name in (*calls, "run_backward"):
            note("call", name, value[0])

    run()  # the first transform of a process loads decompositions, which call operators
    with Kernels():
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)
    return moments


def stack_while(modes: Mapping[str, Any], call: Callable[[], object]) -> list[tuple[str, int]]:
    """Return, for each mode that sees a call, its name and how many modes are on the stack then."""
    found: list[tuple[str, int]] = []

    class Counts(TorchFunctionMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            found.append((self.name, len(modes_in_force()[0])))
            return func(*args, **(kwargs or {}))

    with ExitStack() as stack:
        for name in modes:
            stack.enter_context(Counts(name))
        found.append(("before", len(modes_in_force()[0])))
        call()
        found.append(("after", len(modes_in_force()[0])))
    return found
