"""Cases for both: layers and inputs drawn at random, and what the chapter tries many times."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from miniatures.batchnorm.norm import BatchNorm


def compare(seed: int) -> dict[str, bool]:
    """Run the miniature and PyTorch's layer on the same random batches; say what is equal."""
    draw = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    count, batches = draw.randint(1, 5), draw.randint(1, 4)
    rest = [draw.randint(1, 4) for _ in range(draw.randint(0, 3))]
    momentum, eps = draw.choice([0.1, 0.5, 1.0, None]), draw.choice([1e-5, 1e-3, 0.1])
    ours = BatchNorm(count, eps, momentum)
    kind = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[len(rest)]
    theirs: Any = kind(count, eps, momentum).double()
    ours.weight, ours.bias = torch.randn(2, count, dtype=torch.float64, generator=generator)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)
    for step in range(batches):
        ours.training = step < batches - 1 or draw.random() < 0.7
        theirs.train(ours.training)
        shape = [draw.randint(2, 5), count, *rest]
        x, grad = torch.randn(2, *shape, dtype=torch.float64, generator=generator) * 3 + 1
        out, expected = ours.forward(x), theirs(x.requires_grad_())
    theirs.zero_grad()
    expected.backward(grad)
    to_x, to_weight, to_bias = ours.backward(grad)

    def equal(first: torch.Tensor, second: torch.Tensor | None) -> bool:
        return second is not None and torch.allclose(first, second, rtol=1e-9, atol=1e-9)

    return {
        "output": equal(out, expected),
        "gradients": equal(to_x, x.grad)
        and equal(to_weight, theirs.weight.grad)
        and equal(to_bias, theirs.bias.grad),
        "memory": equal(ours.running_mean, theirs.running_mean)
        and equal(ours.running_var, theirs.running_var),
    }


def reads(norm: nn.Module, shape: tuple[int, ...]) -> torch.Tensor:
    """Return for each input value whether the first output value depends on it.

    A value counts if the derivative to it is not 0, of an input drawn at random.
    """
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    norm.double()(x.requires_grad_()).flatten()[0].backward()
    assert x.grad is not None
    return x.grad != 0


def jacobian(norm: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the derivatives of each output to each input of a layer of one channel: ``(N, N)``."""
    take: Any = torch.autograd.functional.jacobian  # without types in torch
    found: torch.Tensor = take(lambda rows: norm(rows.view(-1, 1)).flatten(), x)
    return found


def refusal(function: Callable[[], object]) -> str:
    """Return the message of what a call raises, its first line; empty if it raises nothing."""
    try:
        function()
    except Exception as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return ""


BATCH = torch.tensor([[1.0], [2.0], [6.0]])


def _no_grad(norm: nn.Module) -> None:
    with torch.no_grad():
        norm(BATCH)


def _inference(norm: nn.Module) -> None:
    with torch.inference_mode():
        norm(BATCH)


def _autocast(norm: nn.Module) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        norm(BATCH)


def _checkpointed(norm: nn.Module) -> None:
    x = BATCH.clone().requires_grad_()
    checkpoint(norm, x, use_reentrant=False).sum().backward()


def _checkpointed_inside(norm: nn.Module) -> None:
    x = BATCH.clone().requires_grad_()

    def run(x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = checkpoint(norm, x, use_reentrant=False)
        return out

    torch.compile(run, backend="aot_eager")(x).sum().backward()  # type: ignore[no-untyped-call]


def _compiled(norm: nn.Module) -> None:
    torch.compile(norm, backend="aot_eager")(BATCH)


def _with(**attributes: object) -> Callable[[nn.Module], None]:
    def use(norm: nn.Module) -> None:
        for name, value in attributes.items():
            setattr(norm, name, value)
        norm(BATCH)

    return use


def _own_buffers(norm: nn.Module) -> None:
    own = {name: value.clone() for name, value in norm.named_buffers()}
    torch.func.functional_call(norm, own, (BATCH,))


USES: dict[str, Callable[[nn.Module], object]] = {
    "train()": lambda norm: norm(BATCH),
    "requires_grad_(False)": lambda norm: norm.requires_grad_(False)(BATCH),
    "no_grad": _no_grad,
    "inference_mode": _inference,
    "autocast, bfloat16": _autocast,
    "torch.compile": _compiled,
    "checkpoint and backward": _checkpointed,
    "the same, compiled as one": _checkpointed_inside,
    "momentum = 0": _with(momentum=0.0),
    "track_running_stats = False, set later": _with(track_running_stats=False),
    "functional_call with own buffers": _own_buffers,
    "eval()": lambda norm: norm.eval()(BATCH),
}
"""Ways to use a layer, by name: how often it updates its memory is the question."""


def updates(use: str) -> tuple[int, bool]:
    """Return how many batches a layer counted in one use, and whether mean and variance moved."""
    norm = nn.BatchNorm1d(1)
    USES[use](norm)
    assert norm.num_batches_tracked is not None
    assert norm.running_mean is not None and norm.running_var is not None
    moved = norm.running_mean.item() != 0 and norm.running_var.item() != 1
    return int(norm.num_batches_tracked), moved


def orders(norm: Callable[[torch.Tensor], torch.Tensor], most: int = 3) -> list[float]:
    """Return the derivatives of order 0 to `most` of a norm, along a line through one input."""
    generator = torch.Generator().manual_seed(1)
    x, way, weight = torch.randn(3, 5, 2, dtype=torch.float64, generator=generator)
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    value = (norm(x + t * way) * weight).sum()
    found = [value.item()]
    for _ in range(most):
        (value,) = torch.autograd.grad(value, t, create_graph=True)
        found.append(value.item())
    return found


def written_out(x: torch.Tensor) -> torch.Tensor:
    """Normalise the columns of `x` with elementary operators."""
    away = x - x.mean(0)
    return away / (away.square().mean(0) + 1e-5).sqrt()
