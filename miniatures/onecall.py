"""One call in miniature: binding, dispatcher, autograd kernel, structured kernel, stub, loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from insidetorch import private
from miniatures.onecall_args import Signature, choose

path: list[str] = []
"""The functions that the last call went through, by PyTorch's names."""


class Operator:
    """An operator: its kernels by dispatch key, the key that is served first in front."""

    def __init__(self, name: str, kernels: Mapping[str, Callable[..., Any]]) -> None:
        self.name, self.kernels = name, kernels

    def call(self, *args: Any) -> Any:
        """Run the kernel of the first key that the tensors carry and the thread does not skip."""
        path.append("call")
        keys = {
            key for one in args if isinstance(one, Tensor) for key in private.dispatch_keys(one)
        }
        return self.run(keys - set(private.excluded_keys()), *args)

    def redispatch(self, keys: set[str], *args: Any) -> Any:
        """The same for a kernel that hands on, with the keys that are left."""
        path.append("redispatch")
        return self.run(keys, *args)

    def run(self, keys: set[str], *args: Any) -> Any:
        """Look up and call. A key without a kernel falls through to the next."""
        kernel = next(kernel for key, kernel in self.kernels.items() if key in keys)
        return kernel(keys, *args)


def autograd_kernel(keys: set[str], a: Tensor, b: Tensor, alpha: float) -> Any:
    """Decide whether the call is recorded, then hand on without the autograd key."""
    path.append("VariableType::add_Tensor")
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        path.append("AddBackward0")
    return ADD.redispatch(keys - {"AutogradCPU", "ADInplaceOrView"}, a, b, alpha)


def cpu_kernel(keys: set[str], a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Find out what the result is, make room for it, and fill it."""
    path.append("wrapper_CPU_add_Tensor")
    shape, dtype = meta(a, b)
    return impl(torch.empty(shape, dtype=dtype), a, b, alpha)


def meta(a: Tensor, b: Tensor) -> tuple[torch.Size, torch.dtype]:
    """Return shape and type of the result. No element is read."""
    path.append("meta")
    shape: torch.Size = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]
    return shape, torch.result_type(a, b)


def impl(out: Tensor, a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """Choose the loop that was compiled for this processor, and run it."""
    loop = STUB.get(torch.backends.cpu.get_cpu_capability(), STUB["DEFAULT"])
    path.append("add_kernel")
    places = product(*map(range, out.shape))
    left, right = (one.expand(out.shape) for one in (a, b))
    for chunk in loop(list(places)):
        for place in chunk:  # one instruction does all of a chunk
            out[place] = left[place] + alpha * right[place]
    return out


def loop_of(width: int) -> Callable[[Sequence[Any]], Iterator[Sequence[Any]]]:
    """Return a loop as `vectorized_loop` is: pairs of vectors first, then one by one."""

    def loop(places: Sequence[Any]) -> Iterator[Sequence[Any]]:
        pairs = len(places) // (2 * width) * 2
        yield from (places[i * width : (i + 1) * width] for i in range(pairs))
        yield from ([place] for place in places[pairs * width :])

    return loop


STUB = {"DEFAULT": loop_of(8), "AVX2": loop_of(8)}  # no entry for AVX512
ADD = Operator("add.Tensor", {"AutogradCPU": autograd_kernel, "CPU": cpu_kernel})
SIGNATURES = [
    Signature("add(Tensor input, Scalar alpha, Tensor other, *, Tensor out=None)|deprecated"),
    Signature("add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)"),
]


def add(*args: Any, **kwargs: Any) -> Tensor:
    """Do as `torch.add`, without ``out=``."""
    path[:] = ["THPVariable_add"]
    bound = choose(SIGNATURES, args, kwargs)[1]
    a, b = (torch.as_tensor(bound[name]) for name in ("input", "other"))
    result: Tensor = ADD.call(a, b, bound.get("alpha", 1))
    return result
