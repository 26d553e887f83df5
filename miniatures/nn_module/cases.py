"""Random models, twice: of PyTorch's modules, and of layers over the miniature `Module`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from miniatures.nn_module.module import Module


class Linear(Module):
    """`nn.Linear`, filled with zeros until a state is loaded."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias: nn.Parameter | None = nn.Parameter(torch.zeros(outputs))
        if not bias:
            self.bias = None  # the name stays in the table of parameters

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias``."""
        return F.linear(x, self.weight, self.bias)


class LayerNorm(Module):
    """`nn.LayerNorm` over the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.zeros(width)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each row."""
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias)


class BatchNorm(Module):
    """`nn.BatchNorm1d`: parameters, buffers, and a second version of its names."""

    version = 2

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.zeros(width)) for _ in range(2))
        self.running_mean = nn.Buffer(torch.zeros(width))
        self.running_var = nn.Buffer(torch.ones(width))
        self.num_batches_tracked = nn.Buffer(torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each column, and keep the running statistics while training."""
        if self.training:
            self.num_batches_tracked.add_(1)
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training
        )

    def upgrade(self, state: dict[str, Tensor], prefix: str, version: int | None) -> None:
        """Version 1 did not count batches."""
        if version is None or version < 2:
            state.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)


class ReLU(Module):
    """`nn.ReLU`."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the greater of `x` and 0."""
        return F.relu(x)


class Sequential(Module):
    """`nn.Sequential`: children named 0, 1, …"""

    def __init__(self, *children: Module) -> None:
        super().__init__()
        for i, child in enumerate(children):
            setattr(self, str(i), child)

    def forward(self, x: Tensor) -> Tensor:
        """Call the children in turn."""
        for child in self.children.values():
            x = child(x)
        return x


class Residual(Module):
    """Adds its input to what its child returns, times a learned scale."""

    def __init__(self, inner: Module) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(1))
        self.ones = nn.Buffer(torch.ones(1), persistent=False)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x + scale * inner(x)``."""
        inside: Tensor = self.inner(x)
        return x * self.ones + self.scale * inside


class TorchResidual(nn.Module):
    """`Residual`, over PyTorch's `Module`."""

    ones: Tensor

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 0.5))
        self.register_buffer("ones", torch.ones(1), persistent=False)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x + scale * inner(x)``."""
        inside: Tensor = self.inner(x)
        return x * self.ones + self.scale * inside


@dataclass(frozen=True)
class Pair:
    """The same model twice, and a batch for it.

    :param theirs: trained for two steps, so that no tensor has its first value.
    :param mine: never trained; its tensors are zeros and ones.
    """

    theirs: nn.Module
    mine: Module
    batch: Tensor


def random_pair(seed: int) -> Pair:
    """Return a random model of up to three levels; some have tied weights, some are float64."""
    choose, width = random.Random(seed), 4
    torch.manual_seed(seed)
    makers: list[Callable[[], tuple[nn.Module, Module]]] = [
        lambda: (nn.Linear(width, width), Linear(width, width)),
        lambda: (nn.Linear(width, width, bias=False), Linear(width, width, bias=False)),
        lambda: (nn.LayerNorm(width), LayerNorm(width)),
        lambda: (nn.BatchNorm1d(width), BatchNorm(width)),
        lambda: (nn.ReLU(), ReLU()),
    ]

    def build(level: int) -> tuple[nn.Module, Module]:
        parts: list[tuple[nn.Module, Module]] = []
        for _ in range(choose.randint(2, 4)):
            nested = level < 3 and choose.random() < 0.3
            parts.append(build(level + 1) if nested else choose.choice(makers)())
        if choose.random() < 0.3:
            parts.append(choose.choice(parts))  # the same module under two names
        theirs: nn.Module = nn.Sequential(*(part for part, _ in parts))
        mine: Module = Sequential(*(part for _, part in parts))
        return (TorchResidual(theirs), Residual(mine)) if choose.random() < 0.4 else (theirs, mine)

    theirs, mine = build(1)
    batch = torch.randn(6, width)
    if choose.random() < 0.3:
        theirs, batch = theirs.double(), batch.double()
        mine.convert(lambda t: t.double() if t.is_floating_point() else t)
    train(theirs, batch)
    return Pair(theirs, mine, batch)


def train(model: nn.Module, batch: Tensor, steps: int = 2) -> None:
    """Take steps of gradient descent towards zero output."""
    parameters = list(model.parameters())
    for _ in range(steps):
        loss = model(batch).square().mean()
        if parameters:
            for parameter, gradient in zip(
                parameters, torch.autograd.grad(loss, parameters), strict=True
            ):
                parameter.data.sub_(gradient, alpha=0.05)
