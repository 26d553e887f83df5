"""`torch.nn`: tables of hooks, what a state dict says beside its tensors."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name


def _state() -> object:
    import torch

    return torch.nn.Identity().state_dict()


_KWARGS_HOOKS = Name("torch.nn.modules.module._global_forward_hooks_with_kwargs")
_STATE_METADATA = Name("collections.OrderedDict._metadata", _state)


def global_kwargs_hooks() -> dict[int, bool]:
    """Return the table of global forward hooks that take keyword arguments, by handle number.

    `torch.nn.modules.module._global_forward_hooks_with_kwargs`: the table itself.
    """
    hooks: dict[int, bool] = _KWARGS_HOOKS.get()
    return hooks


def state_metadata(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a state dict says about its modules beside the tensors: version, by prefix.

    The attribute ``_metadata`` that `Module.state_dict` puts on its result.
    """
    metadata: dict[str, dict[str, Any]] = _STATE_METADATA.of(state)
    return metadata
