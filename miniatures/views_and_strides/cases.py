"""The same random chain of views, of a tensor and of the miniature."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from insidetorch.private.views import internal_overlap
from miniatures.views_and_strides.strides import FORMATS, Way

TORCH_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels last": torch.channels_last,
    "channels last 3d": torch.channels_last_3d,
}
OVERLAPS = ("no", "yes", "too hard")
"""What the numbers of `internal_overlap` mean."""


@dataclass
class Case:
    """A tensor, the miniature's way to read it, and what was done to both."""

    tensor: Tensor
    way: Way
    steps: list[str] = field(default_factory=list)

    def agree(self) -> bool:
        """Tell whether strides, offset, places, formats and the check for overlap are the same."""
        tensor, way = self.tensor, self.way
        read = [int(n) for n in tensor.reshape(-1).tolist()]
        return (
            (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
            == (way.sizes, way.strides, way.offset)
            and read == list(way.places())
            and OVERLAPS[internal_overlap(tensor)] == way.overlaps()
            and all(
                tensor.is_contiguous(memory_format=TORCH_FORMATS[name]) == way.fits(name)
                for name in FORMATS
            )
        )


def random_case(seed: int) -> Case:
    """Return a chain of up to five views; the same one for the same seed.

    The memory holds 0, 1, 2, …, so that what is read at an index is the place it lies at.
    """
    rng = random.Random(seed)
    sizes = tuple(
        rng.choice((1, 2, 3, 4, 0 if rng.random() < 0.1 else 6)) for _ in range(rng.randrange(1, 6))
    )
    tensor = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes)
    if tensor.dim() in (4, 5) and rng.random() < 0.3:
        last = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
        count, tensor = tensor.numel(), tensor.contiguous(memory_format=last)
        tensor = torch.arange(float(count)).as_strided(tensor.shape, tensor.stride())
    case = Case(tensor, Way(tuple(tensor.shape), tensor.stride()))
    for step in rng.choices(STEPS, k=rng.randrange(6)):
        step(case, rng)
    return case


def new_sizes(case: Case, rng: random.Random) -> tuple[int, ...]:
    """Return other sizes for as many elements."""
    left, sizes = case.tensor.numel(), list[int]()
    if left == 0:
        return tuple(rng.sample([0, 2, 3], 3))
    while left > 1 and len(sizes) < 5:
        size = rng.choice([n for n in range(1, left + 1) if left % n == 0])
        sizes.append(size)
        left //= size
    sizes += [left] if left > 1 else []
    rng.shuffle(sizes)
    return tuple(sizes)


def _permute(case: Case, rng: random.Random) -> None:
    order = rng.sample(range(case.tensor.dim()), case.tensor.dim())
    _both(case, f"permute{tuple(order)}", lambda t: t.permute(order), case.way.permute(*order))


def _select(case: Case, rng: random.Random) -> None:
    dim = _dim(case, rng, least=1)
    if dim is not None:
        at = rng.randrange(case.tensor.size(dim))
        _both(case, f"select({dim}, {at})", lambda t: t.select(dim, at), case.way.select(dim, at))


def _slice(case: Case, rng: random.Random) -> None:
    dim = _dim(case, rng, least=1)
    if dim is not None:
        size = case.tensor.size(dim)
        start = rng.randrange(size)
        stop, step = rng.randint(start, size), rng.choice((1, 1, 2, 3))
        _both(case, f"slice({dim}, {start}, {stop}, {step})",
              lambda t: torch.ops.aten.slice(t, dim, start, stop, step),
              case.way.slice(dim, start, stop, step))  # fmt: skip


def _unsqueeze(case: Case, rng: random.Random) -> None:
    dim = rng.randint(0, case.tensor.dim())
    _both(case, f"unsqueeze({dim})", lambda t: t.unsqueeze(dim), case.way.unsqueeze(dim))


def _expand(case: Case, rng: random.Random) -> None:
    sizes = [rng.choice((1, 2, 3)) if n == 1 else n for n in case.tensor.shape]
    sizes = [rng.choice((1, 2)) for _ in range(rng.randrange(2))] + sizes
    _both(case, f"expand{tuple(sizes)}", lambda t: t.expand(sizes), case.way.expand(*sizes))


def _diagonal(case: Case, rng: random.Random) -> None:
    if case.tensor.dim() > 1:
        one, two = rng.sample(range(case.tensor.dim()), 2)
        shift = rng.randint(-2, 2)
        _both(case, f"diagonal({shift}, {one}, {two})", lambda t: t.diagonal(shift, one, two),
              case.way.diagonal(shift, one, two))  # fmt: skip


def _unfold(case: Case, rng: random.Random) -> None:
    dim = _dim(case, rng, least=1)
    if dim is not None:
        size, step = rng.randint(1, case.tensor.size(dim)), rng.choice((1, 2))
        _both(case, f"unfold({dim}, {size}, {step})", lambda t: t.unfold(dim, size, step),
              case.way.unfold(dim, size, step))  # fmt: skip


def _view(case: Case, rng: random.Random) -> None:
    sizes = new_sizes(case, rng)
    way = case.way.view(*sizes)
    if way is not None:
        _both(case, f"view{sizes}", lambda t: t.view(sizes), way)


STEPS = (_permute, _select, _slice, _unsqueeze, _expand, _diagonal, _unfold, _view)


def _dim(case: Case, rng: random.Random, least: int) -> int | None:
    found = [d for d, size in enumerate(case.tensor.shape) if size >= least]
    return rng.choice(found) if found else None


def _both(case: Case, name: str, of_tensor: Callable[[Tensor], Tensor], way: Way) -> None:
    case.tensor, case.way = of_tensor(case.tensor), way
    case.steps.append(name)
