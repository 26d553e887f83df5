"""One call in miniature: binding, dispatcher, autograd kernel, structured kernel, stub, loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product, zip_longest
from typing import Any, TypeAlias

import torch
from torch import Tensor

from insidetorch.private.keys import dispatch_keys, excluded_keys
from miniatures.one_call.arguments import Signature, choose

Kernel: TypeAlias = Callable[..., Any]
Loop: TypeAlias = Callable[[Sequence[Any]], Iterator[Sequence[Any]]]

path: list[str] = []
"""The functions that the last call went through, by PyTorch's names."""


class Operator:
    """An operator: its kernels by dispatch key, first served first."""

    def __init__(self, name: str, kernels: Mapping[str, Kernel]) -> None:
        self.name, self.kernels = name, kernels

    def call(self, *args: Any) -> Any:
        """Run the kernel of the first key that counts for this call."""
        path.append("call")
        tensors = [one for one in args if isinstance(one, Tensor)]
        keys = set[str]().union(*map(dispatch_keys, tensors))
        return self.run(keys - set(excluded_keys()), *args)

    def redispatch(self, keys: set[str], *args: Any) -> Any:
        """The same for a kernel that hands on; `keys` are those left."""
        path.append("redispatch")
        return self.run(keys, *args)

    def run(self, keys: set[str], *args: Any) -> Any:
        """Look up and call. A key without a kernel is passed over."""
        key = next(key for key in self.kernels if key in keys)
        return self.kernels[key](keys, *args)


def autograd_kernel(keys: set[str], a: Tensor, b: Tensor, alpha: Any) -> Any:
    """Decide whether the call is recorded, then hand on."""
    path.append("VariableType::add_Tensor")
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        path.append("AddBackward0")
    below = keys - {"AutogradCPU", "ADInplaceOrView"}
    return ADD.redispatch(below, a, b, alpha)


def cpu_kernel(keys: set[str], a: Tensor, b: Tensor, alpha: Any) -> Tensor:
    """Find out what the result is, make room for it, and fill it."""
    path.append("wrapper_CPU_add_Tensor")
    shape, dtype = meta(a, b)
    return impl(torch.empty(shape, dtype=dtype), a, b, alpha)


def meta(a: Tensor, b: Tensor) -> tuple[list[int], torch.dtype]:
    """Return shape and type of the result. No element is read."""
    path.append("meta")
    sizes = zip_longest(reversed(a.shape), reversed(b.shape), fillvalue=1)
    shape = [n if m == 1 else m for m, n in sizes]  # from the right
    return shape[::-1], torch.result_type(a, b)


def impl(out: Tensor, a: Tensor, b: Tensor, alpha: Any) -> Tensor:
    """Choose the loop that was compiled for this processor, and run it."""
    best = torch.backends.cpu.get_cpu_capability()
    loop = STUB.get(best, STUB["DEFAULT"])
    path.append("add_kernel")
    left, right = (one.expand(out.shape) for one in (a, b))
    for chunk in loop(list(product(*map(range, out.shape)))):
        for place in chunk:  # one instruction does all of a chunk
            out[place] = left[place] + alpha * right[place]
    return out


def loop_of(width: int) -> Loop:
    """Return a loop that takes pairs of vectors first, then one by one."""

    def loop(places: Sequence[Any]) -> Iterator[Sequence[Any]]:
        end = len(places) // (2 * width) * 2 * width
        yield from (places[i : i + width] for i in range(0, end, width))
        yield from ([place] for place in places[end:])

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
