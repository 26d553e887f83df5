"""A step that is compiled, and a step that several processes share; both import much."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from miniatures.optimizers.watch import fresh, state_bytes


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out what PyTorch says of itself while it imports and compiles."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)


def graphs_for(rate: float | Tensor, steps: int = 4, *, fused: bool = False) -> int:
    """Return how many graphs with operators a compiled step of Adam takes under a schedule."""
    made: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        if any(node.op not in ("placeholder", "output") for node in graph.graph.nodes):
            made.append(graph)
        return graph.forward

    params = [nn.Parameter(torch.ones(4)) for _ in range(2)]
    for param in params:
        param.grad = torch.ones(4)
    with _quietly():
        torch.compiler.reset()
        optimizer = torch.optim.Adam(params, lr=rate, foreach=False, fused=fused)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        stepping = torch.compile(optimizer.step, backend=backend)
        for _ in range(steps):
            stepping()
            schedule.step()
        torch.compiler.reset()
    return len(made)


def _sharing() -> Any:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    made = ZeroRedundancyOptimizer(fresh([100] * 8), torch.optim.Adam, lr=0.1)
    made.step()
    return made


def state_of_one(processes: int) -> int:
    """Return the bytes of Adam's state in one of several processes; the others are pretended."""
    with _quietly():
        from miniatures.ddp.watch import fake_ranks

        with fake_ranks(processes):
            return state_bytes(_sharing().optim)


def saved_before_and_after() -> tuple[str, str]:
    """Return the errors of a shared optimizer's `state_dict`, before and after consolidating."""
    from miniatures.optimizers.cases import message

    with _quietly():
        from miniatures.ddp.watch import one_rank

        with one_rank():
            sharing = _sharing()
            before = message(sharing.state_dict)
            sharing.consolidate_state_dict(to=0)
            return before, message(sharing.state_dict)
