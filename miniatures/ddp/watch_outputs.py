"""A model with two outputs, returned in containers of several classes, as DDP sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from miniatures.ddp.watch import Branches, error_of


class Own(dict[str, torch.Tensor]):
    """A class that grew from `dict`."""


def _dataclass() -> Any:
    @dataclass
    class Both:
        left: torch.Tensor
        right: torch.Tensor

    return Both


class Both(Branches):
    """Both layers beside each other; the outputs come in a container of the given kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.made = kind, _dataclass()
        if kind == "known dataclass":
            torch.export.register_dataclass(self.made)

    def forward(self, x: torch.Tensor) -> Any:  # type: ignore[override]
        """Return the outputs of both layers."""
        left, right = self.left(x), self.right(x)
        if self.kind == "tuple":
            return left, right
        if self.kind == "own dict":
            return Own(left=left, right=right)
        return self.made(left, right)


def outputs_of(given: Any) -> list[torch.Tensor]:
    """Take the two outputs out of their container."""
    if isinstance(given, tuple):
        return list(given)
    return list((given if isinstance(given, dict) else vars(given)).values())


def two_outputs(rank: int, kind: str, both: bool, **options: Any) -> tuple[str, list[float]]:
    """Train three passes with one or both outputs in the loss.

    Return the beginning of an error, and the first number of the left layer's gradient of each
    pass that had one.
    """
    torch.manual_seed(0)
    net: nn.Module = Both(kind)
    model, found = DDP(net, **options), list[float]()

    def step() -> None:
        left, right = outputs_of(model(torch.full((2, 8), rank + 1.0)))
        loss: Any = left.sum() + right.sum() if both else left.sum()
        loss.backward()

    for _ in range(3):
        model.zero_grad()
        said = error_of(step)
        if said:
            return said.partition(" before")[0], found
        found.append(model.module.left.weight.grad[0, 0].item())
    return "", found
