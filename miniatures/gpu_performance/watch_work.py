"""What a line has to do, counted on tensors without data; and who was busy when, in a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from miniatures.gpu_performance.launch_queue import CPU, GPU, Span
from miniatures.gpu_performance.questions import Work


@dataclass
class Counted:
    """What a line does.

    :ivar operators: names of the operators that compute, in order; views are left out.
    :ivar bytes: what they read and write if none finds anything in a cache.
    :ivar flop: floating-point operations of products, convolutions and attention.
    """

    operators: list[str] = field(default_factory=list)
    bytes: int = 0
    flop: int = 0

    @property
    def kernels(self) -> int:
        """How many operators compute; most start one kernel, some none, some several."""
        return len(self.operators)

    @property
    def work(self) -> Work:
        """The same for `questions.bound`."""
        return Work(self.bytes, self.flop)


_NO_KERNEL = ("detach", "empty", "alias", "_unsafe_view", "empty_like")
_OVERWRITES = ("copy_", "fill_", "zero_", "zeros_like", "ones_like", "full_like")
"""These do not read their first tensor."""


class _Bytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, counted: Counted) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counted = counted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not func.is_view and name not in _NO_KERNEL:
            self.counted.operators.append(str(func).removeprefix("aten."))
            written = {arg.name for arg in func._schema.arguments if arg.is_out}
            read = {key: value for key, value in (kwargs or {}).items() if key not in written}
            given = list(_tensors((args[name in _OVERWRITES :], read)))
            self.counted.bytes += sum(map(_size, given)) + sum(map(_size, _tensors(out)))
        return out


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _size(tensor: Tensor) -> int:
    """Return the bytes of the numbers that a tensor has; one that is repeated counts once."""
    shape = zip(tensor.shape, tensor.stride(), strict=True)
    numbers = 1
    for size, stride in shape:
        numbers *= size if stride else min(size, 1)
    return numbers * tensor.element_size()


def counted(line: Callable[[], object]) -> Counted:
    """Run a line and count what it has to do; on meta tensors nothing is computed.

    :param line: a function without arguments.
    """
    found = Counted()
    with torch.no_grad(), FlopCounterMode(display=False) as flop, _Bytes(found):
        line()
    found.flop = flop.get_total_flops()
    return found


_STARTS = ("LaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "GraphLaunch")
_HOLDS = ("Synchronize", "cudaMalloc", "cudaFree", "cudaHost")
"""Parts of the names of calls of the driver: those that start work, and those that hold the CPU."""

PAUSE, SLOW = 100.0, 50.0
"""Microseconds: a longer pause of the CPU is work outside PyTorch, and a call that starts something
and takes longer was held up. (A launch takes some microseconds.)"""


def spans_of(profile: Any) -> list[Span]:
    """Return who was busy when, from a `torch.profiler.profile` that saw CPU and CUDA.

    Kernels and copies are the GPU's, and marks of `record_function` are left out. Of the CPU,
    launches and waits are told by the name of the driver's call; the loader's time, and pauses in
    which no operator ran, are ``host``.
    """
    found, busy = [], []
    for event in profile.events():
        start, end, name = event.time_range.start, event.time_range.end, event.name
        marked = bool(getattr(event, "is_user_annotation", False))
        if str(event.device_type).endswith("CUDA"):
            if not marked:
                found.append(Span(GPU, "kernel", name, start, end))
            continue
        if name.startswith("enumerate(DataLoader"):
            found.append(Span(CPU, "host", name, start, end))
        elif any(part in name for part in _HOLDS):
            found.append(Span(CPU, "wait", name, start, end))
        elif any(part in name for part in _STARTS):
            found.append(Span(CPU, "wait" if end - start > SLOW else "launch", name, start, end))
        elif marked or name.startswith("ProfilerStep"):
            continue  # a mark around other events
        busy.append((start, end))
    until = min((start for start, _ in busy), default=0.0)
    for start, end in sorted(busy):
        if start - until > PAUSE:
            found.append(Span(CPU, "host", "outside PyTorch", until, start))
        until = max(until, end)
    return sorted(found, key=lambda span: span.start)
