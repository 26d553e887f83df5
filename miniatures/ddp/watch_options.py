"""What DDP does not promise: a hook for buffers, a list of what to leave alone, its own verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def buffer_hook(ddp: DDP, hook: Callable[[Any, dict[str, torch.Tensor]], object]) -> None:
    """Have DDP call `hook` in place of its broadcast of buffers: `_register_buffer_comm_hook`."""
    ddp._register_buffer_comm_hook(None, hook)


def ignore(module: nn.Module, names: list[str]) -> None:
    """Have DDP leave these parameters and buffers alone, once the module is wrapped.

    `DistributedDataParallel._set_params_and_buffers_to_ignore_for_model`.
    """
    leave: Any = DDP._set_params_and_buffers_to_ignore_for_model
    leave(module, names)


def seems_static(ddp: DDP) -> bool:
    """Return whether DDP's reducer saw the same parameters go unused in each pass so far."""
    reducer: Any = ddp.reducer
    return bool(reducer._ddp_graph_static())
