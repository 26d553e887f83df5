"""Views: what PyTorch's check before a write knows of a tensor's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from insidetorch.private.name import Name

if TYPE_CHECKING:
    import torch

_INTERNAL_OVERLAP = Name("torch._debug_has_internal_overlap")
_VIEW_SCHEMA = Name("torch.ops.aten.reshape.default._schema")


def internal_overlap(tensor: torch.Tensor) -> int:
    """Return whether two elements of a tensor lie at one place: 0 no, 1 yes, 2 not decided.

    `torch._debug_has_internal_overlap`, which calls `at::has_internal_overlap` (MemoryOverlap.h).
    """
    return int(_INTERNAL_OVERLAP.get()(tensor))


def operator_signature(operator: Any) -> str:
    """Return the signature of an operator's overload, with ``(a)`` where memory may be shared.

    `torch.ops.aten.reshape.default._schema`, and so of others.
    """
    return str(_VIEW_SCHEMA.of(operator)).removeprefix("aten::")
