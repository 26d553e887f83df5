"""Time what DDP does: the price of an all-reduce, and backward passes with several caps.

Layers may be *elsewhere*: their backward waits without a core, as if another device computed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class _Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(ctx.seconds)
        return grads[0], None


class Layers(nn.Module):
    """`count` square layers without a bias.

    :param elsewhere: seconds that the backward of each layer waits; with 0 it is as it is.
    """

    def __init__(self, count: int, width: int, elsewhere: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        made = (nn.Linear(width, width, bias=False) for _ in range(count))
        self.layers, self.elsewhere = nn.ModuleList(made), elsewhere

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layers."""
        for layer in self.layers:
            x = layer(x)
            x = _Wait.apply(x, self.elsewhere) if self.elsewhere else x  # type: ignore[no-untyped-call]
        return x


def price(rank: int, sizes: Sequence[int], times: int = 15) -> dict[int, float]:
    """Return the seconds that an all-reduce of each size takes, the least of `times`.

    :param sizes: in bytes.
    """
    found: dict[int, list[float]] = {size: [] for size in sizes}
    for size in list(sizes) * times:
        flat = torch.ones(size // 4)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(flat)
        found[size].append(time.perf_counter() - begin)
    return {size: min(seconds) for size, seconds in found.items()}


def passes(
    rank: int, caps: Sequence[float], rows: int, layers: tuple[int, int, float], times: int = 10
) -> tuple[dict[float, list[float]], list[float]]:
    """Time backward with each cap, and when gradients are ready if nothing is sent.

    :param caps: in MiB; the passes with different caps take turns.
    :param rows: of the batch.
    :param layers: as `Layers` takes them.
    :returns: sorted seconds by cap, without the first two passes; and for the quickest pass without
        communication the seconds until each gradient was in its bucket, then those of the pass.
    """
    x = torch.ones(rows, layers[1])
    models = {cap: DDP(Layers(*layers), bucket_cap_mb=cap) for cap in caps}
    found: dict[float, list[float]] = {cap: [] for cap in caps}
    for cap in list(caps) * (times + 2):
        found[cap].append(_backward(models[cap], x))
    quiet, moments, alone = DDP(Layers(*layers), bucket_cap_mb=1e-6), list[float](), []

    def silent(_: object, bucket: Any) -> Any:
        moments.append(time.perf_counter())
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    silent.__annotations__ = {}
    quiet.register_comm_hook(None, silent)
    for _ in range(times + 2):
        moments.clear()
        end = _backward(quiet, x)
        begin = _begun
        alone.append([*(moment - begin for moment in moments), end])
    return {cap: sorted(seconds[2:]) for cap, seconds in found.items()}, min(
        alone[2:], key=lambda seconds: seconds[-1]
    )


_begun = 0.0


def _backward(model: nn.Module, x: torch.Tensor) -> float:
    global _begun
    loss = model(x).sum()
    dist.barrier()
    _begun = time.perf_counter()
    loss.backward()
    return time.perf_counter() - _begun
