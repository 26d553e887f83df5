"""How a plan is carried out: loops around one inner loop, and which inner loop that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from torch import Tensor

from miniatures.tensor_iterator.iterator import Plan


def rows(plan: Plan) -> Iterator[tuple[list[int], int]]:
    """Go through the outer loops.

    :return: where each operand stands then, in elements, and how long the inner loop is.
    """
    inner, *outer = plan.loops or [1]
    for index in product(*(range(size) for size in reversed(outer))):
        turns = list(reversed(index))
        yield [sum(i * step for i, step in zip(turns, row[1:], strict=True))
               for row in plan.steps], inner  # fmt: skip


def compute(plan: Plan, operands: Sequence[Tensor], function: Callable[..., float]) -> list[float]:
    """Run a function over the operands' memory, and return the memory of the result."""
    memories = [x.as_strided((_extent(x),), (1,)).tolist() for x in operands]
    size = 1 + sum((n - 1) * step for n, step in zip(plan.loops, plan.steps[0], strict=True))
    out = [0.0] * size
    to_step, *steps = [row[0] if row else 0 for row in plan.steps]
    for (to, *places), count in rows(plan):
        for i in range(count):
            each = zip(memories, places, steps, strict=True)
            out[to + i * to_step] = function(*(m[place + i * step] for m, place, step in each))
    return out


def _extent(x: Tensor) -> int:
    return 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))


def takes_vectors(plan: Plan) -> bool:
    """Tell whether the inner loop reads and writes vectors.

    The result and the operands advance by one element; one operand may stand still.
    """
    steps = [row[0] if row else 1 for row in plan.steps]
    return steps[0] == 1 and steps[1:].count(0) <= 1 and set(steps[1:]) <= {0, 1}


def by_vectors(plan: Plan, block: int) -> list[bool]:
    """Tell for each turn, in the order of the loops, whether a vector computes it.

    :param block: how many elements a turn of the vectors' loop takes: two vectors.
    """
    found: list[bool] = []
    for _, count in rows(plan):
        whole = count - count % block if takes_vectors(plan) else 0
        found += [i < whole for i in range(count)]
    return found
