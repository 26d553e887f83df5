"""How PyTorch cuts a loop for its threads, and what the cut costs: `at::parallel_for` on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

GRAIN_SIZE = 32768
"""Elements in a chunk, unless an operator says otherwise: ``at::internal::GRAIN_SIZE``."""

Chunk = tuple[int, int, int]
"""Which thread runs it, its first index, and one past its last."""


def chunks(
    begin: int,
    end: int,
    grain: int = GRAIN_SIZE,
    threads: int = 1,
    *,
    inside: bool = False,
) -> list[Chunk]:
    """Cut ``begin … end`` as `at::parallel_for` does.

    :param grain: a loop no longer than this is not cut; 0 cuts it for all threads.
    :param threads: what `torch.get_num_threads` says.
    :param inside: whether the call is made in the body of another `parallel_for`.
    """
    count = end - begin
    if count <= 0:
        return []
    if count <= grain or count == 1 or threads == 1 or inside:
        return [(0, begin, end)]
    tasks = min(threads, _divup(count, grain)) if grain else threads
    size = _divup(count, tasks)
    cuts = [(first, min(end, first + size)) for first in range(begin, end, size)]
    return [(thread, *cut) for thread, cut in enumerate(cuts)]


def for_each(
    numel: int, threads: int, grain: int = GRAIN_SIZE, *, inside: bool = False
) -> list[Chunk]:
    """Cut an elementwise operator's loop, as `TensorIteratorBase::for_each` does."""
    if numel < grain or threads == 1:
        return [(0, 0, numel)] if numel else []
    return chunks(0, numel, grain, threads, inside=inside)


def started(
    count: int,
    grain: int = GRAIN_SIZE,
    threads: int = 1,
    *,
    inside: bool = False,
) -> int:
    """Return how many threads wake for a loop, with a chunk or without."""
    cut = chunks(0, count, grain, threads, inside=inside)
    parallel = count > max(grain, 1) and threads > 1 and not inside
    return threads if parallel else len(cut)


def reduce(
    count: int,
    threads: int,
    partial: Callable[[int, int], float],
    combine: Callable[[Sequence[float]], float],
    grain: int = GRAIN_SIZE,
) -> float:
    """Reduce a loop in two passes: one partial result for each thread, then those results.

    :param partial: reduces the elements from one index up to another.
    :param combine: reduces the partial results; 0 stands for a thread without a chunk.
    """
    cut = for_each(count, threads, grain)
    if len(cut) < 2:
        return partial(0, count)
    slots = [0.0] * threads
    for thread, first, last in cut:
        slots[thread] = partial(first, last)
    return combine(slots)


@dataclass(frozen=True)
class Cost:
    """What a machine charges for a loop; all in seconds, except `cores`.

    :param call: to enter the operator and its loop.
    :param element: one element on one core.
    :param shared: one element that all cores fetch over one memory bus; a floor for the sum.
    :param wake: to start one more thread and to wait for it.
    :param cores: that may run at once.
    """

    call: float
    element: float
    shared: float
    wake: float
    cores: int

    def seconds(
        self,
        numel: int,
        threads: int,
        grain: int = GRAIN_SIZE,
    ) -> float:
        """Predict how long an elementwise operator takes.

        The busiest core decides. Chunks are dealt out to the cores in turn: with
        more chunks than cores, somebody runs two. No number of cores makes the
        memory faster.
        """
        cut = for_each(numel, threads, grain)
        load = [0] * self.cores
        for thread, first, last in cut:
            load[thread % self.cores] += last - first
        woken = started(numel, grain, threads) - 1 if len(cut) > 1 else 0
        return (
            self.call
            + self.wake * max(woken, 0)
            + max(max(load) * self.element, numel * self.shared)
        )

    def break_even(self, threads: int) -> int:
        """Return the length from which on `threads` beat one thread, if nothing forbids the cut."""
        gain = self.element - max(self.element / min(threads, self.cores), self.shared)
        return int(self.wake * (threads - 1) / gain) + 1 if gain > 0 else 0


def _divup(a: int, b: int) -> int:
    return -(-a // b)
