"""What lies in memory between forward and backward, by what a pack function makes of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

Pair = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]
"""What packs a saved tensor, and what turns the result back into a tensor."""


@dataclass(frozen=True)
class Packed:
    """Bytes kept between forward and backward, and the relative error of the gradients."""

    bytes: int
    error: float


def to_bytes(tensor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a tensor in 8 bits, with what turns it back: its least value and its step."""
    low, high = tensor.min(), tensor.max()
    scale = (high - low).clamp(min=1e-12) / 255
    return ((tensor - low) / scale).round().byte(), low, scale


def from_bytes(packed: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Turn 8 bits back."""
    return packed[0].float() * packed[2] + packed[1]


def packings(net: torch.nn.Module, batch: Tensor) -> dict[str, Packed]:
    """Compare ways to keep less for one loss, ``net(batch).square().sum()``.

    Weights are neither packed nor counted.
    """
    with tempfile.TemporaryDirectory() as folder:

        def to_file(tensor: Tensor) -> Path:
            path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.pt"
            torch.save(tensor.detach().clone(), path)
            return path

        ways: dict[str, Pair] = {
            "as they are": (Tensor.detach, lambda tensor: tensor),
            "bfloat16": (Tensor.bfloat16, Tensor.float),
            "8 bits": (to_bytes, from_bytes),
            "in files": (to_file, torch.load),
        }
        found = {way: _packed(net, batch, pair) for way, pair in ways.items()}
    found["computed again"] = _recomputed(net, batch)
    exact = found["as they are"][1]
    return {
        way: Packed(size, float((gradient - exact).norm() / exact.norm()))
        for way, (size, gradient) in found.items()
    }


def _packed(net: torch.nn.Module, batch: Tensor, pair: Pair) -> tuple[int, Tensor]:
    weights = {p.untyped_storage().data_ptr() for p in net.parameters()}
    stores: dict[int, Any] = {}  # by address, held, so that no address is given out again

    def pack(tensor: Tensor) -> tuple[bool, Any]:
        if tensor.untyped_storage().data_ptr() in weights:
            return False, tensor.detach()
        made = pair[0](tensor)
        for one in made if isinstance(made, tuple) else (made,):
            if isinstance(one, Tensor):
                stores[one.untyped_storage().data_ptr()] = one.untyped_storage()
        return True, made

    with saved_tensors_hooks(pack, lambda kept: pair[1](kept[1]) if kept[0] else kept[1]):
        loss = net(batch).square().sum()
    return sum(store.nbytes() for store in stores.values()), _gradients(loss, net)


def _recomputed(net: torch.nn.Module, batch: Tensor) -> tuple[int, Tensor]:
    loss = checkpoint(net, batch, use_reentrant=False).square().sum()
    result = 4 * net(batch).numel()  # the square keeps the region's result
    return batch.nbytes + result, _gradients(loss, net)


def _gradients(loss: Tensor, net: torch.nn.Module) -> Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])
