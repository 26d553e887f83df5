"""Random programs for autocast, and random runs for the gradient scaler."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_ONE: list[Callable[..., Any]] = [
    torch.relu, torch.tanh, torch.sigmoid, torch.exp, torch.trace, torch.prod, torch.sum,
    torch.mean, torch.cumsum, torch.log1p, torch.sinh, torch.reciprocal, torch.logsumexp,
    torch.softmax, torch.log_softmax, torch.layer_norm, torch.t, torch.linalg.vector_norm,
    torch.fft.fft,
]  # fmt: skip
_TWO: list[Callable[..., Any]] = [
    torch.mm, torch.matmul, Tensor.__matmul__, torch.add, torch.mul, torch.atan2, torch.cdist,
    torch.prelu, F.linear, torch.cat, torch.stack, torch.maximum, torch.bmm, torch.dist,
    torch.binary_cross_entropy_with_logits,
]  # fmt: skip
_THREE: list[Callable[..., Any]] = [torch.addmm, torch.baddbmm, F.linear, torch.addcmul, torch.cat]
_EXTRA: dict[Any, tuple[Any, ...]] = {
    torch.cumsum: (0,), torch.logsumexp: (0,), torch.softmax: (0,), torch.log_softmax: (0,),
    torch.layer_norm: ((4,),),
}  # fmt: skip
_SIZE = 4


def random_program(
    seed: int, make: Callable[[torch.dtype], Tensor], types: list[torch.dtype], *, steps: int = 6
) -> Callable[[list[Tensor]], list[Tensor]]:
    """Return a program that takes three 4×4 weights and makes `steps` calls; the same each run.

    :param make: makes an input of a type.
    :param types: to choose inputs from.
    """

    def program(weights: list[Tensor]) -> list[Tensor]:
        chance = random.Random(seed)
        values = [*weights, *(make(dtype) for dtype in types)]
        results = []
        for _ in range(steps):
            result = _call(chance, values)
            if result is None:
                continue
            results.append(result)
            if result.shape == (_SIZE, _SIZE) and result.is_floating_point():
                values.append(result)
        return results

    return program


def _call(chance: random.Random, values: list[Tensor]) -> Tensor | None:
    """Call a random function; None if PyTorch refuses the types."""
    functions = chance.choice((_ONE, _TWO, _THREE))
    function = chance.choice(functions)
    count = 1 + (_ONE, _TWO, _THREE).index(functions)
    inputs = [chance.choice(values) for _ in range(count)]
    if function is torch.prelu:
        inputs[1] = inputs[1].select(0, 0)
    if function is F.linear and count == 3:
        inputs[2] = inputs[2].select(0, 0)
    if function in (torch.bmm, torch.baddbmm):
        inputs = [value.unsqueeze(0) for value in inputs]
    arguments: tuple[Any, ...] = (*inputs, *_EXTRA.get(function, ()))
    if function in (torch.cat, torch.stack):
        arguments = (inputs,)
    try:
        result: Tensor = function(*arguments)
    except (RuntimeError, ValueError):
        return None
    return result.squeeze(0) if function in (torch.bmm, torch.baddbmm) else result


def random_scaling(seed: int, scaler: Any, *, steps: int = 10) -> list[Any]:
    """Train with `scaler`, a `GradScaler` or the miniature; return the scale and weights per step.

    One to three optimizers; gradients are sometimes infinite, not a number, or missing; some are
    unscaled first and clipped.
    """
    chance, noise = random.Random(seed), torch.Generator().manual_seed(seed)
    groups = [[torch.nn.Parameter(torch.ones(3)) for _ in range(2)] for _ in range(seed % 3 + 1)]
    optimizers = [torch.optim.SGD(group, lr=0.1) for group in groups]
    seen: list[Any] = []
    for _ in range(steps):
        for group, optimizer in zip(groups, optimizers, strict=True):
            optimizer.zero_grad()
            used = group[chance.random() < 0.2 :]
            loss = sum((p * torch.randn(3, generator=noise)).sum() for p in used)
            scaler.scale(loss).backward()
            if chance.random() < 0.15:
                bad = chance.choice([float("inf"), float("-inf"), float("nan")])
                grad = used[-1].grad
                assert grad is not None
                grad[chance.randrange(3)] = bad
            if chance.random() < 0.3:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(group, 0.5)
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        weights = [value for group in groups for p in group for value in p.tolist()]
        seen.append((_scale(scaler), weights))
    return seen


def _scale(scaler: Any) -> float:
    return float(scaler.get_scale() if hasattr(scaler, "get_scale") else scaler.factor)
