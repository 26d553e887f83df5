"""Where a file of the wheel comes from: its path in pytorch/pytorch, or why it has none."""

from __future__ import annotations

import re

_MOVED = (
    ("torch/include/ATen/", "aten/src/ATen/"),
    ("torch/include/", ""),
    ("torchgen/packaged/ATen/", "aten/src/ATen/"),
    ("torchgen/packaged/autograd/", "tools/autograd/"),
)
_GENERATED = re.compile(
    r"""^(?:
      torch/include/ATen/ops/.*
    | torch/include/ATen/(?:core/)?(?:Functions|MethodOperators|NativeFunctions|NativeMetaFunctions
        |Operators|RedispatchFunctions|RegistrationDeclarations|TensorBody|ViewMetaClasses
        |UfuncCPUKernels?|aten_interned_strings|enum_tag)\.h
    | torch/include/ATen/(?:CPU|CUDA|Meta|Composite\w+)Functions(?:_inl)?\.h
    | torch/include/ATen/(?:Config|CUDAConfig|ParallelConfig)\.h
    | torch/include/ATen/cuda/CUDAConfig\.h
    | torch/include/torch/csrc/(?:autograd|lazy|jit)/generated/.*
    | torch/include/torch/csrc/api/include/torch/version\.h
    | torch/include/torch/headeronly/(?:version|core/enum_tag|macros/cmake_macros)\.h
    | torch/include/c10/(?:macros/|cuda/impl/|hip/impl/)\w*cmake_macros\.h
    | torch/include/caffe2/core/macros\.h
    | torch/version\.py
    | torch/(?:_VF|return_types|nn/functional)\.pyi
    | torch/_C/(?:__init__|_VariableFunctions|_nn)\.pyi
    | torch/utils/data/datapipes/datapipe\.pyi
    | torch/testing/_internal/generated/.*
    )$""",
    re.VERBOSE,
)
UNSHIPPED = (".cpp", ".cc", ".c", ".cu", ".mm", ".metal", ".S")
"""Ends of files that no wheel carries; only a checkout of PyTorch has them."""
_OWN_HEADERS = ("ATen/", "c10/", "caffe2/", "torch/")


def upstream(file: str) -> str | None:
    """Return the path of a wheel's file in pytorch/pytorch, or None if it is not kept there.

    :param file: path below site-packages, e.g. ``torch/include/ATen/TensorIterator.h``.
    """
    if absence(file):
        return None
    for prefix, replacement in _MOVED:
        if file.startswith(prefix):
            return replacement + file.removeprefix(prefix)
    return file


def absence(file: str) -> str:
    """Return why a file of the wheel has no page in pytorch/pytorch, or "" if it has one."""
    if _GENERATED.match(file):
        return "generated when PyTorch is built"
    if file.startswith("torch/include/"):
        if not file.removeprefix("torch/include/").startswith(_OWN_HEADERS):
            return "from a library that PyTorch builds with"
        return ""
    if file.startswith(("torch/", "torchgen/", "functorch/")) or file.endswith(UNSHIPPED):
        return ""
    ours = file.startswith(("miniatures/", "insidetorch/"))
    return "part of this book" if ours else "not part of PyTorch"


def permalink(path: str, commit: str, first: int = 0, last: int = 0) -> str:
    """Return the address of a file, or of its lines, in pytorch/pytorch at a commit."""
    lines = f"#L{first}-L{last}" if first and last > first else f"#L{first}" if first else ""
    return f"https://github.com/pytorch/pytorch/blob/{commit}/{path}{lines}"
