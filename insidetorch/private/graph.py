"""The autograd graph: what its nodes know, and what of it a tensor tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from insidetorch.private.name import Name, a_tensor

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import torch


def _node() -> object:
    import torch

    return torch.zeros(1, requires_grad=True).exp().grad_fn


def _sparse() -> object:
    import torch

    return torch.eye(2).to_sparse()


_SEQUENCE_NR = Name("torch.autograd.graph.Node._sequence_nr", _node)
_SAVED_RESULT = Name("torch.autograd.graph.Node._saved_result", _node)
_INPUT_METADATA = Name("torch.autograd.graph.Node._input_metadata", _node)
_VERSION = Name("torch.Tensor._version", a_tensor)
_IS_VIEW = Name("torch.Tensor._is_view", a_tensor)
_VALUES = Name("torch.Tensor._values", _sparse)
_ORIGINAL_VIEWS = Name("torch.autograd._force_original_view_tracking")


def sequence_nr(node: Any) -> int | None:
    """Return the number an autograd node got when it was made; a greater one is made later.

    `Node._sequence_nr()`, counted per thread. None for `AccumulateGrad`, whose number is the
    greatest a 64-bit counter holds, so that it runs as soon as it is ready.
    """
    number: int = _SEQUENCE_NR.of(node)()
    return None if number == 2**64 - 1 else number


def input_metadata(node: Any) -> list[Any]:
    """Return shape, dtype and device of each gradient an autograd node takes.

    `Node._input_metadata`: one entry for each output of the forward operation.
    """
    return list(_INPUT_METADATA.of(node))


def saved_values(node: Any) -> dict[str, Any]:
    """Return what an autograd node kept of the forward pass, by name without the prefix.

    The attributes ``_saved_…`` of a node, such as `ExpBackward0._saved_result`. A node whose
    buffers were freed has none to give: PyTorch raises RuntimeError.
    """
    prefix = "_saved_"
    found = [name for name in dir(node) if name.startswith(prefix)]
    return {name.removeprefix(prefix): getattr(node, name) for name in found}


def version(tensor: torch.Tensor) -> int:
    """Return how often PyTorch wrote in place through tensors that share this one's counter.

    `Tensor._version`.
    """
    count: int = _VERSION.of(tensor)
    return count


def is_view(tensor: torch.Tensor) -> bool:
    """Tell whether autograd tracks the tensor as a view of another.

    `torch.Tensor._is_view`.
    """
    return bool(_IS_VIEW.of(tensor)())


def sparse_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of a sparse tensor as they lie in memory, coalesced or not.

    `Tensor._values`; the public `values` wants a coalesced tensor.
    """
    values: torch.Tensor = _VALUES.of(tensor)()
    return values


def original_views() -> AbstractContextManager[Any]:
    """Return a mode in which the node of a view keeps its name after a write into the base.

    `torch.autograd._force_original_view_tracking(True)`.
    """
    mode: AbstractContextManager[Any] = _ORIGINAL_VIEWS.get()(True)
    return mode
