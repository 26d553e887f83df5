"""What PyTorch has for a GPU without a public name: float8 products, and CUDA C++ at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from insidetorch.private.name import Name

if TYPE_CHECKING:
    from torch import Tensor

_SCALED_MM = Name("torch._scaled_mm")
_COMPILE_KERNEL = Name("torch.cuda._compile_kernel")


def scaled_mm(left: Tensor, right: Tensor, scale_left: Tensor, scale_right: Tensor) -> Tensor:
    """Return the product of two float8 matrices in bfloat16; the second is stored by columns.

    `torch._scaled_mm`.
    """
    import torch

    out: Tensor = _SCALED_MM.get()(left, right, scale_left, scale_right, out_dtype=torch.bfloat16)
    return out


def compile_kernel(code: str, name: str) -> Callable[..., Any]:
    """Return a kernel in CUDA C++, compiled while the program runs, without nvcc.

    `torch.cuda._compile_kernel`; it is called with ``grid``, ``block`` and ``args``.
    """
    made: Callable[..., Any] = _COMPILE_KERNEL.get()(code, name)
    return made


_RUNS_ON = Name("torch.cuda._code_compatible_with_device")
_BUILT_FOR = Name("torch.cuda.PYTORCH_RELEASES_CODE_CC")


def runs_on(code: int, device: int) -> bool:
    """Tell whether binary code for one compute capability runs on a device of another: 80 on 86.

    `torch.cuda._code_compatible_with_device`.
    """
    return bool(_RUNS_ON.get()(device, code))


def built_for() -> dict[str, set[int]]:
    """Return for which compute capabilities the release's wheels for x86-64 have code, by CUDA.

    `torch.cuda.PYTORCH_RELEASES_CODE_CC`; before 2.13 it does not ask for the processor.
    """
    found: dict[str, Any] = _BUILT_FOR.get()
    return {cuda: set(code["x86_64"] if isinstance(code, dict) else code)
            for cuda, code in found.items()}  # fmt: skip
