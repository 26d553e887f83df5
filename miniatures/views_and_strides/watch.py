"""What PyTorch copies: whether a result shares its input's memory, and copies inside a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from insidetorch.watch.modes import each_call


def fate(call: Callable[[Tensor], Any], source: Tensor) -> tuple[str, int]:
    """Return what a call gives, and how many bytes of new memory that has.

    :returns: ``"itself"``, ``"view"``, ``"copy"`` or ``"raises"``; of several results the first
        counts.
    """
    try:
        result = call(source)
    except RuntimeError:
        return "raises", 0
    result = result if isinstance(result, Tensor) else result[0]
    if result is source:
        return "itself", 0
    if result.untyped_storage().data_ptr() == source.untyped_storage().data_ptr():
        return "view", 0
    return "copy", result.untyped_storage().nbytes()


def copied_inside(call: Callable[[], object]) -> int:
    """Return how many numbers the operators below a call copy with `aten::copy_`.

    The profiler sees operators that kernels call; a kernel that moves numbers by itself, as
    libraries for products do, shows nothing.
    """
    with torch.autograd.profiler.profile(use_kineto=False, record_shapes=True) as told:
        call()
    events = told.function_events or []
    return sum(math.prod(e.input_shapes[0]) for e in events if e.name == "aten::copy_")


@dataclass(frozen=True)
class Stage:
    """An operator of a decomposed call, and whose memory goes in and out, with sizes and strides.

    :param copies: whether it does nothing but write its input into new memory.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    output: tuple[str, tuple[int, ...], tuple[int, ...]]
    copies: bool


def stages(call: Callable[[], object], **named: Tensor) -> list[Stage]:
    """Run a call and return the operators it is made of, below autograd, in order.

    :param named: tensors whose memory is called by these names; other memory is called by the
        operator that made it.
    """
    found: list[Stage] = []
    owners = {tensor.untyped_storage().data_ptr(): name for name, tensor in named.items()}
    alive: list[Tensor] = []  # so that no address is used twice

    def told(tensor: Tensor, made_by: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        alive.append(tensor)
        owner = owners.setdefault(tensor.untyped_storage().data_ptr(), made_by)
        return owner, tuple(tensor.shape), tensor.stride()

    def run(func: Any, args: Sequence[Any], kwargs: Any) -> Any:
        given = [told(a, "input") for a in args if isinstance(a, Tensor)]
        result = func(*args, **kwargs)
        name = str(func).split(".")[1]
        made = {"clone": "copy", "_reshape_copy": "copy", "bmm": "product"}.get(name, name)
        copies = name in ("clone", "_reshape_copy", "copy_")
        found.append(Stage(name, tuple(given), told(result, made), copies))
        return result

    with each_call(run):
        call()
    return found


def keeps_format(call: Callable[[Tensor], Tensor], image: Tensor) -> str:
    """Say which format the result of a channels-last image has.

    :returns: ``"last"``, ``"both"``, ``"plain"``, or ``"other"`` where it fills no memory of its
        own, or has not four dimensions.
    """
    result = call(image)
    plain = result.is_contiguous()
    last = result.dim() == 4 and result.is_contiguous(memory_format=torch.channels_last)
    if plain and result.dim() == 4:
        return "both" if last else "plain"
    return "last" if last else "other"
