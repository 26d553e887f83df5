"""Convolution: which implementation PyTorch would choose."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_SELECT = Name("torch._C._select_conv_backend")


def conv_backend(image: Any, weight: Any, groups: int = 1) -> str:
    """Return what a convolution without padding would run, such as ``Mkldnn`` or ``Slow2d``.

    `torch._C._select_conv_backend`.
    """
    ones, zeros = [1] * (image.dim() - 2), [0] * (image.dim() - 2)
    found = _SELECT.get()(image, weight, None, ones, zeros, ones, False, zeros, groups)
    return str(found).rpartition(".")[2]
