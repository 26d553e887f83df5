"""The arithmetic of strides: every view of a tensor, without the tensor's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

FORMATS = {"contiguous": None, "channels last": (1, 3, 2, 0), "channels last 3d": (1, 4, 3, 2, 0)}
"""Memory formats: the dimensions from the innermost on; None is from the last to the first."""


@dataclass(frozen=True)
class Way:
    """A way to read memory: sizes and strides by dimension, and the first place, in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def places(self) -> Iterator[int]:
        """Yield the place of each element, in the order of the indices."""
        for index in product(*map(range, self.sizes)):
            yield self.offset + sum(i * step for i, step in zip(index, self.strides, strict=True))

    def permute(self, *order: int) -> Way:
        """Exchange dimensions."""
        return Way(tuple(self.sizes[d] for d in order), tuple(self.strides[d] for d in order),
                   self.offset)  # fmt: skip

    def select(self, dim: int, index: int) -> Way:
        """Fix an index; the dimension goes, the offset moves."""
        return Way(put(self.sizes, dim), put(self.strides, dim),
                   self.offset + index * self.strides[dim])  # fmt: skip

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Way:
        """Keep each `step`-th index from `start` to before `stop`, both in range."""
        count = max(0, -(-(stop - start) // step))
        return Way(put(self.sizes, dim, count), put(self.strides, dim, step * self.strides[dim]),
                   self.offset + start * self.strides[dim])  # fmt: skip

    def unsqueeze(self, dim: int) -> Way:
        """Add a dimension of size 1. Nobody steps along it; its stride is what PyTorch gives it."""
        span = self.sizes[dim] * self.strides[dim] if dim < len(self.sizes) else 1
        return Way(
            (*self.sizes[:dim], 1, *self.sizes[dim:]),
            (*self.strides[:dim], span, *self.strides[dim:]),
            self.offset,
        )

    def expand(self, *sizes: int) -> Way:
        """Repeat dimensions of size 1, and new ones in front, by a stride of 0."""
        if not self.sizes:
            return Way(sizes, (0,) * len(sizes), self.offset)
        way = self
        for left in range(len(sizes)):
            size, d = sizes[-1 - left], len(way.sizes) - 1 - left
            if d < 0:
                way, d = way.unsqueeze(0), 0
            if size != way.sizes[d]:
                if way.sizes[d] != 1:
                    raise ValueError("only a dimension of size 1 can be repeated")
                way = Way(put(way.sizes, d, size), put(way.strides, d, 0), way.offset)
        return way

    def diagonal(self, shift: int, first: int, second: int) -> Way:
        """Let two indices go together: their strides add up."""
        down, right = max(-shift, 0), max(shift, 0)
        count = max(0, min(self.sizes[first] - down, self.sizes[second] - right))
        begin = down * self.strides[first] + right * self.strides[second] if count else 0
        rest = [d for d in range(len(self.sizes)) if d not in (first, second)]
        return Way((*(self.sizes[d] for d in rest), count),
                   (*(self.strides[d] for d in rest), self.strides[first] + self.strides[second]),
                   self.offset + begin)  # fmt: skip

    def unfold(self, dim: int, size: int, step: int) -> Way:
        """Cut windows that may overlap: the place inside the window is a new, last dimension."""
        count = (self.sizes[dim] - size) // step + 1
        return Way((*put(self.sizes, dim, count), size),
                   (*put(self.strides, dim, step * self.strides[dim]), self.strides[dim]),
                   self.offset)  # fmt: skip

    def runs(self) -> list[tuple[int, int]]:
        """Merge dimensions where stepping off the end of one lands on the next: (count, stride)."""
        runs = [(1, self.strides[-1] if self.strides else 1)]
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            count, step = runs[-1]
            if size != 1 and stride == count * step:
                runs[-1] = (count * size, step)
            elif size != 1:
                runs.append((size, stride))
        return runs

    def view(self, *sizes: int) -> Way | None:
        """Return the way to read other sizes over the same memory, or None if there is none."""
        if math.prod(sizes) != math.prod(self.sizes):
            raise ValueError("another number of elements")
        if 0 in self.sizes:
            return self if sizes == self.sizes else Way(sizes, packed(sizes), self.offset)
        runs, strides = iter(self.runs()), list[int]()
        left, step = next(runs)
        for size in reversed(sizes):
            if left == 1 and size != 1:
                left, step = next(runs)
            if left % size:
                return None
            strides.append(step)
            left, step = left // size, step * size
        return Way(sizes, tuple(reversed(strides)), self.offset)

    def fits(self, name: str = "contiguous") -> bool:
        """Tell whether the elements follow each other without gaps, in a format's order."""
        order = FORMATS[name] or tuple(reversed(range(len(self.sizes))))
        if len(order) != len(self.sizes):
            return False
        return (0 in self.sizes and name == "contiguous") or self._packed_by(order)

    def dense(self) -> bool:
        """Tell whether the elements fill their memory once, in some order."""
        moving = [d for d in range(len(self.sizes)) if self.sizes[d] != 1]
        return 0 in self.sizes or self._packed_by(sorted(moving, key=self.strides.__getitem__))

    def _packed_by(self, order: Sequence[int]) -> bool:
        wanted = 1
        for d in order:
            if self.sizes[d] != 1 and self.strides[d] != wanted:
                return False
            wanted *= self.sizes[d]
        return True

    def overlaps(self) -> str:
        """Answer as PyTorch's check before a write does: "no", "yes", or "too hard"."""
        if self.dense():
            return "no"
        zero = any(n > 1 and step == 0 for n, step in zip(self.sizes, self.strides, strict=True))
        return "yes" if zero else "too hard"


def packed(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a new tensor."""
    return tuple(math.prod(max(n, 1) for n in sizes[d + 1 :]) for d in range(len(sizes)))


def put(values: tuple[int, ...], at: int, *new: int) -> tuple[int, ...]:
    """Return the values with one replaced, or left out where nothing is given for it."""
    return (*values[:at], *new, *values[at + 1 :])
