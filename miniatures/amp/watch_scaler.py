"""What a gradient scaler does, seen from outside: its states, its reads, its way through steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from insidetorch.private.amp import scaler_stage
from miniatures.amp.watch import trace

CALLS = ("unscale_", "step", "update")


def answer(
    *calls: str, dtype: torch.dtype = torch.float32, used: bool = True, fused: bool = False
) -> str:
    """Make a scaler, an optimizer and a backward pass, then the calls; return the error or `fine`.

    :param dtype: of the weights.
    :param used: the loss reaches the weights.
    """
    return _after(calls, dtype=dtype, used=used, fused=fused)[0]


def transitions() -> dict[tuple[str, str], str]:
    """Try each call in each state; return (state, call) → the next state or the error."""
    ways: dict[str, tuple[str, ...]] = {
        "READY": (), "UNSCALED": ("unscale_",), "STEPPED": ("step",)
    }  # fmt: skip
    found = {}
    for state, way in ways.items():
        for call in CALLS:
            said, stage = _after((*way, call))
            found[state, call] = stage if said == "fine" else said
    return found


def _after(calls: tuple[str, ...], **options: Any) -> tuple[str, str]:
    dtype, used = options.get("dtype", torch.float32), options.get("used", True)
    param = torch.nn.Parameter(torch.ones(2, dtype=dtype))
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD([param], 1.0, fused=options.get("fused", False))
    source = param if used else torch.ones(2, requires_grad=True)
    scaler.scale(source.sum()).backward()  # type: ignore[no-untyped-call]
    try:
        for call in calls:
            getattr(scaler, call)(*([] if call == "update" else [optimizer]))
    except (AssertionError, RuntimeError, ValueError) as error:
        return str(error), scaler_stage(scaler, optimizer)
    return "fine", scaler_stage(scaler, optimizer)


def reads(call: Callable[[], object]) -> int:
    """Return how many numbers a call reads back into Python, as `.item()` does."""
    names = [name for name, *_ in trace(call)]
    return names.count("aten::_local_scalar_dense.default")


def reads_of_loop(*, fused: bool) -> dict[str, int]:
    """Return, for each line of a training loop with a scaler, how many numbers it reads back."""
    param = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([param], 1e-3, fused=fused)
    scaler = torch.amp.GradScaler("cpu")
    lines: dict[str, Callable[[], object]] = {
        "scale(loss).backward()": lambda: scaler.scale(param.sum()).backward(),  # type: ignore[no-untyped-call]
        "unscale_(optimizer)": lambda: scaler.unscale_(optimizer),
        "clip_grad_norm_(…)": lambda: torch.nn.utils.clip_grad_norm_([param], 1.0),
        "step(optimizer)": lambda: scaler.step(optimizer),
        "update()": lambda: scaler.update(),
        "get_scale()": lambda: scaler.get_scale(),
        "state_dict()": lambda: scaler.state_dict(),
    }
    return {line: reads(call) for line, call in lines.items()}


def trail(
    bad: set[int], steps: int, *, init_scale: float = 16.0, growth_interval: int = 2
) -> list[tuple[float, float, float]]:
    """Train one weight; return for each step the scale, the gradient, and how the weight moved.

    :param bad: the steps whose gradient is made infinite.
    """
    param = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([param], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=growth_interval)
    rows = []
    for step in range(steps):
        optimizer.zero_grad()
        scaler.scale(param.sum()).backward()  # type: ignore[no-untyped-call]
        grad = param.grad
        assert isinstance(grad, Tensor)
        if step in bad:
            grad.fill_(torch.inf)
        used, seen, before = scaler.get_scale(), grad.item(), param.item()
        scaler.step(optimizer)
        scaler.update()
        rows.append((used, seen, param.item() - before))
    return rows
