"""The memory of a training step: which storage is made when, of what kind, and when it goes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from insidetorch.private.modes import dispatch_mode
from miniatures.caching_allocator.allocator import Allocator, round_size

KINDS = ("parameters", "gradients", "optimizer state", "activations", "temporaries")


@dataclass
class Storages:
    """The storages that a program made: an event for each birth and each death, in their order.

    :param events: number of a storage, and its bytes; negative when it goes.
    :param kinds: of each storage, one of `KINDS`.
    :param marks: where a part of the program began the last time, by name.
    :param starts: where each step began.
    :param asked: how often the device had been asked when each step began, in the last replay.
    """

    events: list[tuple[int, int]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)

    def add(self, storage: Any, kind: str) -> None:
        """Note a storage that has not been seen yet."""
        if id(storage) in self.known or not storage.nbytes():
            return
        number, size = len(self.kinds), storage.nbytes()
        self.known[id(storage)] = number
        self.kinds.append(kind)
        self.events.append((number, size))
        weakref.finalize(storage, self._drop, id(storage), number, size)

    def name(self, tensors: Iterable[Any], kind: str) -> None:
        """Say of what kind some tensors are; it counts from their birth."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self.add(storage, kind)
            self.kinds[self.known[id(storage)]] = kind

    def keep(self, kind: str) -> None:
        """Say that what is alive now, and of no other kind, is of this one."""
        for number in self.known.values():
            if self.kinds[number] == KINDS[-1]:
                self.kinds[number] = kind

    def mark(self, name: str) -> None:
        """Note that a part of the program begins here."""
        self.marks[name] = len(self.events)

    def _drop(self, key: int, number: int, size: int) -> None:
        self.known.pop(key, None)
        self.events.append((number, -size))

    def watched(self) -> Any:
        """Return a context in which the storages of all new tensors are noted."""
        mine = self

        class Watch(dispatch_mode()):  # type: ignore[misc]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                import torch
                from torch.utils._pytree import tree_leaves

                result = func(*args, **(kwargs or {}))
                for leaf in tree_leaves(result):
                    if isinstance(leaf, torch.Tensor):
                        mine.add(leaf.untyped_storage(), "temporaries")
                return result

        return Watch()

    def alive(self, *, rounded: bool = False) -> dict[str, list[int]]:
        """Return for each kind how many bytes are alive after each event.

        :param rounded: count blocks of the allocator instead of bytes of storages.
        """
        now = dict.fromkeys(KINDS, 0)
        over: dict[str, list[int]] = {kind: [] for kind in KINDS}
        for number, size in self.events:
            step = round_size(abs(size)) if rounded else abs(size)
            now[self.kinds[number]] += step if size > 0 else -step
            for kind in KINDS:
                over[kind].append(now[kind])
        return over

    def most(self, *, rounded: bool = False) -> int:
        """Return the most bytes that were alive at a time."""
        return max(map(sum, zip(*self.alive(rounded=rounded).values(), strict=True)))

    def replay(self, allocator: Allocator, *, empty: bool = False) -> list[int]:
        """Ask an allocator for the same memory in this order; return what is reserved each time.

        :param empty: call `empty_cache` when a step begins.
        :raises MemoryError: it does not fit.
        """
        held, reserved = {}, []
        self.asked = []
        for at, (number, size) in enumerate(self.events):
            if at in self.starts:
                self.asked.append(allocator.asked)
                if empty:
                    allocator.empty_cache()
            if size > 0:
                held[number] = allocator.malloc(size)
            else:
                allocator.free(held.pop(number))
            reserved.append(allocator.reserved)
        return reserved


def replays(seen: Storages, capacity: int) -> list[tuple[Any, ...]]:
    """Replay a training with fixed and growing segments, without and with `empty_cache` each step.

    :returns: for each the two choices, the most MiB reserved, the requests to the driver before
        and in each step, and how many pieces went back.
    """
    from miniatures.caching_allocator.growing import Growing
    from miniatures.caching_allocator.tuning import Tuned

    rows: list[tuple[Any, ...]] = []
    for kind, name in ((Tuned, "fixed"), (Growing, "grows")):
        for empty in (False, True):
            gpu = kind(capacity)
            peak = max(seen.replay(gpu, empty=empty)) // 2**20
            counts = [b - a for a, b in pairwise([0, *seen.asked, gpu.asked])]
            rows.append((name, "each step" if empty else "no", peak, *counts, gpu.returned))
    return rows


def training(
    build: Callable[[], Any],
    optimizer: Callable[[Any], Any],
    loss: Callable[[Any], Any],
    *,
    steps: int = 2,
) -> Storages:
    """Train without memory, on fake tensors, and return the storages; the last step is marked.

    :param build: makes the model.
    :param optimizer: makes the optimizer from the parameters.
    :param loss: makes a batch and computes the loss of the model.
    """
    from insidetorch.private.modes import fake_tensor_mode

    seen = Storages()
    with fake_tensor_mode(), seen.watched():
        model = build()
        params = list(model.parameters())
        seen.name(params, "parameters")
        updates = optimizer(params)
        for _ in range(steps):
            seen.mark("forward")
            seen.starts.append(len(seen.events))
            value = loss(model)
            seen.keep("activations")
            seen.mark("backward")
            value.backward()
            del value
            seen.name([p.grad for p in params if p.grad is not None], "gradients")
            seen.mark("step")
            updates.step()
            state = [t for each in updates.state.values() for t in each.values()]
            seen.name([t for t in state if hasattr(t, "untyped_storage")], "optimizer state")
            seen.mark("zero_grad")
            updates.zero_grad()
    return seen
