"""Formulas of nine optimizers in one frame, and which form a step takes, case by case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from insidetorch.private.optimizers import foreach_devices
from miniatures.optimizers.watch import watch

Kept: TypeAlias = dict[str, Any]
Formula: TypeAlias = Callable[[Kept, Tensor, int], tuple[Tensor, Tensor | float]]
"""What is kept, the gradient and the step's number, from 1; returns numerator and denominator."""


def _mean(kept: Kept, name: str, value: Tensor, beta: float) -> Tensor:
    before: Tensor = kept.get(name, torch.zeros_like(value))
    kept[name] = after = beta * before + (1 - beta) * value
    return after


def _sgd(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, float]:
    return grad, 1.0


def _momentum(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, float]:
    kept["sum"] = 0.9 * kept.get("sum", torch.zeros_like(grad)) + grad
    return kept["sum"], 1.0


def _nesterov(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, float]:
    return grad + 0.9 * _momentum(kept, grad, t)[0], 1.0


def _adagrad(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    kept["sum"] = kept.get("sum", 0.0) + grad**2
    return grad, kept["sum"].sqrt() + 1e-10


def _rmsprop(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    return grad, _mean(kept, "v", grad**2, 0.99).sqrt() + 1e-8


def _adadelta(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    past = kept.get("u", torch.zeros_like(grad))
    over, under = (past + 1e-6).sqrt() * grad, (_mean(kept, "v", grad**2, 0.9) + 1e-6).sqrt()
    _mean(kept, "u", (over / under) ** 2, 0.9)
    return over, under


def _adam(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    mean, square = _mean(kept, "m", grad, 0.9), _mean(kept, "v", grad**2, 0.999)
    return mean / (1 - 0.9**t), (square / (1 - 0.999**t)).sqrt() + 1e-8


def _adamax(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    mean = _mean(kept, "m", grad, 0.9)
    kept["u"] = torch.maximum(0.999 * kept.get("u", torch.zeros_like(grad)), grad.abs() + 1e-8)
    return mean / (1 - 0.9**t), kept["u"]


def _nadam(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor]:
    now, soon = (0.9 * (1 - 0.5 * 0.96 ** (0.004 * n)) for n in (t, t + 1))
    kept["mu"] = kept.get("mu", 1.0) * now
    mean, square = _mean(kept, "m", grad, 0.9), _mean(kept, "v", grad**2, 0.999)
    over = grad * (1 - now) / (1 - kept["mu"]) + mean * soon / (1 - kept["mu"] * soon)
    return over, (square / (1 - 0.999**t)).sqrt() + 1e-8


def _radam(kept: Kept, grad: Tensor, t: int) -> tuple[Tensor, Tensor | float]:
    mean, square = _mean(kept, "m", grad, 0.9) / (1 - 0.9**t), _mean(kept, "v", grad**2, 0.999)
    most = 2 / (1 - 0.999) - 1
    length = most - 2 * t * 0.999**t / (1 - 0.999**t)
    if length <= 5:
        return mean, 1.0
    share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
    return mean * share**0.5 * (1 - 0.999**t) ** 0.5, square.sqrt() + 1e-8


FRAME: Mapping[str, tuple[str, dict[str, Any], Formula, str, str]] = {
    "SGD": ("SGD", {}, _sgd, "g", "1"),
    "SGD, momentum": ("SGD", {"momentum": 0.9}, _momentum, "b = μb + g", "1"),
    "SGD, Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}, _nesterov, "g + μb", "1"),
    "Adagrad": ("Adagrad", {}, _adagrad, "g", "√Σg² + ε"),
    "RMSprop": ("RMSprop", {}, _rmsprop, "g", "√v + ε"),
    "Adadelta": ("Adadelta", {}, _adadelta, "√(u + ε) · g", "√(v + ε)"),
    "Adam": ("Adam", {}, _adam, "m̂", "√v̂ + ε"),
    "AdamW": ("AdamW", {"weight_decay": 0.0}, _adam, "m̂", "√v̂ + ε"),
    "Adamax": ("Adamax", {}, _adamax, "m̂", "max(β₂u, |g| + ε)"),
    "NAdam": ("NAdam", {}, _nadam, "m̂, one step ahead", "√v̂ + ε"),
    "RAdam": ("RAdam", {}, _radam, "m̂ · r, or m̂ early", "(√v + ε) / √(1 − β₂ᵗ), or 1"),
}
"""Name → class, options, formula, and how its numerator and denominator are written."""

ALL = [
    "SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "RMSprop",
    "Rprop", "Adafactor", "Muon", "SparseAdam", "LBFGS",
]  # fmt: skip
"""The classes of torch.optim."""


def follows(name: str, steps: int = 12) -> bool:
    """Tell whether an optimizer moves by −lr · numerator / denominator, in float64."""
    kind, options, formula, _, _ = FRAME[name]
    noise = torch.Generator().manual_seed(3)
    point = nn.Parameter(torch.ones(4, dtype=torch.float64))
    optimizer = getattr(torch.optim, kind)([point], lr=0.1, **options)
    by_hand, kept = point.detach().clone(), dict[str, Any]()
    for t in range(1, steps + 1):
        grad = torch.randn(4, generator=noise, dtype=torch.float64)
        point.grad = grad.clone()
        optimizer.step()
        over, under = formula(kept, grad, t)
        by_hand -= 0.1 * over / under
    return torch.allclose(point, by_hand, rtol=1e-9)


def matrices(count: int = 2, **options: Any) -> list[nn.Parameter]:
    """Return parameters of 4 by 4 ones with gradients of ones."""
    made = [nn.Parameter(torch.ones(4, 4, **options)) for _ in range(count)]
    for matrix in made:
        matrix.grad = torch.ones_like(matrix)
    return made


class Marked(nn.Parameter):
    """A subclass of a parameter, such as libraries make."""


def form_of(name: str, params: Sequence[Tensor] | None = None, **flags: Any) -> str:
    """Say which form a step takes where the device has foreach kernels, as a GPU has.

    :return: ``"loop"``, ``"foreach"``, ``"fused"``, or ``"–"`` if the optimizer has no such flag or
        refuses it.
    """
    with foreach_devices("cpu"):
        try:
            step = getattr(torch.optim, name)(params or matrices(), **flags).step
            done = " ".join(watch(step).kernels)
        except (TypeError, ValueError, RuntimeError):
            return "–"
    return next((found for found in ("fused", "foreach") if f"_{found}_" in done), "loop")


def message(call: Callable[[], object]) -> str:
    """Return the first line of the error that a call raises, or nothing."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return ""


def _weight() -> nn.Parameter:
    return nn.Parameter(torch.ones(2, 2))


def _another() -> dict[str, Any]:
    return nn.Linear(2, 2).state_dict()


def _old_weight_norm(net: nn.Linear) -> object:
    with catch_warnings():
        simplefilter("ignore", FutureWarning)  # it is deprecated, and much used
        return nn.utils.weight_norm(net)


CHANGES: Mapping[str, Callable[[nn.Linear], object]] = {
    "net.double()": lambda net: net.double(),
    "load_state_dict": lambda net: net.load_state_dict(_another()),
    "requires_grad_": lambda net: net.requires_grad_(False),
    "weight.data = …": lambda net: setattr(net.weight, "data", torch.ones(2, 2)),
    "init": lambda net: nn.init.zeros_(net.weight),
    "parametrizations.weight_norm": lambda net: parametrizations.weight_norm(net),
    "parametrizations.orthogonal": lambda net: parametrizations.orthogonal(net),
    "share_memory": lambda net: net.share_memory(),
    "prune": lambda net: prune.random_unstructured(net, "weight", amount=1),  # type: ignore[no-untyped-call]
    "load_state_dict(assign=True)": lambda net: net.load_state_dict(_another(), assign=True),
    "net.weight = nn.Parameter(…)": lambda net: setattr(
        net, "weight", nn.Parameter(torch.ones(2, 2))
    ),
    "to meta": lambda net: net.to("meta"),
    "to_empty from meta": lambda net: net.to("meta").to_empty(device="cpu"),
    "weight_norm": _old_weight_norm,
}
"""What people do to a model after the optimizer was made."""


def keeps_objects(change: str) -> bool:
    """Tell whether after a change each trained parameter is one that was there before."""
    net = nn.Linear(2, 2)
    before = {id(param) for param in net.parameters()}
    kept = list(net.parameters())
    CHANGES[change](net)
    assert kept
    return all(id(param) in before for param in net.parameters())


def decay_of(name: str) -> str:
    """Say what `weight_decay` does in an optimizer, from a step with gradients of zero.

    If nothing but decay moves a weight of 1, and all of its state stays zero, the weight was
    multiplied; else the decay went through the gradient.
    """
    from inspect import signature

    if "weight_decay" not in signature(getattr(torch.optim, name)).parameters:
        return "none"
    (weight,) = matrices(1)
    weight.grad = torch.zeros(4, 4)
    optimizer = getattr(torch.optim, name)([weight], lr=0.1, weight_decay=0.01)
    optimizer.step()
    state = [value for key, value in optimizer.state[weight].items() if key != "step"]
    touched = any(torch.is_tensor(v) and v.dim() and bool(v.abs().max() > 1e-6) for v in state)
    multiplied = torch.allclose(weight, torch.full((4, 4), 0.999))
    return "multiplies" if multiplied and state and not touched else "penalty"
