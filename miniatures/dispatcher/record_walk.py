"""Recording which kernels of an operator a call runs, in order, with the sets at each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from insidetorch.private.keys import key_bits, thread_sets
from insidetorch.private.tables import computed_table, kernel_library
from miniatures.dispatcher.watch import keys_here


@dataclass(frozen=True)
class Stop:
    """One kernel that ran.

    :param key: the place it stands in.
    :param kernel: the file and line where it was registered.
    :param keys: the set that the dispatcher computed, the first served first.
    :param included: what the thread included when it ran, as bits; `excluded` likewise.
    """

    operator: str
    key: str
    kernel: str
    keys: tuple[str, ...]
    included: int
    excluded: int


def recorded(call: Callable[[], object], *operators: str, keys: Sequence[str] = ()) -> list[Stop]:
    """Run `call`, and return the kernels of these operators that it ran, in order.

    For each place that a kernel or a fallback fills, a kernel is registered that notes the sets
    and calls the one that was there. They go when the call has ended. All kernels are looked up
    before one is registered, since a registration may change other places.

    :param keys: the places to watch; those that dense CPU tensors and `torch.func` use if empty.
    """
    places = keys or (
        "CPU", "Python", "FuncTorchDynamicLayerBackMode", "ADInplaceOrView", "AutogradCPU",
        "AutocastCPU", "FuncTorchBatched", "FuncTorchGradWrapper", "FuncTorchDynamicLayerFrontMode",
    )  # fmt: skip
    seen: list[Stop] = []
    found = [
        (operator, key, computed_table(operator)[key][0], torch.library.get_kernel(operator, key))
        for operator in operators
        for key in places
        if _fills(operator, key)
    ]
    kept = [_watch(*each, seen) for each in found]
    try:
        call()
    finally:
        for library in kept:
            library.reset()
    return seen


def _fills(operator: str, key: str) -> bool:
    place = computed_table(operator).get(key)
    return place is not None and not place[0].startswith("fallthrough")


def _watch(operator: str, key: str, kernel: str, original: Any, seen: list[Stop]) -> Any:
    here = keys_here()

    def note(keys: Any, *args: Any, **kwargs: Any) -> Any:
        left, names = key_bits(keys), []
        while (name := here.top(left)) != "Undefined":
            names.append(name)
            left = here.without(left, here.bits[name])
        seen.append(Stop(operator, key, kernel, tuple(names), *thread_sets()))
        return original.call_boxed(keys, *args, **kwargs)

    space, _, name = operator.partition("::")
    library = kernel_library(space, "recorded")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it replaces a kernel, which it calls
        library.impl(name, key, note, True)
    return library
