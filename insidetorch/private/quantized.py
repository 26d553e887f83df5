"""Quantization: how a kernel chooses parameters, which kernels there are, and what is compiled."""

from __future__ import annotations

import warnings
from typing import Any

from insidetorch.private.name import Name

_CHOOSE = Name("torch._choose_qparams_per_tensor")
_FREEZING = Name("torch._inductor.config.freezing")
_CODE = Name("torch._inductor.utils.run_and_get_code")
_KERNEL_UNDER = Name("torch._C._dispatch_has_kernel_for_dispatch_key")


def choose_parameters(x: Any, *, reduce_range: bool) -> tuple[float, int]:
    """Return the scale and the zero point that a dynamic layer chooses for an input.

    `torch._choose_qparams_per_tensor`.
    """
    scale, zero = _CHOOSE.get()(x, reduce_range)
    return float(scale), int(zero)


def quantized_kernel(operator: str, key: str) -> bool:
    """Tell whether an operator such as ``quantized::linear`` has a kernel under a dispatch key.

    `torch._C._dispatch_has_kernel_for_dispatch_key`.
    """
    return bool(_KERNEL_UNDER.get()(operator, key))


def compiled_code(model: Any, x: Any, *, freezing: bool) -> tuple[Any, str]:
    """Return what a compiled model gives for `x`, and the code that was generated for it.

    `torch._inductor.config.freezing`, `torch._inductor.utils.run_and_get_code`.
    """
    import torch
    import torch._inductor.config as settings

    _FREEZING.get()
    before, settings.freezing = settings.freezing, freezing
    try:
        torch.compiler.reset()
        # The backend still scripts a part of itself, which is deprecated.
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):
            out, code = _CODE.get()(torch.compile(model), x)
    finally:
        settings.freezing = before
    return out, "\n".join(code)
