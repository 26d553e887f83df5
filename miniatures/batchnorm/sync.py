"""What `SyncBatchNorm` asks of the device: five kernels, here as formulas, for the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from miniatures.batchnorm.norm import channels, others

Pair = tuple[torch.Tensor, torch.Tensor]


def stats(x: torch.Tensor, eps: float) -> Pair:
    """Return this rank's mean and 1/deviation of each channel."""
    return x.mean(others(x)), (x.var(others(x), correction=0) + eps).rsqrt()


def gather_stats_with_counts(
    x: torch.Tensor, mean: torch.Tensor, invstd: torch.Tensor,
    running_mean: torch.Tensor | None, running_var: torch.Tensor | None,
    momentum: float, eps: float, counts: torch.Tensor,
) -> Pair:  # fmt: skip
    """Join the statistics of all ranks; write to the running ones, whose variance is unbiased.

    :param mean: and `invstd`, of shape ``(ranks, C)``; `counts` has the values of each rank.
    """
    share = (counts / counts.sum()).view(-1, 1)
    joint = (share * mean).sum(0)
    square = (share * (invstd**-2 - eps + mean**2)).sum(0)
    var = square - joint**2
    if running_mean is not None and running_var is not None:
        running_mean.lerp_(joint, momentum)
        running_var.lerp_(var * counts.sum() / (counts.sum() - 1), momentum)
    return joint, (var + eps).rsqrt()


def normalise(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    mean: torch.Tensor, invstd: torch.Tensor, eps: float,
) -> torch.Tensor:  # fmt: skip
    """Normalise each value."""
    hat = (x - channels(x, mean)) * channels(x, invstd)
    if weight is not None:
        hat = hat * channels(x, weight)
    return hat if bias is None else hat + channels(x, bias)


def backward_reduce(
    grad: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, invstd: torch.Tensor,
    weight: torch.Tensor | None, input_g: bool, weight_g: bool, bias_g: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return this rank's two sums for the input's gradient, and its gradients of weight, bias."""
    total = grad.sum(others(x))
    along = (grad * (x - channels(x, mean))).sum(others(x))
    return total, along, along * invstd, total.clone()


def backward_input(
    grad: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, invstd: torch.Tensor,
    weight: torch.Tensor | None, total: torch.Tensor, along: torch.Tensor, counts: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return the gradient of this rank's input; `total` and `along` are sums over all ranks."""
    size = counts.sum()
    hat = (x - channels(x, mean)) * channels(x, invstd**2)
    grad = grad - channels(x, total / size) - hat * channels(x, along / size)
    return grad * channels(x, invstd if weight is None else invstd * weight)


KERNELS = {
    "batch_norm_stats": stats,
    "batch_norm_gather_stats_with_counts": gather_stats_with_counts,
    "batch_norm_elemt": normalise,
    "batch_norm_backward_reduce": backward_reduce,
    "batch_norm_backward_elemt": backward_input,
}


@contextmanager
def on_cpu() -> Iterator[None]:
    """Give the five operators kernels for the CPU, inside the block; PyTorch has none."""
    make: Any = torch.library.Library  # without types in torch
    library = make("aten", "IMPL")  # taken back when it is collected
    for name, kernel in KERNELS.items():
        library.impl(name, kernel, "CPU")
    try:
        yield
    finally:
        del library
