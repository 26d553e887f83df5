"""What a parameter of a signature accepts: the rules of the argument parser, type by type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

NAMES = {"Scalar": "Number", "int64_t": "int", "Int": "int", "double": "float"}
NAMES |= {"ScalarType": "torch.dtype", "IntArrayRef": "tuple of ints", "c10::string_view": "str"}
"""How an error calls the types of a signature, where it does not use the same word."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a signature, such as ``IntArrayRef[1]? dim=None``."""

    kind: str
    size: int  # a list of this size may be given as one number; 0: it may not
    none: bool  # None is allowed
    name: str
    optional: bool
    number: bool  # a Tensor may be given as a number

    def accepts(self, value: Any) -> bool:
        """Tell whether the parser takes this value."""
        return CHECKS[self.kind](value, self)

    def complaint(self, value: Any, by_place: bool) -> str:
        """Say what it must be and what came."""
        came = f"not {'torch.' * isinstance(value, torch.dtype)}{type(value).__name__}"
        if by_place and self.kind == "IntArrayRef" and isinstance(value, list | tuple):
            came = f"but found element of type {type(value[0]).__name__} at pos 0"
        return f"must be {NAMES.get(self.kind, self.kind)}, {came}"


def is_index(value: Any) -> bool:
    """Tell whether a size or a dimension may be given so."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and not (value.is_floating_point() or value.is_complex())
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any, *types: type) -> bool:
    """Tell whether a number may be given so, a 0-dimensional tensor too."""
    if isinstance(value, Tensor):
        return value.dim() == 0 and not value.requires_grad
    return isinstance(value, types)


def is_int64(value: Any) -> bool:
    """Tell whether an int may be given so. Of tensors, both rules above must hold."""
    return is_index(value) and is_number(value, int) and getattr(value, "dtype", 0) != torch.bool


def is_index_list(value: Any, size: int) -> bool:
    """Tell whether a list may be given so: its first item decides."""
    if isinstance(value, list | tuple):
        return not value or is_index(value[0])
    return size > 0 and is_index(value)


CHECKS: dict[str, Callable[[Any, Parameter], bool]] = {
    "Tensor": lambda v, p: isinstance(v, (Tensor, int, float, complex) if p.number else Tensor),
    "Scalar": lambda v, p: is_number(v, int, float, complex),
    "double": lambda v, p: is_number(v, int, float),
    "int64_t": lambda v, p: is_int64(v),
    "Int": lambda v, p: is_index(v),
    "bool": lambda v, p: isinstance(v, bool),
    "c10::string_view": lambda v, p: isinstance(v, str),
    "ScalarType": lambda v, p: isinstance(v, torch.dtype) or v in (float, int, bool, complex),
    "IntArrayRef": lambda v, p: is_index_list(v, p.size),
}
"""The rule for each type. ``SymInt`` and ``SymIntArrayRef`` follow those without ``Sym``."""
