"""Sums of many ones in a small type, one way of adding each; and the gradients of a deep stack."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

Sum = Callable[[Tensor, Tensor, Tensor], Tensor]


def _loop(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    total = zero[0]
    for one in ones:
        total = total + one
    return total


def _embedding_gradient(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    table = zero[None].clone().requires_grad_()
    F.embedding(places, table).sum().backward()  # type: ignore[no-untyped-call]
    return _grad(table)


def _index_gradient(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    row = zero.clone().requires_grad_()
    row[places].sum().backward()  # type: ignore[no-untyped-call]
    return _grad(row)


def _gather_gradient(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    row = zero.clone().requires_grad_()
    row.gather(0, places).sum().backward()  # type: ignore[no-untyped-call]
    return _grad(row)


def _bias_gradient(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    bias = zero.clone().requires_grad_()
    (bias + torch.zeros_like(ones)[:, None]).sum().backward()  # type: ignore[no-untyped-call]
    return _grad(bias)


def _weight_gradient(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    weight = zero[None].clone().requires_grad_()
    F.linear(ones[:, None], weight).sum().backward()  # type: ignore[no-untyped-call]
    return _grad(weight)


def _passes(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    leaf = zero.clone().requires_grad_()
    for _ in ones:
        leaf.sum().backward()  # type: ignore[no-untyped-call]
    return _grad(leaf)


def _uses(ones: Tensor, places: Tensor, zero: Tensor) -> Tensor:
    leaf = zero.clone().requires_grad_()
    inner = leaf * 1
    torch.stack([inner.sum() for _ in ones]).float().sum().backward()  # type: ignore[no-untyped-call]
    return _grad(leaf)


def norm_gradient(
    kind: torch.dtype, threads: int, weights: torch.dtype = torch.float32, *, rows: int = 4096
) -> float:
    """Return what a LayerNorm's bias gets where each row's gradient is 1.

    :param kind: the type of the norm's input.
    :param threads: that the backward pass may use; the sum is right if it equals `rows`.
    :param weights: the type of the norm's weight and bias.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        bias = torch.zeros(8, dtype=weights, requires_grad=True)
        inputs = torch.zeros(rows, 8, dtype=kind)
        out = F.layer_norm(inputs, (8,), torch.ones(8, dtype=weights), bias)
        out.backward(torch.ones_like(out))  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(before)
    return float(_grad(bias)[0])


SUMS: dict[str, Sum] = {
    "sum": lambda ones, places, zero: ones.sum(),
    "mean, times n": lambda ones, places, zero: ones.mean() * len(ones),
    "cumsum": lambda ones, places, zero: ones.cumsum(0)[-1],
    "dot": lambda ones, places, zero: ones.dot(ones),
    "mm": lambda ones, places, zero: ones[None] @ ones[:, None],
    "conv1d": lambda ones, places, zero: F.conv1d(ones[None, None], ones[None, None]),
    "scatter_add": lambda ones, places, zero: zero.scatter_add(0, places, ones),
    "index_add of rows": lambda ones, places, zero: zero[:, None].index_add(
        0, places, ones[:, None]
    ),
    "gradient of a bias": _bias_gradient,
    "gradient of linear": _weight_gradient,
    "gradient of gather": _gather_gradient,
    "total = total + one": _loop,
    "index_add, 1-d": lambda ones, places, zero: zero.index_add(0, places, ones),
    "index_put, accumulate": lambda ones, places, zero: zero.index_put(
        (places,), ones, accumulate=True
    ),
    "segment_reduce": lambda ones, places, zero: torch.segment_reduce(
        ones, "sum", lengths=torch.tensor([len(ones)])
    ),
    "gradient of embedding": _embedding_gradient,
    "gradient of indexing": _index_gradient,
    ".grad over n passes": _passes,
    "gradient of n uses": _uses,
    "gradient of LayerNorm's bias": lambda ones, places, zero: torch.tensor(
        norm_gradient(ones.dtype, 1, rows=len(ones))
    ),
}
"""Ways to add up ones; each takes the ones, places that are all 0, and one zero."""


def sums(kind: torch.dtype, count: int = 4096) -> dict[str, float]:
    """Return what each way makes of `count` ones of a type."""
    ones = torch.ones(count, dtype=kind)
    places, zero = torch.zeros(count, dtype=torch.long), torch.zeros(1, dtype=kind)
    return {name: float(way(ones, places, zero)) for name, way in SUMS.items()}


def gradient_of_uses(uses: int, *, cache_enabled: bool = True) -> float:
    """Use a weight `uses` times in one region, each time with the gradient 1; return its `.grad`.

    :param cache_enabled: for `torch.autocast`.
    """
    shared, total = torch.ones(1, 1, requires_grad=True), torch.zeros(())
    with torch.autocast("cpu", cache_enabled=cache_enabled):
        for _ in range(uses):
            total = total + (torch.ones(1, 1) @ shared).float().sum()
    total.backward()  # type: ignore[no-untyped-call]
    return float(_grad(shared))


@cache
def gradients(kind: torch.dtype | None = None, scale: float = 1.0) -> list[Tensor]:
    """Return the weights' gradients of ten layers near their targets, for one pass.

    :param kind: the type that autocast uses; none for a pass in float32.
    :param scale: the loss is multiplied by it and the gradients divided.
    """
    state = torch.random.get_rng_state()
    torch.manual_seed(0)
    parts = [(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(10)]
    net = torch.nn.Sequential(*(part for pair in parts for part in pair))
    inputs = torch.randn(64, 64)
    targets = net(inputs).detach() + torch.randn(64, 64) / 100
    torch.random.set_rng_state(state)
    with torch.autocast("cpu", dtype=kind, enabled=kind is not None):
        loss = F.mse_loss(net(inputs), targets)
    (loss * scale).backward()  # type: ignore[no-untyped-call]
    return [_grad(linear.weight) / scale for linear, _ in parts]


def share_lost(found: list[Tensor], exact: list[Tensor]) -> float:
    """Return the share of gradients that are 0 and should not be."""
    zeros = sum(int(((f == 0) & (e != 0)).sum()) for f, e in zip(found, exact, strict=True))
    return zeros / sum(e.numel() for e in exact)


def _grad(leaf: Tensor) -> Tensor:
    assert leaf.grad is not None
    return leaf.grad
