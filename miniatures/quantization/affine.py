"""Quantization in small: choose a scale, round to codes, multiply codes, scale the sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch

EPS = torch.finfo(torch.float32).eps


def affine(low: float, high: float, top: int = 255) -> tuple[float, int]:
    """Return scale and zero point: the codes 0 to `top` span the range and 0, which has a code."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max((high - low) / top, EPS)
    return scale, min(max(round(-low / scale), 0), top)


def symmetric(weight: torch.Tensor) -> torch.Tensor:
    """Return a scale for each row: codes -128 to 127 hold it, to half a step, and 0 is code 0."""
    return (weight.abs().amax(1) / 127.5).clamp(min=EPS)


def quantize(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, low: int, high: int
) -> torch.Tensor:
    """Return the codes of `x`: divide, move by the zero point, round half to even, clip."""
    return torch.round(x * (1 / scale) + zero).clamp(low, high).to(torch.int64)


def dequantize(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """Return what the codes stand for."""
    return (codes - zero) * scale


@dataclass
class Linear:
    """A linear layer that stores codes of its weight, a scale for each row, and a float bias."""

    codes: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor

    @classmethod
    def of(cls, weight: torch.Tensor, bias: torch.Tensor) -> Linear:
        """Quantize a float layer, each row of its weight with its own scale."""
        scales = symmetric(weight)
        codes = quantize(weight, scales[:, None], torch.tensor(0), -128, 127)
        return cls(codes, scales, bias)

    def sums(self, x: torch.Tensor, zero: int) -> torch.Tensor:
        """Multiply codes: what the processor does in integers, exactly."""
        offset = zero * self.codes.sum(1)  # known before x is: the zero point costs one sum
        return x @ self.codes.T - offset

    def static(
        self, x: torch.Tensor, scale: float, zero: int, out_scale: float, out_zero: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the codes of the output for codes `x`, and the values before rounding."""
        step = scale * self.scales
        exact = (self.sums(x, zero) + self.bias / step) * (step / out_scale)
        return (torch.round(exact) + out_zero).clamp(0, 255).to(torch.int64), exact

    def dynamic(self, x: torch.Tensor) -> torch.Tensor:
        """Return floats for floats: the range of this very input chooses its scale."""
        scale, zero = affine(x.min().item(), x.max().item(), 127)
        codes = quantize(x, torch.tensor(scale), torch.tensor(zero), 0, 255)
        return self.sums(codes, zero) * (scale * self.scales) + self.bias

    def weight_only(self, x: torch.Tensor) -> torch.Tensor:
        """Return floats for floats: the codes become floats first, the product is float."""
        return x @ self.codes.to(x.dtype).T * self.scales + self.bias
