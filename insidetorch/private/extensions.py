"""Building extensions: which GPUs they are compiled for."""

from __future__ import annotations

from insidetorch.private.name import Name

_ARCH_FLAGS = Name("torch.utils.cpp_extension._get_cuda_arch_flags")


def cuda_arch_flags() -> list[str]:
    """Return the flags by which an extension's build names GPUs to nvcc.

    `torch.utils.cpp_extension._get_cuda_arch_flags`.
    """
    return list(_ARCH_FLAGS.get()())
