"""Mixed precision: a scaler's state for an optimizer, and how the compiler traces backward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from insidetorch.private.name import Name, replace

_STATES = Name(
    "torch.amp.grad_scaler.GradScaler._per_optimizer_states",
    example=lambda: torch.amp.GradScaler("cpu"),
)
_BACKWARD = Name("torch._functorch.config.backward_pass_autocast")


def scaler_stage(scaler: Any, optimizer: torch.optim.Optimizer) -> str:
    """Return ``READY``, ``UNSCALED`` or ``STEPPED``: the scaler's state for an optimizer.

    `torch.amp.grad_scaler.GradScaler._per_optimizer_states`.
    """
    return str(_STATES.of(scaler)[id(optimizer)]["stage"].name)


@contextmanager
def backward_autocast_as(setting: str) -> Iterator[None]:
    """Compile backward passes under another setting of autocast.

    `torch._functorch.config.backward_pass_autocast`, replaced.
    """
    before = _BACKWARD.get()
    replace(_BACKWARD, setting)
    try:
        yield
    finally:
        replace(_BACKWARD, before)


def backward_autocast() -> str:
    """Return under which autocast the compiler traces backward: ``same_as_forward``, ``off``.

    `torch._functorch.config.backward_pass_autocast`.
    """
    return str(_BACKWARD.get())
