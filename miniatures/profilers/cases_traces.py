"""Five programs with one fault each, three steps long; what is wrong stands in the solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import profile, record_function
from torch.utils.data import DataLoader, Dataset

from miniatures.profilers.reading import Node, tree
from miniatures.profilers.tracer import Tracer
from miniatures.profilers.watch import observing

STEPS = 3


def steps() -> Iterator[int]:
    """Give the numbers of the steps, each in a range of its own."""
    for number in range(STEPS):
        with record_function(f"step {number}"):
            yield number


def text() -> Callable[[], None]:
    """A recurrent network that reads a text piece by piece."""
    torch.manual_seed(0)
    cell, read = nn.RNNCell(32, 32), nn.Linear(32, 8)
    pieces = torch.randn(STEPS, 16, 32)

    def run() -> None:
        state = torch.zeros(16, 32)
        for number in steps():
            state = cell(pieces[number], state)
            loss = read(state).square().mean()
            loss.backward(retain_graph=True)

    return run


def images() -> Callable[[], None]:
    """A few layers over positions; the batch comes with the positions last."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    batch = torch.randn(8, 64, 128)

    def run() -> None:
        with torch.no_grad():
            for _ in steps():
                layers(batch.transpose(1, 2)).sum()

    return run


class Words(Dataset[torch.Tensor]):
    """Lines of text that become numbers one character at a time."""

    def __len__(self) -> int:
        return STEPS * 8

    def __getitem__(self, at: int) -> torch.Tensor:
        line = "the quick brown fox " * 40
        codes = [hash((at, c)) % 97 / 97 for c in line for _ in range(6)]
        return torch.tensor(codes[:64])


def loading() -> Callable[[], None]:
    """A classifier whose batches a loader makes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def run() -> None:
        batches = iter(DataLoader(Words(), batch_size=8))
        for _ in steps():
            model(next(batches)).sum().backward()

    return run


def scoring() -> Callable[[], None]:
    """A trained model gives scores; the same input comes three times."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1))
    batch = torch.randn(32, 64)

    def run() -> None:
        with torch.no_grad():
            for _ in steps():
                torch.softmax(model(batch), -1)

    return run


def masked() -> Callable[[], None]:
    """A layer with a mask that somebody made with NumPy."""
    torch.manual_seed(0)
    import numpy as np

    first, second = torch.randn(64, 64), torch.randn(64, 64)
    mask = torch.from_numpy(np.tril(np.ones((64, 64))))
    batch = torch.randn(64, 64)

    def run() -> None:
        for _ in steps():
            weights = first * mask
            hidden = F.relu(batch.to(weights.dtype) @ weights)
            (hidden @ second.to(hidden.dtype)).sum()

    return run


PROGRAMS: dict[str, Callable[[], Callable[[], None]]] = {
    "text": text, "images": images, "loading": loading, "scoring": scoring, "masked": masked,
}  # fmt: skip


def trace(name: str) -> Any:
    """Return the profile of one of the programs, which ran once before."""
    run = PROGRAMS[name]()
    run()
    with profile(record_shapes=True) as seen:
        run()
    return seen


def ticked(name: str) -> list[Node]:
    """Return the lines of one of the programs by a clock that counts notes, not time."""
    run = PROGRAMS[name]()
    run()
    with observing(Tracer(clock=partial(next, count(0, 1000)))) as tracer:
        run()
    return tree(tracer.chrome())


def counts(seen: Any, of: str) -> list[int]:
    """Return how many events whose name has `of` in it each step has."""
    rows = []
    for number in range(STEPS):
        (step,) = (event for event in seen.events() if event.name == f"step {number}")
        rows.append(sum(of in event.name for event in _below(step)))
    return rows


def _below(event: Any) -> Iterator[Any]:
    for child in event.cpu_children:
        yield child
        yield from _below(child)


def names(seen: Any, step: int) -> dict[str, int]:
    """Return the names of the lines of a step that are no views, with their calls."""
    (found,) = (event for event in seen.events() if event.name == f"step {step}")
    views = ("as_strided", "transpose", "aten::t", "resolve", "view", "evaluate", "expand")
    rows: dict[str, int] = {}
    for event in _below(found):
        if not any(part in event.name for part in views):
            short = event.name.removeprefix("aten::").removeprefix("torch::autograd::")
            rows[short] = rows.get(short, 0) + 1
    return rows
