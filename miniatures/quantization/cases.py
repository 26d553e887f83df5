"""Cases for the miniature and for PyTorch, and small questions that the chapter asks of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.ao import quantization

from insidetorch.private import quantized
from miniatures.quantization.affine import Linear, affine, quantize, symmetric

NEAR = 1e-3
"""Closer than this to a tie, the last bit of a float product may decide the code."""


@dataclass(frozen=True)
class Case:
    """A float layer, an input, and the parameters of the output."""

    weight: torch.Tensor
    bias: torch.Tensor
    x: torch.Tensor
    out: tuple[float, int]


def case(seed: int) -> Case:
    """Return a random case; rows of the weight differ in size up to a thousandfold."""
    numbers = torch.Generator().manual_seed(seed)
    rows, inner, columns = torch.randint(1, 40, (3,), generator=numbers).tolist()
    size = 10 ** (3 * torch.rand(columns, 1, generator=numbers) - 2)
    weight = torch.randn(columns, inner, generator=numbers) * size
    bias, x = torch.randn(columns, generator=numbers), torch.randn(rows, inner, generator=numbers)
    y = x @ weight.T + bias
    return Case(weight, bias, x, affine(y.min().item(), y.max().item()))


def same(mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor) -> bool:
    """Tell whether codes agree, but for a step where the exact value lies next to a tie."""
    tie = (exact - exact.floor() - 0.5).abs() < NEAR
    return bool(((mine == theirs) | (tie & ((mine - theirs).abs() <= 1))).all())


def compare(seed: int) -> dict[str, bool]:
    """Compare scales, codes and outputs of the miniature with PyTorch's, on a random case."""
    one = case(seed)
    layer = Linear.of(one.weight, one.bias)
    observer = quantization.PerChannelMinMaxObserver(
        dtype=torch.qint8, qscheme=torch.per_channel_symmetric
    )
    observer(one.weight)
    scales, zeros = observer.calculate_qparams()
    weight = torch.quantize_per_channel(
        one.weight, scales.double(), zeros, axis=0, dtype=torch.qint8
    )
    scale, zero = affine(one.x.min().item(), one.x.max().item(), 127)
    x = torch.quantize_per_tensor(one.x, scale, zero, torch.quint8)
    mine = quantize(one.x, torch.tensor(scale), torch.tensor(zero), 0, 255)
    packed = torch.ops.quantized.linear_prepack(weight, one.bias)
    out = torch.ops.quantized.linear(x, packed, *one.out)
    codes, exact = layer.static(x.int_repr().long(), scale, zero, *one.out)
    dynamic = torch.ops.quantized.linear_dynamic(one.x, packed, True)
    return {
        "scales": torch.equal(symmetric(one.weight), scales),
        "codes of the weight": torch.equal(layer.codes, weight.int_repr().long()),
        "codes of the input": same(mine, x.int_repr().long(), one.x / scale + zero),
        "codes of the output": same(codes, out.int_repr().long(), exact),
        "dynamic parameters": quantized_alike(one.x),
        "dynamic output": torch.allclose(layer.dynamic(one.x), dynamic, atol=1e-4, rtol=1e-4),
    }


def quantized_alike(x: torch.Tensor) -> bool:
    """Tell whether PyTorch and the miniature choose the same parameters for `x`, to rounding."""
    mine = affine(x.min().item(), x.max().item(), 127)
    theirs = quantized.choose_parameters(x, reduce_range=True)
    return mine[1] == theirs[1] and abs(mine[0] - theirs[0]) < 1e-6 * theirs[0]


def refusal(function: Callable[[], object]) -> str:
    """Return the first line of the error that a call raises, or nothing."""
    try:
        function()
    except Exception as error:
        return str(error).strip().partition("\n")[0]
    return ""


class Residual(nn.Module):
    """A block with a sum that a quantized model cannot run as it stands."""

    def __init__(self, *, functional: bool) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.linear = nn.Linear(4, 4)
        self.sum = torch.ao.nn.quantized.FloatFunctional() if functional else None

    def forward(self, x: torch.Tensor) -> Any:
        """Return a layer's output plus its input."""
        x = self.quant(x)
        y = self.linear(x)
        return self.dequant(x + y if self.sum is None else self.sum.add(x, y))


def converted(model: nn.Module, batches: Sequence[torch.Tensor], engine: str = "x86") -> nn.Module:
    """Return a static quantized copy of an eager model, calibrated with batches."""
    model = model.eval()
    model.qconfig = quantization.get_default_qconfig(engine)  # type: ignore[no-untyped-call]
    prepared = quantization.prepare(model)  # type: ignore[no-untyped-call]
    for batch in batches:
        prepared(batch)
    found: nn.Module = quantization.convert(prepared)  # type: ignore[no-untyped-call]
    return found


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the size of a difference, relative to what was wanted."""
    return float((got.detach() - wanted.detach()).norm() / wanted.detach().norm())
