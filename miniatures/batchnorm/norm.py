"""BatchNorm in small: statistics of a channel, a memory of them, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


def channels(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return one value for each channel, of shape ``(C,)``, so that it broadcasts with `x`."""
    return values.view(1, -1, *[1] * (x.dim() - 2))


def others(x: torch.Tensor) -> list[int]:
    """Return the dimensions of `x` but the channel's, which is dimension 1."""
    return [dim for dim in range(x.dim()) if dim != 1]


@dataclass
class BatchNorm:
    """A layer for ``(N, C, …)`` whose backward is written out.

    :param momentum: the share of the new batch in the memory; None for the mean of all batches.
    """

    count: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    training: bool = True
    batches: int = 0
    weight: torch.Tensor = field(init=False)
    bias: torch.Tensor = field(init=False)
    running_mean: torch.Tensor = field(init=False)
    running_var: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.weight, self.running_var = torch.ones(2, self.count, dtype=torch.float64)
        self.bias, self.running_mean = torch.zeros(2, self.count, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalised input, of the same shape; remember what `backward` takes."""
        if self.training:
            mean, var = x.mean(others(x)), x.var(others(x), correction=0)
            self._remember(mean, x.var(others(x), correction=1))
        else:
            mean, var = self.running_mean, self.running_var
        self.scale = 1 / (var + self.eps).sqrt()
        self.hat = (x - channels(x, mean)) * channels(x, self.scale)
        return self.hat * channels(x, self.weight) + channels(x, self.bias)

    def _remember(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        self.batches += 1
        share = 1 / self.batches if self.momentum is None else self.momentum
        self.running_mean = (1 - share) * self.running_mean + share * mean
        self.running_var = (1 - share) * self.running_var + share * var

    def backward(self, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of input, weight and bias, from that of the output."""
        along = others(grad)
        to_weight, to_bias = (grad * self.hat).sum(along), grad.sum(along)
        if self.training:  # mean and variance moved with the input
            size = grad.numel() // grad.shape[1]
            grad = grad - channels(grad, to_bias / size)
            grad = grad - self.hat * channels(grad, to_weight / size)
        return grad * channels(grad, self.weight * self.scale), to_weight, to_bias
