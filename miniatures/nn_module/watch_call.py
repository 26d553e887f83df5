"""One call of a module with every kind of hook, recorded station by station, and its backward."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.nn.modules.module as everywhere
from torch import Tensor, nn

STATIONS = (
    "compiled code?", "any hook?", "global pre-hooks", "its own pre-hooks", "mark the inputs",
    "forward()", "global forward hooks", "its own forward hooks", "mark the outputs",
)  # fmt: skip
"""Where a call passes, in the order of `Module._wrapped_call_impl` and `_call_impl`."""

BACKWARD = {"mark the outputs": "full backward pre-hooks", "mark the inputs": "full backward hooks"}
"""What the nodes that a mark leaves run in a backward pass."""

_PLACES = {
    "_wrapped_call_impl": "compiled code?", "_call_impl": "any hook?",
    "setup_input_hook": "mark the inputs", "setup_output_hook": "mark the outputs",
}  # fmt: skip


@dataclass(frozen=True)
class Stop:
    """A station, and the number that travels when it is left.

    :param station: one of `STATIONS`.
    :param back: it is passed in the backward pass; the number is a gradient.
    :param before: the number on arrival.
    :param after: the number on leaving.
    """

    station: str
    back: bool
    before: float
    after: float


def recorded(module: nn.Module, x: Tensor) -> list[Stop]:
    """Call `module` on one number and differentiate, noting each station that is passed.

    Hooks of all modules that do nothing are registered meanwhile. `x` gets a gradient.
    """
    stops: list[Stop] = []
    codes = _hooks_of(module)

    def passed(station: str, back: bool, before: float, result: object) -> None:
        stops.append(Stop(station, back, before, before if result is None else _number(result)))

    def watch(frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        before = stops[-1].after if stops else x.item()
        if event == "call" and code.co_name in ("_wrapped_call_impl", "_call_impl"):
            passed(_PLACES[code.co_name], False, before, None)
        elif event == "return" and code is type(module).forward.__code__:
            passed("forward()", False, before, result)
        elif event == "return" and code.co_name in _PLACES and "setup" in code.co_name:
            passed(_PLACES[code.co_name], False, before, result)
        elif event == "return" and code in codes:
            station, back = codes[code]
            if back:
                seen = frame.f_locals[code.co_varnames[1]]
                passed(station, True, _number(seen), result)
            else:
                passed(station, False, before, result)

    with _silent_global_hooks(codes):
        sys.setprofile(watch)
        try:
            result = module(x)
            torch.autograd.backward(result)
        finally:
            sys.setprofile(None)
    return stops


def _number(value: object) -> float:
    while isinstance(value, tuple):
        value = value[0]
    assert isinstance(value, Tensor)
    return value.item()


def _hooks_of(module: nn.Module) -> dict[Any, tuple[str, bool]]:
    tables = {
        "_forward_pre_hooks": ("its own pre-hooks", False),
        "_forward_hooks": ("its own forward hooks", False),
        "_backward_pre_hooks": ("mark the outputs", True),
        "_backward_hooks": ("mark the inputs", True),
    }
    return {
        hook.__code__: place
        for table, place in tables.items()
        for hook in vars(module)[table].values()
    }


@contextmanager
def _silent_global_hooks(codes: dict[Any, tuple[str, bool]]) -> Iterator[None]:
    def before(module: nn.Module, args: object) -> None:
        """Run before every module."""

    def after(module: nn.Module, args: object, output: object) -> None:
        """Run after every module."""

    codes[before.__code__] = "global pre-hooks", False
    codes[after.__code__] = "global forward hooks", False
    register: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (everywhere.register_module_forward_pre_hook, before),
        (everywhere.register_module_forward_hook, after),
    ]
    handles = [make(hook) for make, hook in register]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
