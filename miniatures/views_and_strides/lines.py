"""A cache that keeps the lines of memory that were used last, and what a walk costs in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable


class Cache:
    """Lines of memory, the one that was used longest ago goes first.

    :param lines: how many it holds.
    :param line: bytes in a line: 64 on today's CPUs from Intel and AMD, 32 in a GPU's sector.
    """

    def __init__(self, lines: int, line: int = 64) -> None:
        self.lines, self.line = lines, line
        self.held: OrderedDict[int, None] = OrderedDict()
        self.fetched = 0

    def touch(self, address: int) -> bool:
        """Use a byte; return whether its line had to be fetched."""
        line = address // self.line
        missed = line not in self.held
        if missed:
            self.fetched += 1
            if len(self.held) == self.lines:
                self.held.popitem(last=False)
        self.held[line] = None
        self.held.move_to_end(line)
        return missed


def fetched(*walks: Iterable[int], itemsize: int = 4, cache: Cache | None = None) -> int:
    """Return how many lines are fetched when walks go side by side, each over a memory of its own.

    :param walks: places in elements, in the order in which they are used.
    :param itemsize: bytes of an element.
    :param cache: what they share; 512 lines of 64 bytes unless given.
    """
    cache = cache or Cache(512)
    far = 1 << 40  # so that no two walks share a line
    for step in zip(*walks, strict=True):
        for n, place in enumerate(step):
            cache.touch(n * far + place * itemsize)
    return cache.fetched
