"""Rings through a tensor, and whether Python's collector frees them; pieces that may be missing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from miniatures.tensor.reader import impl_of, storage_of


class Double(torch.autograd.Function):
    """A node written in Python."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        return t * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def stays(build: Callable[[], object]) -> bool:
    """Build something, let go of it, collect, and tell whether it is still there."""
    gc.freeze()  # what was there before need not be gone through again
    weak = weakref.ref(build())
    gc.collect()
    gc.unfreeze()
    return weak() is not None


def rings() -> dict[str, bool]:
    """Return for each of eight things that a tensor may keep whether the tensor stays for ever."""

    def keeps(make: Callable[[Tensor], object]) -> Callable[[], Tensor]:
        def build() -> Tensor:
            t = torch.ones(2, requires_grad=True)
            t.kept = make(t)  # type: ignore[attr-defined]
            return t

        return build

    def own_node() -> Tensor:
        y: Tensor = Double.apply(torch.ones(2, requires_grad=True))  # type: ignore[no-untyped-call]
        y.grad_fn.kept = y  # type: ignore[union-attr]
        return y

    def hooked() -> Tensor:
        t = torch.ones(2, requires_grad=True)
        t.register_hook(lambda grad, kept=t: None)  # type: ignore[no-untyped-call]
        return t

    def through_grad() -> Tensor:
        t = torch.ones(2, requires_grad=True)
        t.grad = torch.ones(2)
        t.grad.kept = t  # type: ignore[attr-defined]
        return t

    return {
        "t.kept = t": stays(keeps(lambda t: t)),
        "a hook of the leaf t keeps t": stays(hooked),
        "y.grad_fn.kept = y, a Function's": stays(own_node),
        "t.kept = (t * 2).detach()": stays(keeps(lambda t: (t * 2).detach())),
        "t.kept = t * 2": stays(keeps(lambda t: t * 2)),
        "t.kept = Function.apply(t)": stays(keeps(Double.apply)),
        "t.grad.kept = t": stays(through_grad),
        "t.kept = t[:1]": stays(keeps(lambda t: t[:1])),
    }


def pieces_of(tensor: Tensor) -> dict[str, bool]:
    """Return which pieces hang at the TensorImpl of a tensor of any kind."""
    impl = impl_of(tensor)
    storage = storage_of(impl)
    data = storage and storage.inside("data_ptr_").inside("ptr_")["data_"]
    return {
        "storage": storage is not None,
        "bytes": bool(data),
        "version counter": bool(impl["version_counter_"]),
        "notes of autograd": bool(impl["autograd_meta_"]),
    }
