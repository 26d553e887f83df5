"""A loader that fetches ahead: samplers, queues, workers and order, with threads as workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from queue import Queue
from threading import Thread
from typing import Any

from miniatures.data_and_randomness.generators import MersenneTwister

Item = Callable[[int, MersenneTwister], Any]
"""What a dataset is here: from a place and the worker's generator to an item."""

Task = tuple[int, list[int]] | None
"""The number of a batch and the places of its items; None is the end."""


def batches(order: list[int], size: int, drop_last: bool) -> Iterator[list[int]]:
    """Cut an order into batches; the last is shorter, or dropped."""
    for start in range(0, len(order), size):
        if start + size <= len(order) or not drop_last:
            yield order[start : start + size]


class Loader:
    """Load batches of `length` items, in order, by workers that run ahead.

    :param rng: the generator from which each pass draws its two seeds.
    :param workers: how many; 0 loads in the caller, with the caller's generator.
    :param ahead: how many batches for each worker are asked for in advance, 1 or more.
    """

    def __init__(
        self, item: Item, length: int, rng: MersenneTwister, *, size: int = 1,
        shuffle: bool = False, drop_last: bool = False, workers: int = 0, ahead: int = 2,
    ) -> None:  # fmt: skip
        self.item, self.length, self.rng, self.size = item, length, rng, size
        self.shuffle, self.drop_last = shuffle, drop_last
        self.workers, self.ahead = workers, ahead

    def __iter__(self) -> Iterator[list[Any]]:
        """Start a pass: draw the workers' seed, then the order's, then load."""
        base = self.rng.seed63()
        return self.inline() if self.workers == 0 else self.by_workers(base)

    def tasks(self) -> Iterator[list[int]]:
        """Yield the places of each batch; the order is drawn when the first is wanted."""
        order = list(range(self.length))
        if self.shuffle:
            order = MersenneTwister(self.rng.seed63()).randperm(self.length)
        yield from batches(order, self.size, self.drop_last)

    def inline(self) -> Iterator[list[Any]]:
        """Load each batch when it is asked for."""
        for places in self.tasks():
            yield [self.item(place, self.rng) for place in places]

    def work(self, number: int, base: int, asked: Queue[Task], done: Queue[Any]) -> None:
        """Be worker `number`: own generator, own queue of tasks, one queue for all results."""
        rng = MersenneTwister(base + number)
        while (task := asked.get()) is not None:
            batch, places = task
            try:
                done.put((batch, [self.item(place, rng) for place in places], None))
            except Exception as error:
                done.put((batch, None, error))

    def by_workers(self, base: int) -> Iterator[list[Any]]:
        """Hand out tasks in turn, keep what comes too early, give batches in order."""
        done: Queue[Any] = Queue()
        asked: list[Queue[Task]] = [Queue() for _ in range(self.workers)]
        threads = [
            Thread(target=self.work, args=(number, base, queue, done))
            for number, queue in enumerate(asked)
        ]
        for thread in threads:
            thread.start()
        turn, todo, early = cycle(asked), enumerate(self.tasks()), {}

        def ask() -> int:
            """Send the next task to the next worker, if there is one; return how many."""
            for task in todo:
                next(turn).put(task)
                return 1
            return 0

        try:
            sent = sum(ask() for _ in range(self.ahead * self.workers))
            given = 0
            while given < sent:
                while given not in early:
                    batch, items, error = done.get()
                    early[batch] = items, error
                items, error = early.pop(given)
                given += 1
                sent += ask()
                if error is not None:
                    raise error
                yield items
        finally:
            for queue in asked:
                queue.put(None)
            for thread in threads:
                thread.join()
