"""DDP's reducer in Python: buckets, readiness, launches in order, a rebuild, unused parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from insidetorch.private.engine import queue_callback


def assign_buckets(
    params: Sequence[torch.Tensor], caps: Sequence[int], order: list[int] | None = None
) -> list[list[int]]:
    """Return the numbers of the parameters in each bucket.

    A bucket is closed when it has reached its cap, not before it would exceed it. There is one
    open bucket for each type and device; each of these goes through the caps by itself. What is
    open at the end follows, the last type first: that is how GCC's hash map happens to list it.

    :param caps: bytes of the first bucket, of the second and so on; the last holds for the rest.
    :param order: numbers of the parameters in the order of their arrival; the buckets stay in the
        order in which they were closed. Without it they are sorted by their first parameter.
    """
    closed: list[list[int]] = []
    opened: dict[Any, list[int]] = {}
    filled: dict[Any, int] = {}
    used_caps: dict[Any, int] = {}
    for index in range(len(params)) if order is None else order:
        param = params[index]
        key = param.dtype, param.device
        opened.setdefault(key, []).append(index)
        filled[key] = filled.get(key, 0) + param.nbytes
        number = used_caps.get(key, 0)
        if filled[key] >= caps[min(number, len(caps) - 1)]:
            closed.append(opened[key])
            opened[key], filled[key], used_caps[key] = [], 0, number + 1
    closed += filter(None, reversed(opened.values()))
    return closed if order is not None else sorted(closed, key=min)


class Bucket:
    """One flat tensor, and for each parameter a view of its part."""

    def __init__(self, params: Sequence[torch.Tensor], indices: list[int]) -> None:
        self.indices, sizes = indices, [params[index].numel() for index in indices]
        self.flat = torch.zeros(sum(sizes), dtype=params[indices[0]].dtype)
        parts = zip(indices, torch.split(self.flat, sizes), strict=True)
        self.views = {index: part.view_as(params[index]) for index, part in parts}
        self.pending, self.work = len(indices), None


class Reducer:
    """Averages the gradients of `params` over the ranks, bucket by bucket, during backward.

    :param cap: bytes at which a bucket is closed; the first rebuilt one at `first_cap`.
    :param find_unused: look for parameters that will get no gradient, after each forward.
    """

    def __init__(
        self, params: Sequence[torch.nn.Parameter], cap: int, first_cap: int = 0, *,
        find_unused: bool = False,
    ) -> None:  # fmt: skip
        self.params, self.caps = list(params), (first_cap or cap, cap)
        self.find_unused, self.rebuilt, self.expecting = find_unused, False, False
        self.ready_order, self.launched = list[int](), list[list[int]]()
        everything = [sum(param.nbytes for param in params) + 1]
        self.used = torch.zeros(len(self.params), dtype=torch.int32)
        start = assign_buckets(self.params, self.caps if find_unused else everything)
        self.make_buckets(start[::-1])
        for index, param in enumerate(self.params):
            hook = partial(self.arrived, index)
            param.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]

    def make_buckets(self, assignment: list[list[int]]) -> None:
        """Allocate the buckets, and note for each parameter which one it is in."""
        self.buckets = [Bucket(self.params, indices) for indices in assignment]
        self.place = {index: b for b in self.buckets for index in b.indices}

    def before_forward(self) -> None:
        """Rebuild the buckets, once, in the order of the first arrivals."""
        if self.expecting and self.ready_order:
            raise RuntimeError("the last backward pass did not reduce all buckets")
        if self.ready_order and not self.rebuilt and not self.find_unused:
            agreed = [assign_buckets(self.params, self.caps, self.ready_order)]
            dist.broadcast_object_list(agreed, src=0)  # the order of rank 0 counts
            self.make_buckets(agreed[0])
            self.rebuilt = True

    def after_forward(self, outputs: Sequence[torch.Tensor]) -> None:
        """Reset the counts; from now on gradients are awaited."""
        self.ready_order, self.launched, self.next, self.expecting = [], [], 0, True
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
        found = leaves(outputs) if self.find_unused else self.params
        used = {id(leaf) for leaf in found}
        self.unused = [i for i, param in enumerate(self.params) if id(param) not in used]

    def arrived(self, index: int, *_: object) -> None:
        """Take note of a gradient that autograd has completed."""
        self.used[index] = 1
        if not self.expecting:
            return  # accumulating, without synchronization
        self.ready_order.append(index)
        unused, self.unused = self.unused, []
        for other in (*unused, index):
            self.mark_ready(other)

    def mark_ready(self, index: int) -> None:
        """Copy a gradient, divided, into its bucket; launch what may go."""
        bucket, grad = self.place[index], self.params[index].grad
        grad = torch.zeros_like(self.params[index]) if grad is None else grad
        torch.mul(grad, 1 / dist.get_world_size(), out=bucket.views[index])
        bucket.pending -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].pending == 0:
            turn = self.buckets[self.next]
            turn.work = dist.all_reduce(turn.flat, async_op=True)
            self.launched.append(turn.indices)
            self.next += 1
            if self.next == len(self.buckets):
                queue_callback(self.finish)

    def finish(self) -> None:
        """At the end of backward: wait for the buckets, copy the averages out."""
        self.expecting = False
        if self.find_unused:
            dist.all_reduce(self.used)
        for bucket in self.buckets:
            bucket.work.wait()  # type: ignore[attr-defined]
            for index, view in bucket.views.items():
                if self.find_unused and not self.used[index]:
                    continue  # no rank used it: leave .grad alone
                grad = self.params[index].grad
                self.params[index].grad = view.clone() if grad is None else grad.copy_(view)
        self.used.zero_()


def leaves(outputs: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield the leaves that a backward pass from `outputs` can reach."""
    stack, seen = [output.grad_fn for output in outputs], set()
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [after for after, _ in node.next_functions]
            if hasattr(node, "variable"):
                yield node.variable
