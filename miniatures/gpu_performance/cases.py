"""Random runs of the kernels, with what PyTorch says: for the chapter and for the tests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Run:
    """One run: kernel, grid, arguments with the output last among the tensors, constants."""

    kernel: str
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    options: dict[str, Any]
    expected: Tensor

    @property
    def out(self) -> Tensor:
        """The tensor that the kernel writes."""
        return [value for value in self.args if isinstance(value, Tensor)][-1]

    @property
    def job(self) -> tuple[str, tuple[int, ...], Any, Any]:
        """The run as `gpu_kernels_triton.interpret_all` takes it."""
        return self.kernel, self.grid, self.args, self.options

    def error(self, got: Tensor | None = None) -> float:
        """Return the largest difference from PyTorch, over the largest number of the result."""
        got = self.out if got is None else got
        scale = max(1.0, self.expected.abs().max().item())
        return (got - self.expected).abs().max().item() / scale


def runs(rounds: int, seed: int = 0) -> Iterator[Run]:
    """Yield eight runs a round, of random shapes: one of each kernel."""
    noise = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(rounds):
        rows, columns, inner = (noise.randint(1, most) for most in (20, 150, 40))
        x, y = torch.randn(2, rows, columns)
        w, b = torch.randn(2, columns)
        n, row = x.numel(), 1 << (columns - 1).bit_length()
        left, right = torch.randn(rows, inner), torch.randn(inner, columns)
        q, k, v = torch.randn(3, 2, columns, 16)
        tall, wide = noise.choice([1, 4, 16]), noise.choice([16, 64])
        precision = {"PRECISION": "ieee"}
        yield Run("silu_times", (_up(n, 256),), (x, y, torch.zeros(rows, columns), n),
                  {"BLOCK": 256}, F.silu(x) * y)  # fmt: skip
        yield Run("row_sum", (rows,), (x, torch.zeros(rows), columns), {"BLOCK": 64}, x.sum(1))
        yield Run("softmax", (rows,), (x, torch.zeros(rows, columns), columns),
                  {"BLOCK": row}, x.softmax(1))  # fmt: skip
        yield Run("layer_norm", (rows,), (x, w, b, torch.zeros(rows, columns), columns, 1e-5),
                  {"BLOCK": row}, F.layer_norm(x, (columns,), w, b))  # fmt: skip
        yield Run("transpose", (_up(rows, tall), _up(columns, wide)),
                  (x, torch.zeros(columns, rows), rows, columns),
                  {"TALL": tall, "WIDE": wide}, x.T)  # fmt: skip
        base = torch.randn(inner, rows, 5)
        view = base.permute(noise.sample(range(3), 3))
        strides = dict(zip(("FIRST", "SECOND", "THIRD"), view.stride(), strict=True))
        yield Run("permute", (_up(view.numel(), 256),),
                  (base, torch.zeros(view.shape), view.numel(), *view.shape[1:]),
                  {**strides, "BLOCK": 256}, view.contiguous())  # fmt: skip
        yield Run("matmul", (_up(rows, 16), _up(columns, 16)),
                  (left, right, torch.zeros(rows, columns), rows, columns, inner),
                  {"M": 16, "N": 16, "K": 16, **precision}, left @ right)  # fmt: skip
        yield Run("attention", (_up(columns, 16), 2),
                  (q, k, v, torch.zeros(2, columns, 16), columns, 0.25),
                  {"BLOCK": 16, "WIDTH": 16, **precision},
                  F.scaled_dot_product_attention(q, k, v))  # fmt: skip


def _up(a: int, b: int) -> int:
    return -(-a // b)
