"""Quantization: how a kernel chooses parameters, and what is compiled."""

from __future__ import annotations

import warnings
from typing import Any

from insidetorch.private.name import Name

_CHOOSE = Name("torch._choose_qparams_per_tensor")
_FREEZING = Name("torch._inductor.config.freezing")
_CODE = Name("torch._inductor.utils.run_and_get_code")


def choose_parameters(x: Any, *, reduce_range: bool) -> tuple[float, int]:
    """Return the scale and the zero point that a dynamic layer chooses for an input.

    `torch._choose_qparams_per_tensor`.
    """
    scale, zero = _CHOOSE.get()(x, reduce_range)
    return float(scale), int(zero)


def compiled_code(
    model: Any, x: Any, *, freezing: bool, gradients: bool = False
) -> tuple[Any, str]:
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
        with torch.set_grad_enabled(gradients), warnings.catch_warnings(action="ignore"):
            out, code = _CODE.get()(torch.compile(model), x)
    finally:
        settings.freezing = before
    return out, "\n".join(code)
