"""A machine that runs kernels in Triton's language on a CPU, and counts the memory they touch.

A program is called once for each point of the grid. Its values are blocks, here tensors; its
pointers are a tensor's memory and offsets into it. Memory moves in sectors of 32 bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor

SECTOR = 32


class IllegalAccess(IndexError):
    """A program touched memory outside of the tensor that it was given."""


@dataclass(frozen=True)
class Pointer:
    """The memory of a tensor, and offsets into it, in elements."""

    memory: Tensor
    at: Any = 0

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.memory, self.at + offset)

    __radd__ = __add__


@dataclass
class Traffic:
    """What went through memory in one direction: bytes a program asked for, and sectors moved."""

    asked: int = 0
    sectors: int = 0

    @property
    def moved(self) -> int:
        """Bytes in whole sectors."""
        return self.sectors * SECTOR


@dataclass
class Machine:
    """Runs kernels and counts.

    In one access of a program, a sector counts once, however many elements of the block lie in
    it: the compiler lays out threads so. Between accesses nothing is kept, as if without caches.
    """

    loads: Traffic = field(default_factory=Traffic)
    stores: Traffic = field(default_factory=Traffic)
    flop: int = 0
    programs: int = 0
    _place: tuple[int, ...] = ()
    _grid: tuple[int, ...] = ()

    def run(
        self,
        kernel: Callable[..., None],
        grid: Sequence[int],
        *args: Any,
        **options: Any,
    ) -> Machine:
        """Run a kernel for every point of the grid, and return the machine.

        :param kernel: a plain function that uses ``tl``.
        :param grid: how many programs, along up to three axes.
        :param args: tensors, which are handed on as pointers, and numbers.
        """
        assert isinstance(kernel, FunctionType)
        names = {**kernel.__globals__, "tl": self.language()}
        bound = FunctionType(kernel.__code__, names, kernel.__name__)
        given = [Pointer(v) if isinstance(v, Tensor) else v for v in args]
        self._grid = tuple(grid)
        for place in itertools.product(*map(range, grid)):
            self._place = place
            self.programs += 1
            bound(*given, **options)
        return self

    def language(self) -> SimpleNamespace:
        """Return what a kernel finds under the name ``tl``."""
        return SimpleNamespace(
            program_id=lambda axis: self._place[axis],
            num_programs=lambda axis: self._grid[axis],
            arange=torch.arange, float32=torch.float32, constexpr=int,
            load=self.load, store=self.store, dot=self.dot,
            zeros=lambda shape, dtype: torch.zeros(shape, dtype=dtype),
            full=lambda shape, value, dtype: torch.full(shape, value, dtype=dtype),
            sum=lambda value, axis: value.sum(axis), max=lambda value, axis: value.amax(axis),
            exp=torch.exp, sqrt=torch.sqrt, maximum=torch.maximum, where=torch.where,
            trans=lambda value: value.T,
        )  # fmt: skip

    def load(self, pointer: Pointer, mask: Any = None, other: float = 0.0) -> Tensor:
        """Return the elements a block of pointers points to, and `other` where the mask is off."""
        at, inside = _block(pointer, mask)
        value = torch.full(at.shape, other, dtype=pointer.memory.dtype)
        value[inside] = pointer.memory.view(-1)[self._count(self.loads, pointer, at[inside])]
        return value

    def store(self, pointer: Pointer, value: Tensor, mask: Any = None) -> None:
        """Write the elements of a block where the mask is on."""
        at, inside = _block(pointer, mask)
        value = value.to(pointer.memory.dtype).broadcast_to(at.shape)
        pointer.memory.view(-1)[self._count(self.stores, pointer, at[inside])] = value[inside]

    def dot(self, left: Tensor, right: Tensor, input_precision: str = "ieee") -> Tensor:
        """Return the product of two tiles, summed in float32, and count its work."""
        self.flop += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return left.float() @ right.float()

    def _count(self, traffic: Traffic, pointer: Pointer, at: Tensor) -> Tensor:
        memory = pointer.memory
        size, length = memory.element_size(), memory.numel()
        if at.numel() and (at.min() < 0 or at.max() >= length):
            where = f"program {self._place} touches element {int(at.max())}"
            raise IllegalAccess(f"{where} of {length}")
        traffic.asked += at.numel() * size
        traffic.sectors += torch.unique(at * size // SECTOR).numel()
        return at


def _block(pointer: Pointer, mask: Any) -> tuple[Tensor, Tensor]:
    at = torch.as_tensor(pointer.at)
    inside = torch.ones_like(at, dtype=torch.bool) if mask is None else mask
    return at, inside.broadcast_to(at.shape)
