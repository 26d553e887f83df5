"""Adam's state, step by step, for weights whose gradients follow a pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Moment:
    """What Adam has for each weight after a step, read from its state.

    :param step: the step's number, from 1.
    :param grads: the gradients of this step.
    :param means: the first moment, corrected.
    :param roots: the root of the second moment, corrected.
    :param moves: how far each weight moved, in learning rates, against the gradient.
    """

    step: int
    grads: tuple[float, ...]
    means: tuple[float, ...]
    roots: tuple[float, ...]
    moves: tuple[float, ...]


def recorded(patterns: Mapping[str, Sequence[float]], lr: float = 0.1) -> list[Moment]:
    """Run `torch.optim.Adam` on one weight for each pattern and note its state at each step."""
    point = nn.Parameter(torch.zeros(len(patterns), dtype=torch.float64))
    optimizer, seen = torch.optim.Adam([point], lr=lr), list[Moment]()
    for grads in zip(*patterns.values(), strict=True):
        before = point.detach().clone()
        point.grad = torch.tensor(grads, dtype=torch.float64)
        optimizer.step()
        state = optimizer.state[point]
        t = int(state["step"].item())
        mean = state["exp_avg"] / (1 - 0.9**t)
        root = (state["exp_avg_sq"] / (1 - 0.999**t)).sqrt()
        moved = (before - point.detach()) / lr
        rows = (point.grad, mean, root, moved)
        seen.append(Moment(t, *(tuple(row.tolist()) for row in rows)))
    return seen
