"""Small modules, each with one habit that a tracer may miss; their sources are compiled too."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

SEEN: list[int] = []


class BranchOnValues(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        if x.sum() > 0:
            return x * 2
        return x - 1


class NumberReadOut(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x / x.max().item()


class BranchOnSize(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        if x.size(0) > 2:
            return x * 2
        return x - 1


class LoopOverSize(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        for _ in range(x.size(0)):
            x = x * 2
        return x


class SizeInArithmetic(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x / x.size(0)


class NewTensor(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x + torch.arange(x.size(0))


class RandomNumbers(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return x + torch.rand(1)


class TypeOfInput(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return torch.ones(2, dtype=x.dtype)


class TrainOrEval(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        return F.dropout(x, 1.0, self.training)


class Attribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.0

    def forward(self, x):  # type: ignore[no-untyped-def]
        return x * self.scale


class SideEffect(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        SEEN.append(1)
        return x * 2


class InPlace(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        x += 1
        return x * 2


class PythonList(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        parts = []
        for scale in range(3):
            parts.append(x * scale)
        return torch.stack(parts)


class WithoutGradient(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        with torch.no_grad():
            y = x * 2
        return x + y


class IsTensor(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        if isinstance(x, torch.Tensor):
            return x * 2
        return x - 1
