"""Makes cases for the miniatures and for PyTorch: calls, counters, loaders, a run to continue."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from insidetorch.errors import BookError
from miniatures.cpp_for_readers.programs import WITH_TORCH, build
from miniatures.data_and_randomness.generators import MersenneTwister, Philox
from miniatures.data_and_randomness.loader import Loader
from miniatures.data_and_randomness.watch import Dice, as_list

CALLS: dict[str, tuple[Callable[[int], Tensor], Callable[[MersenneTwister, int], list[Any]]]] = {
    "rand": (torch.rand, lambda rng, n: [rng.rand() for _ in range(n)]),
    "rand, float64": (
        lambda n: torch.rand(n, dtype=torch.double),
        lambda rng, n: [rng.rand_double() for _ in range(n)],
    ),
    "randint": (
        lambda n: torch.randint(0, 10 + n, (n,)),
        lambda rng, n: [rng.randint(10 + n) for _ in range(n)],
    ),
    "randint, wide": (
        lambda n: torch.randint(0, 2**40 + n, (n,)),
        lambda rng, n: [rng.randint(2**40 + n) for _ in range(n)],
    ),
    "randperm": (torch.randperm, lambda rng, n: rng.randperm(n)),
}
"""By name: a call of PyTorch with a size, and the same of the miniature."""


def same_numbers(seed: int) -> str | None:
    """Run a random program of calls on both sides; return what differs, or None.

    :param seed: of the program, and of both generators.
    """
    choice = random.Random(seed)
    start = choice.randrange(2**63)
    torch.manual_seed(start)
    rng = MersenneTwister(start)
    for _ in range(choice.randrange(1, 12)):
        name, size = choice.choice(list(CALLS)), choice.randrange(1, 120)
        theirs, ours = CALLS[name][0](size).tolist(), CALLS[name][1](rng, size)
        if theirs != ours:
            return f"{name} of {size}"
    state = bytes(torch.get_rng_state().tolist())[: len(rng.state())]
    return None if state == rng.state() else "state"


PROGRAM = """
#include <ATen/core/PhiloxRNGEngine.h>
#include <cstdio>
int main(int, char** words) {
  while (*++words) {
    unsigned long long seed, thread, offset;
    std::sscanf(*words, "%llu,%llu,%llu", &seed, &thread, &offset);
    at::Philox4_32 engine(seed, thread, offset);
    for (int at = 0; at < 12; at++) std::printf("%u ", engine());
    std::puts("");
  }
}
"""
"""PyTorch's own Philox, from the installed header: twelve numbers for each case."""


def philox_cases(count: int = 200) -> list[tuple[int, int, int]]:
    """Return random seeds, threads and offsets; some are at the edges of their 64 bits."""
    choice = random.Random(4)
    edges = [0, 1, 2**32 - 1, 2**32, 2**64 - 1, 2**64 - 2]

    def one() -> int:
        return choice.choice(edges) if choice.random() < 0.3 else choice.randrange(2**64)

    return [(one(), one(), one()) for _ in range(count)]


def philox_of_header(cases: list[tuple[int, int, int]]) -> list[list[int]]:
    """Return twelve numbers for each case, computed by the installed header.

    :raises BookError: the program does not compile.
    """
    words = " ".join(",".join(map(str, case)) for case in cases)
    done = build(PROGRAM, WITH_TORCH[0], f"{WITH_TORCH[1]} {words}")
    if not done.ok:
        raise BookError(f"the program with Philox's header failed: {done.lines[:1]}")
    return [[int(word) for word in line.split()] for line in done.lines]


def philox_of_miniature(cases: list[tuple[int, int, int]]) -> list[list[int]]:
    """Return the same twelve numbers, computed by the miniature."""
    engines = [Philox(*case) for case in cases]
    return [[number for _ in range(3) for number in engine.four()] for engine in engines]


@dataclass(frozen=True)
class LoaderCase:
    """Options of a loader, the same for both sides."""

    seed: int
    length: int
    size: int
    shuffle: bool
    drop_last: bool
    workers: int
    ahead: int

    def theirs(self) -> list[list[tuple[int, float]]]:
        """Run PyTorch's loader: places, and a number that was drawn with each."""
        torch.manual_seed(self.seed)
        loader = DataLoader(
            Dice(self.length),
            self.size,
            shuffle=self.shuffle,
            drop_last=self.drop_last,
            num_workers=self.workers,
            prefetch_factor=self.ahead if self.workers else None,
            collate_fn=as_list,
        )
        return [[(row["item"], row["torch"]) for row in batch] for batch in loader]

    def ours(self) -> list[list[tuple[int, float]]]:
        """Run the miniature's loader."""
        loader = Loader(
            lambda place, rng: (place, rng.rand()), self.length, MersenneTwister(self.seed),
            size=self.size, shuffle=self.shuffle, drop_last=self.drop_last,
            workers=self.workers, ahead=self.ahead,
        )  # fmt: skip
        return list(loader)


def loader_case(seed: int, workers: int | None = None) -> LoaderCase:
    """Return random options; three of twenty have workers, unless `workers` says how many."""
    choice = random.Random(seed)
    if workers is None:
        workers = choice.choice([0] * 17 + [1, 2, 3])
    return LoaderCase(
        seed=choice.randrange(2**40), length=choice.randrange(1, 24), size=choice.randrange(1, 6),
        shuffle=choice.random() < 0.6, drop_last=choice.random() < 0.3, workers=workers,
        ahead=choice.randrange(1, 4),
    )  # fmt: skip


class Run:
    """A training run with shuffling and dropout that can be stopped and continued.

    :param seed: of everything.
    """

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.5), nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        x = torch.rand(32, 4, generator=torch.Generator().manual_seed(99))
        self.order = torch.Generator().manual_seed(seed)
        self.loader = DataLoader(
            TensorDataset(x, x.sum(1, keepdim=True)), 4, shuffle=True, generator=self.order
        )
        self.done, self.at_start = 0, self.order.get_state()

    def steps(self, count: int) -> list[float]:
        """Make the next steps of this epoch; return their losses."""
        self.order.set_state(self.at_start)
        batches, losses = iter(self.loader), []
        for x, y in itertools.islice(batches, self.done, self.done + count):
            loss = (self.model(x) - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.done += count
        return losses

    def state(self) -> dict[str, Any]:
        """Return all that the next step depends on."""
        return {
            "model": {name: t.clone() for name, t in self.model.state_dict().items()},
            "optimizer": self.optimizer.state_dict(),
            "numbers": torch.get_rng_state(),
            "order": self.at_start,
            "done": self.done,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state; a part that is missing stays as it is."""
        if "model" in state:
            self.model.load_state_dict(state["model"])
        if "optimizer" in state:
            self.optimizer.load_state_dict(state["optimizer"])
        self.at_start = state.get("order", self.at_start)
        self.done = state.get("done", self.done)
        if "numbers" in state:
            torch.set_rng_state(state["numbers"])
