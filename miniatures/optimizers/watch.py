"""What a step does, in numbers: operators, bytes moved, bytes held, kernels launched on a GPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from insidetorch.private.modes import dispatch_mode
from insidetorch.private.schemas import operator_writes


@dataclass(frozen=True)
class Work:
    """What one call did.

    :param operators: names of the ATen operators that reached the backend, in order.
    :param moved: bytes that these operators read and wrote, each tensor once for each operator,
        by their schemas. Tensors without dimensions, such as a step count, are left out.
    :param peak: the most bytes of new tensors that were alive at a time.
    """

    operators: tuple[str, ...]
    moved: int
    peak: int

    @property
    def kernels(self) -> tuple[str, ...]:
        """The operators that compute; reading a number into Python is left out."""
        return tuple(name for name in self.operators if name != "_local_scalar_dense")


def watch(call: Callable[[], object]) -> Work:
    """Run `call` and return its work. Only operators that carry tensors are listed."""
    mode = _mode()
    with mode:
        call()
    return Work(tuple(mode.operators), mode.moved, mode.peak)


def _mode() -> Any:
    class Watch(dispatch_mode()):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.operators: list[str] = []
            self.moved = self.live = self.peak = 0
            self.known: Any = WeakIdKeyDictionary()

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            name = func.__name__.partition(".")[0]
            if func.namespace != "aten" or name in ("lift_fresh", "detach"):
                return result
            self.operators.append(name)
            writes, named = operator_writes(func), kwargs or {}
            given = {**dict(zip(writes, args, strict=False)), **named}
            read = {id(t): t for value in given.values() for t in _tensors(value)}
            written = {id(t): t for key in given if writes[key] for t in _tensors(given[key])}
            made = {id(t): t for t in _tensors(result) if id(t) not in read}
            self.moved += sum(_size(t) for found in (read, written, made) for t in found.values())
            for tensor in made.values():
                self._hold(tensor)
            return result

        def _hold(self, tensor: Tensor) -> None:
            storage = tensor.untyped_storage()
            if _size(tensor):
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
                weakref.finalize(tensor, self._drop, storage.nbytes())

        def _drop(self, size: int) -> None:
            self.live -= size

    return Watch()


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, Tensor)]
    return []


def _size(tensor: Tensor) -> int:
    return tensor.nbytes if tensor.dim() else 0


def fresh(sizes: Iterable[int], **options: Any) -> list[torch.nn.Parameter]:
    """Return parameters of these lengths with gradients, the same ones at every call.

    :param options: dtype and device.
    """
    source = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(n, generator=source).to(**options)) for n in sizes]
    for param in params:
        param.grad = torch.randn(param.shape, generator=source).to(**options)
    return params


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Return the bytes of the tensors in an optimizer's state."""
    kept = optimizer.state.values()
    return sum(v.nbytes for state in kept for v in state.values() if isinstance(v, Tensor))


def launches(sizes: Sequence[int], tensors: int, *, blocks: int = 320, chunk: int = 65536) -> int:
    """Predict the kernels that one multi-tensor operator launches for tensors of these lengths.

    As `multi_tensor_apply` does: chunks go into a launch until its table of tensors is full, or
    its table of chunks.

    :param tensors: how many tensors fit into the table; it depends on how many lists there are.
    :param blocks: how many chunks fit.
    :param chunk: elements of a chunk.
    """
    count = held = in_launch = 0
    for size in filter(None, sizes):
        held += 1
        chunks = -(-size // chunk)
        for i in range(chunks):
            in_launch += 1
            last = i == chunks - 1
            if (held == tensors and last) or in_launch == blocks:
                count, in_launch, held = count + 1, 0, 0 if last else 1
    return count + (in_launch > 0)


def gpu_kernels(call: Callable[[], object]) -> list[str]:
    """Run `call` on a GPU and return the names of the kernels that ran, in order."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    on_gpu = [e.name for e in seen.events() if str(e.device_type).endswith("CUDA")]
    return [name for name in on_gpu if not name.startswith(("Memcpy", "Memset", "Optimizer."))]
