"""A linear layer of which each rank keeps a part: gathered before use, freed after, three times."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Shard:
    """This rank's rows of a tensor, and the whole of it while somebody needs it.

    :param log: what was sent, freed or gathered, in order; layers may share it.
    """

    def __init__(self, value: Tensor, log: list[str]) -> None:
        ranks, rank = dist.get_world_size(), dist.get_rank()
        self.shape, self.log = value.shape, log
        self.rows = -(-value.shape[0] // ranks)  # rounded up; the last rank may have fewer
        mine = value.detach()[rank * self.rows : (rank + 1) * self.rows]
        self.mine = nn.Parameter(mine.clone())
        self.whole: Tensor | None = None

    def gather(self) -> Tensor:
        """Fetch the rows of the others, unless they are here already."""
        if self.whole is None:
            ranks = dist.get_world_size()
            padded = self.mine.new_zeros(self.rows, *self.shape[1:])
            padded[: len(self.mine)] = self.mine.detach()
            everything = padded.new_empty(ranks * self.rows, *self.shape[1:])
            dist.all_gather_into_tensor(everything, padded)
            self.whole = everything[: self.shape[0]]
            self.log.append("gather")
        return self.whole

    def free(self) -> None:
        """Give the rows of the others up."""
        self.whole = None
        self.log.append("free")

    def reduce(self, grad: Tensor) -> None:
        """Average a gradient over the ranks; keep this rank's rows of it."""
        ranks = dist.get_world_size()
        padded = grad.new_zeros(ranks * self.rows, *self.shape[1:])
        padded[: self.shape[0]] = grad / ranks
        mine = padded.new_empty(self.rows, *self.shape[1:])
        dist.reduce_scatter_tensor(mine, padded)
        self.log.append("reduce")
        mine = mine[: len(self.mine)]
        self.mine.grad = mine if self.mine.grad is None else self.mine.grad + mine


class Linear(torch.autograd.Function):
    """y = x Wᵀ + b with gathered weights, which backward gathers anew."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Shard, bias: Shard, keep: bool) -> Tensor:
        """Gather, compute, and free; what is saved for backward is the input, no weight."""
        ctx.weight, ctx.bias = weight, bias
        ctx.save_for_backward(x)
        y = x @ weight.gather().T + bias.gather()
        if not keep:
            weight.free(), bias.free()  # type: ignore[func-returns-value]
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Gather again for the input's gradient, free, and send the weights' gradients off."""
        (grad,), (x,) = grads, ctx.saved_tensors
        grad_x = grad @ ctx.weight.gather()
        ctx.weight.free()
        if ctx.bias.whole is not None:
            ctx.bias.free()
        ctx.weight.reduce(grad.T @ x)
        ctx.bias.reduce(grad.sum(0))
        return grad_x, None, None, None


class ShardedLinear(nn.Module):
    """An `nn.Linear` cut over the ranks of the default group.

    :param keep: leave the weights whole between forward and backward.
    """

    def __init__(self, layer: nn.Linear, log: list[str], keep: bool = False) -> None:
        super().__init__()
        self.keep, self.weight, self.bias = keep, Shard(layer.weight, log), Shard(layer.bias, log)
        self.mine = nn.ParameterList([self.weight.mine, self.bias.mine])

    def forward(self, x: Tensor) -> Tensor:
        """Compute as if the whole layer were here, and for that moment it is."""
        out: Tensor = Linear.apply(x, self.weight, self.bias, self.keep)  # type: ignore[no-untyped-call]
        return out
