"""Watches PyTorch's generators and loaders: what a call draws, who loads, what stays behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from insidetorch import private


class Dice(Dataset[dict[str, Any]]):
    """Items that tell who made them, and one random number of each of three libraries."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, item: int) -> dict[str, Any]:
        if item >= self.length:
            raise IndexError(item)
        worker = get_worker_info()
        return {
            "item": item,
            "worker": None if worker is None else worker.id,
            "seed": torch.initial_seed(),
            "torch": torch.rand(()).item(),
            "python": random.random(),
            "numpy": float(np.random.rand()),
        }


class TwoTexts(Exception):
    """Cannot be made from one text."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)


class Broken(Dataset[Tensor]):
    """Numbers, of which one cannot be read and one kills who reads it.

    :param raises: the item that raises KeyError.
    :param awkward: the item that raises TwoTexts.
    :param kills: the item that ends its process as the kernel does when memory is short.
    """

    def __init__(
        self,
        length: int = 8,
        raises: int | None = None,
        kills: int | None = None,
        awkward: int | None = None,
    ) -> None:
        self.length, self.raises, self.kills = length, raises, kills
        self.awkward = awkward

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, item: int) -> Tensor:
        if item == self.raises:
            raise KeyError(f"item {item} is broken")
        if item == self.awkward:
            raise TwoTexts("item", str(item))
        if item == self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor(item)


class Marks(Dataset[int]):
    """Two items; who reads one adds 1 to a tensor and to an array that the dataset holds.

    `sent` counts how often it was pickled here.
    """

    def __init__(self) -> None:
        self.tensor, self.array, self.sent = torch.zeros(2), np.zeros(2), 0

    def __getstate__(self) -> dict[str, Any]:
        self.sent += 1
        return self.__dict__

    def __len__(self) -> int:
        return 2

    def __getitem__(self, item: int) -> int:
        self.tensor[item] += 1
        self.array[item] += 1
        return item


class Stream(IterableDataset[int]):
    """The numbers below `length`, one after the other.

    :param split: each worker gives its share, and not all of them.
    :param known: tells its length.
    """

    def __init__(self, length: int, *, split: bool = False) -> None:
        self.length, self.split = length, split

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info() if self.split else None
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter(range(first, self.length, step))


class SizedStream(Stream):
    """A stream that tells its length."""

    def __len__(self) -> int:
        return self.length


class Gated(Dataset[int]):
    """Items of which the first waits until a gate opens."""

    def __init__(self, length: int, gate: Any) -> None:
        self.length, self.gate = length, gate

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, item: int) -> int:
        if item == 0:
            self.gate.wait()
        return item


def as_list(rows: list[Any]) -> list[Any]:
    """Return a batch's items as they are; a `collate_fn` that can be pickled."""
    return list(rows)


def draws(call: Callable[[], object], most: int = 5000) -> int | None:
    """Count how many numbers of 32 bits a call takes from the CPU's generator.

    :return: None if there are more than `most`. The generator is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        call()
        after = torch.rand(2).tolist()
        torch.manual_seed(3)
        stream = torch.rand(most + 2).tolist()
    found = (at for at in range(most + 1) if stream[at : at + 2] == after)
    return next(found, None)


def error_of(call: Callable[[], object]) -> str:
    """Call and return the text of the exception that it raises; empty if it raises none.

    What the exception's frames hold is let go: a loader's workers end here, not at a collection.
    """
    try:
        call()
    except Exception as error:
        traceback.clear_frames(error.__traceback__)
        return str(error)
    return ""


def repeated(seed: int, call: Callable[[], Any]) -> Any:
    """Seed PyTorch's generators and return what the call returns."""
    torch.manual_seed(seed)
    return call()


@dataclass
class Pass:
    """Where the batches of a pass are, by their numbers.

    :param asked: for each worker those that it was asked for and that have not come.
    :param early: came, and wait for an earlier one.
    :param given: what the loop has got.
    """

    says: str
    asked: list[list[int]]
    early: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)


def recorded_pass(length: int = 6) -> list[Pass]:
    """Record a pass over two workers in which the first batch comes late.

    The gate opens when nothing else is to come, so the states are those of any run.
    """
    context = multiprocessing.get_context("fork")
    gate = context.Event()
    loader = DataLoader(
        Gated(length, gate),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=context,
    )
    iterator: Any = iter(loader)
    asked = [[0, 2], [1, 3]]
    early: list[int] = []
    given: list[int] = []
    sent = 4
    states: list[Pass] = []

    def note(says: str) -> None:
        states.append(Pass(says, [list(each) for each in asked], list(early), list(given)))

    def came(batch: int, _: Any) -> None:
        asked[batch % 2].remove(batch)
        early.append(batch)
        if batch != len(given):
            note(f"Batch {batch} comes too early and is kept: {len(given)} is next.")
        if batch == 3:
            gate.set()

    def more() -> None:
        nonlocal sent
        if sent < length:
            asked[sent % 2].append(sent)
            sent += 1

    note("`iter(loader)` asks each worker for two batches, in turn.")
    private.watch_pass(iterator, came, more)
    for batch in iterator:
        early.remove(int(batch))
        given.append(int(batch))
        if sent < length or batch < 2:
            note(f"Batch {int(batch)} is yours, and one more is asked for.")
        else:
            note(f"Batch {int(batch)} is yours.")
    return states


def left_behind() -> dict[str, int]:
    """Count what loaders may leave in this process: processes, threads, sockets, shared memory.

    A process that was told to end gets time for it: 2.11 does not wait for those it terminates.
    So does the thread that feeds a queue: a queue that is closed does not wait for it.
    """
    gc.collect()
    for child in multiprocessing.active_children():
        child.join(60)
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(60)
    children = len(multiprocessing.active_children())
    links = []
    for place in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(place.readlink()))
        except OSError:
            continue  # the descriptor of the folder itself
    return {
        "processes": children,
        "threads": threading.active_count(),
        "sockets": sum(link.startswith("socket:") for link in links),
        "segments": sum(link.startswith("/dev/shm/torch_") for link in links),
    }


def touched(values: Any, read: bool) -> int:
    """Return by how many KiB a forked process's own memory grows when it walks over values.

    :param values: a list, or a tensor of one dimension.
    :param read: walk over them; otherwise only count them.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        gc.disable()
        torch.set_num_threads(1)  # what a worker does first: parallel loops hang after a fork
        before = _own_memory()
        if isinstance(values, Tensor):
            _ = values.sum().item() if read else values.shape[0]
        else:
            _ = sum(1 for one in values if one is not None) if read else len(values)
        sender.send(_own_memory() - before)

    process = context.Process(target=child)
    process.start()
    grown: int = receiver.recv()
    process.join()
    receiver.close()
    sender.close()
    return grown


def _own_memory() -> int:
    """Return the KiB of this process that no other shares."""
    rows = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    sizes = {row.split(":")[0]: row.split()[1] for row in rows[1:]}
    return int(sizes["Private_Dirty"])
