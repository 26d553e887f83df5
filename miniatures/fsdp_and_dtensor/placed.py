"""Tensors that are placed on several ranks, and the operators that choose what to send.

All ranks are in this process: a placed tensor is the list of what each of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Where = str
"""``S0``, ``S1``: cut along a dimension; ``R``: whole on each rank; ``P``: a sum of all ranks."""


@dataclass
class Placed:
    """A tensor on several ranks: what each has, how to read it, and what was sent so far.

    :param sent: the name of each collective; tensors that meet in an operator share the list.
    """

    parts: list[Tensor]
    where: Where
    shape: torch.Size
    sent: list[str] = field(default_factory=list)

    def full(self) -> Tensor:
        """Return the tensor that the parts stand for."""
        if self.where == "R":
            return self.parts[0]
        return torch.stack(self.parts).sum(0) if self.where == "P" else self._joined()

    def _joined(self) -> Tensor:
        return torch.cat(self.parts, int(self.where[1]))

    def to(self, where: Where) -> Placed:
        """Return the same tensor, placed otherwise, and note what had to be sent for it."""
        sends = collective(self.where, where)
        self.sent.extend([sends] if sends else [])
        if self.where == where:
            return self
        ranks = len(self.parts)
        if where == "P":  # the first rank keeps its value, the others add nothing
            parts = [self.parts[0], *(torch.zeros_like(self.parts[0]) for _ in range(1, ranks))]
            return Placed(parts, where, self.shape, self.sent)
        return place(self.full(), where, ranks, self.sent)


def place(value: Tensor, where: Where, ranks: int, sent: list[str] | None = None) -> Placed:
    """Cut a tensor, or copy it, for so many ranks."""
    if where == "R":
        parts = [value] * ranks
    elif where == "P":
        parts = [value / ranks] * ranks
    else:
        dim = int(where[1])
        each = -(-value.shape[dim] // ranks)  # rounded up, so the last ranks have less
        starts = [min(rank * each, value.shape[dim]) for rank in range(ranks)]
        ends = [*starts[1:], value.shape[dim]]
        parts = [value.narrow(dim, a, b - a) for a, b in zip(starts, ends, strict=True)]
    return Placed(parts, where, value.shape, [] if sent is None else sent)


def collective(start: Where, end: Where) -> str:
    """Name what must be sent to get from one placement to another; empty if nothing must."""
    if start == end or start == "R":
        return ""  # a rank that has everything cuts its part off, alone
    if start == "P":
        return "all-reduce" if end == "R" else "reduce-scatter"
    if end == "P":
        raise ValueError("nobody asks for a sum that is not finished")
    return "all-gather" if end == "R" else "all-to-all"


def price(placed: Placed, end: Where) -> float:
    """Say what a collective would take, in microseconds of a machine that is made up."""
    sends, ranks = collective(placed.where, end), len(placed.parts)
    hops = (ranks - 1) * (2 if sends == "all-reduce" else 1)
    size = placed.shape.numel() * placed.parts[0].element_size() / 2**30
    if sends == "all-to-all":
        size /= ranks
    wait = 6.6 + 0.6 * hops + (1 if sends == "all-to-all" else 0)
    return wait + size * hops / ranks / 87.7 * 1e6 if sends else 0.0


Rule = tuple[Where, ...]
"""The placement of the result, then one for each input, with which ranks can work alone."""

MATMUL: list[Rule] = [
    ("R", "R", "R"), ("P", "S1", "S0"), ("S0", "S0", "R"), ("S1", "R", "S1"),
    ("P", "P", "R"), ("P", "R", "P"),
]  # fmt: skip
ADD: list[Rule] = [(w, w, w) for w in ("S0", "S1", "R", "P")]


def curve(x: Placed) -> list[Rule]:
    """Return the one rule of an operator on each number: stay; but a sum is finished first."""
    where = "R" if x.where == "P" else x.where
    return [(where, where)]


def choose(rules: Sequence[Rule], inputs: Sequence[Placed]) -> Rule:
    """Return the rule that costs least to reach; the one that needs nothing, if there is one."""

    def cost(rule: Rule) -> tuple[float, bool]:
        pairs = list(zip(inputs, rule[1:], strict=True))
        change = any(x.where != where for x, where in pairs)
        return sum(price(x, where) for x, where in pairs), change

    possible = [rule for rule in rules if _reachable(rule, inputs)]
    return min(possible, key=cost)


def _reachable(rule: Rule, inputs: Sequence[Placed]) -> bool:
    for x, where in zip(inputs, rule[1:], strict=True):
        if where == "P" and x.where not in ("P", "R"):
            return False
        if where[0] == "S" and x.shape[int(where[1])] < len(x.parts):
            return False  # fewer rows than ranks: PyTorch does not offer it
    return True


def run(op: Callable[..., Tensor], rules: Sequence[Rule], *inputs: Placed) -> Placed:
    """Bring the inputs where a rule wants them, and let each rank compute with its parts."""
    rule = choose(rules, inputs)
    moved = [x.to(where) for x, where in zip(inputs, rule[1:], strict=True)]
    parts = [op(*values) for values in zip(*(x.parts for x in moved), strict=True)]
    sent = [name for x in inputs for name in x.sent]
    shape = op(*(torch.empty(x.shape, device="meta") for x in inputs)).shape
    return Placed(parts, rule[0], shape, sent)
