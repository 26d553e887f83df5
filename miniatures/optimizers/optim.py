"""Optimizers in miniature: SGD and Adam with groups, state, closures, hooks and schedules.

A rule updates one tensor in place. It does its arithmetic in the order in which PyTorch's loop
does, so it ends with the same bits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

State: TypeAlias = dict[str, Any]  # what a rule keeps for one parameter
Group: TypeAlias = dict[str, Any]  # parameters, and the numbers that hold for them
Rule: TypeAlias = Callable[[Tensor, Tensor, State, Group], None]
NextRate: TypeAlias = Callable[[int, float, float], float]  # (time, rate now, first rate)


def sgd(param: Tensor, grad: Tensor, state: State, group: Group) -> None:
    """Go down the gradient, or down an accumulation of gradients."""
    grad = -grad if group["maximize"] else grad
    if group["weight_decay"]:
        grad = grad.add(param, alpha=group["weight_decay"])
    if momentum := group["momentum"]:
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = grad.clone()  # the first gradient is not dampened
        else:
            kept = state["momentum_buffer"].mul_(momentum)
            kept.add_(grad, alpha=1 - group["dampening"])
        buffer = state["momentum_buffer"]
        grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
    param.add_(grad, alpha=-group["lr"])


def adam(param: Tensor, grad: Tensor, state: State, group: Group) -> None:
    """Divide a moving mean of the gradient by the root of a moving mean of its square."""
    (beta1, beta2), decay = group["betas"], group["weight_decay"]
    if not state:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * group["amsgrad"]
        state |= {"step": 0} | {name: torch.zeros_like(param) for name in names}
    state["step"] += 1
    grad = -grad if group["maximize"] else grad
    if decay and group["decoupled"]:
        param.mul_(1 - group["lr"] * decay)  # AdamW: shrink, and tell the moments nothing
    elif decay:
        grad = grad.add(param, alpha=decay)  # Adam: as if the loss had a penalty
    mean = state["exp_avg"].lerp_(grad, 1 - beta1)
    square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if group["amsgrad"]:
        greatest = state["max_exp_avg_sq"]
        square = torch.maximum(greatest, square, out=greatest)
    size = group["lr"] / (1 - beta1 ** state["step"])
    root = (1 - beta2 ** state["step"]) ** 0.5
    param.addcdiv_(mean, (square.sqrt() / root).add_(group["eps"]), value=-size)


_SGD: Group = {"lr": 1e-3, "momentum": 0.0, "dampening": 0.0, "nesterov": False}
_ADAM: Group = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False}
_BOTH: Group = {"weight_decay": 0.0, "maximize": False}
DEFAULTS: Mapping[Rule, Group] = {sgd: _SGD | _BOTH, adam: _ADAM | _BOTH | {"decoupled": False}}


class Optimizer:
    """A rule, the groups of parameters it is applied to, and what it keeps for each of them."""

    def __init__(self, params: Iterable[Any], rule: Rule = sgd, **options: Any) -> None:
        self.rule, self.defaults = rule, {**DEFAULTS[rule], **options}
        self.state: defaultdict[Tensor, State] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.before: list[Callable[[Optimizer], object]] = []
        self.after: list[Callable[[Optimizer], object]] = []
        given = list(params)
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def add_param_group(self, group: Group) -> None:
        """Take in parameters; what the group leaves open is copied from the defaults, now."""
        self.param_groups.append(self.defaults | group | {"params": list(group["params"])})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what the closure returned."""
        for hook in self.before:
            hook(self)
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self.rule(param, param.grad, self.state[param], group)
        for hook in self.after:
            hook(self)
        return loss


class Schedule:
    """Sets the rate of each group: once now, then at every `step`."""

    def __init__(self, optimizer: Optimizer, next_rate: NextRate) -> None:
        self.optimizer, self.next_rate, self.time = optimizer, next_rate, -1
        for group in optimizer.param_groups:
            group.setdefault("first", group["lr"])  # the first schedule to come notes it
        self.first = [group["first"] for group in optimizer.param_groups]
        self.step()

    def step(self) -> None:
        self.time += 1
        for group, first in zip(self.optimizer.param_groups, self.first, strict=True):
            group["lr"] = self.next_rate(self.time, group["lr"], first)


def stairs(every: int, factor: float = 0.1) -> NextRate:
    """StepLR: multiply what is there."""
    return lambda time, rate, first: rate * factor if time and time % every == 0 else rate


def ramp(start: float, total: int) -> NextRate:
    """LinearLR up to 1: start low, then multiply by the ratio of two points of the line."""

    def rate(time: int, now: float, first: float) -> float:
        if time == 0:
            return now * start
        risen = total * start + (time - 1) * (1.0 - start)
        return now if time > total else now * (1.0 + (1.0 - start) / risen)

    return rate


def cosine(total: int, least: float = 0.0) -> NextRate:
    """CosineAnnealingLR: multiply the distance to the least rate by the ratio of two cosines."""

    def rate(time: int, now: float, first: float) -> float:
        if time == 0:
            return now
        if (time - 1 - total) % (2 * total) == 0:  # at the bottom the ratio would be 0 / 0
            return now + (first - least) * (1 - math.cos(math.pi / total)) / 2
        here, there = (1 + math.cos(math.pi * t / total) for t in (time, time - 1))
        return here / there * (now - least) + least

    return rate
