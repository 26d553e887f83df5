"""PyTorch's SyncBatchNorm on processes without a GPU: its own function, over formulas of ours."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules import _functions

from miniatures.batchnorm.sync import on_cpu
from miniatures.ddp.watch import collectives


def drawn() -> tuple[torch.Tensor, torch.Tensor]:
    """Return eight rows of three channels with two values each, and a gradient for them."""
    x, grad = torch.randn(
        2, 8, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    return x, grad


def synchronized(
    rank: int, first: int, affine: bool = True, wanted: bool = True, values: int = 2
) -> tuple[list[tuple[str, int]], list[torch.Tensor]]:
    """Run forward and backward of SyncBatchNorm on this rank's rows of `drawn`.

    :param first: how many rows rank 0 has; the others are rank 1's.
    :param affine: whether the layer has a weight and a bias.
    :param wanted: whether the input needs a gradient.
    :param values: how many of the two values of each channel in a row are used.
    :returns: each collective with the numbers this rank gave to it; and the gradients of input
        and weight, the running mean and the running variance.
    """
    function: Any = _functions.SyncBatchNorm  # without types in torch
    x, grad = (each[..., :values] for each in drawn())
    own = slice(0, first) if rank == 0 else slice(first, 8)
    norm = nn.SyncBatchNorm(3, affine=affine).double()
    rows = x[own].clone().requires_grad_(wanted)

    def step() -> None:
        out = function.apply(
            rows, norm.weight, norm.bias, norm.running_mean, norm.running_var, norm.eps, 0.1,
            dist.group.WORLD, 2,
        )  # fmt: skip
        out.backward(grad[own])

    with on_cpu():
        log = collectives(step)
    weight = norm.weight.grad if affine else None
    found = [rows.grad, weight, norm.running_mean, norm.running_var]
    return [(one.name, one.numel) for one in log], [value for value in found if value is not None]
