"""The block machine, watched: which elements each access touches, and what a running maximum is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from miniatures.gpu_performance import kernels
from miniatures.gpu_performance.block_machine import Machine, Pointer, Traffic


@dataclass(frozen=True)
class Access:
    """One access of one program.

    :param memory: number of the tensor, as the kernel got it.
    :param at: the elements.
    """

    program: tuple[int, ...]
    memory: int
    kind: str
    at: tuple[int, ...]


class Watched(Machine):
    """A machine that keeps every access."""

    def run(
        self, kernel: Callable[..., None], grid: Sequence[int], *args: Any, **options: Any
    ) -> Machine:
        """Run as `Machine.run` does."""
        self.accesses: list[Access] = []
        self._known = {a.data_ptr(): n for n, a in enumerate(args) if isinstance(a, Tensor)}
        return super().run(kernel, grid, *args, **options)

    def _count(self, traffic: Traffic, pointer: Pointer, at: Tensor) -> Tensor:
        kind = "load" if traffic is self.loads else "store"
        memory = self._known[pointer.memory.data_ptr()]
        self.accesses.append(Access(self._place, memory, kind, tuple(at.flatten().tolist())))
        return super()._count(traffic, pointer, at)


def strided(step: int, threads: int = 8) -> Machine:
    """Run a load of every `step`-th float32 by one program, and return the machine."""

    def load(x: Any, step: int) -> None:
        tl.load(x + tl.arange(0, 8) * step)  # type: ignore[name-defined]  # noqa: F821

    return Watched().run(load, (1,), torch.zeros(threads * 8), step)


@dataclass(frozen=True)
class Turn:
    """One turn of attention's loop, for the first query.

    :param scores: of this block of keys.
    :param best: the greatest score so far.
    :param shrink: by what the sums so far were multiplied.
    :param total: the sum so far.
    """

    scores: tuple[float, ...]
    best: float
    shrink: float
    total: float


class _Loop(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, list[Tensor]] = {"scores": [], "best": [], "exp": [], "sum": []}

    def language(self) -> SimpleNamespace:
        names = super().language()

        def noted(kind: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
            def call(*args: Any, **options: Any) -> Tensor:
                value = function(*args, **options)
                self.seen[kind].append(value)
                return value

            return call

        names.where = noted("scores", names.where)
        names.maximum = noted("best", names.maximum)
        names.exp = noted("exp", names.exp)
        names.sum = noted("sum", names.sum)
        return names


def attention_turns(scores: Sequence[float], block: int) -> list[Turn]:
    """Run the book's attention kernel on one query with these scores, and return each turn.

    :param scores: of the query with each key; the keys are chosen so.
    """
    length = len(scores)
    q, k, v = torch.zeros(length, 2), torch.zeros(length, 2), torch.ones(length, 2)
    q[0, 0] = 1.0
    k[:, 0] = torch.tensor(scores)
    machine = _Loop()
    machine.run(kernels.attention, (1, 1), q, k, v, torch.empty(length, 2), length, 1.0,
                BLOCK=block, WIDTH=2, PRECISION="ieee")  # fmt: skip
    turns, total, shrinks = [], 0.0, machine.seen["exp"][1::2]
    for row, best, shrink, part in zip(
        machine.seen["scores"], machine.seen["best"], shrinks, machine.seen["sum"], strict=False
    ):
        total = total * float(shrink[0]) + float(part[0])
        turns.append(Turn(tuple(row[0].tolist()), float(best[0]), float(shrink[0]), total))
        if len(turns) * block >= length:
            break
    return turns
