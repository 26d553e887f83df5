"""Calls: how a class of tensors stays out of the protocol of torch functions."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_DISABLED_TORCH_FUNCTION = Name("torch._C._disabled_torch_function_impl")


def disabled_torch_function() -> Any:
    """Return what a subclass sets `__torch_function__` to, if its calls are to go straight on.

    `torch._C._disabled_torch_function_impl`.
    """
    return _DISABLED_TORCH_FUNCTION.get()
