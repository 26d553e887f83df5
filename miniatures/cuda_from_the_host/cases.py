"""Random programs for the miniature, and two other judges of their order: PyTorch's, and delays."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from insidetorch import private
from miniatures.cuda_from_the_host.order import before, races, times
from miniatures.cuda_from_the_host.streams import CPU, MAIN, Program

STREAMS, EVENTS, TENSORS = (MAIN, "side", "other"), ("e", "f"), tuple("abcdefghijklmnopqrst")

Line = tuple[Any, ...]


def random_program(seed: int, length: int = 20) -> list[Line]:
    """Return a program: kernels that read and write, marks, waits, and stops of the CPU."""
    draw = Random(seed)
    lines: list[Line] = []
    for number in range(length):
        stream, event = draw.choice(STREAMS), draw.choice(EVENTS)
        kind = draw.choices(
            ("kernel", "record", "wait", "stream", "event", "device"), (10, 4, 5, 1, 1, 1)
        )[0]
        if kind == "kernel":
            tensors = draw.sample(TENSORS, 2)
            lines.append((kind, f"k{number}", stream, tensors[0], tensors[1]))
        elif kind in ("record", "wait"):
            lines.append((kind, stream, event))
        else:
            lines.append((kind, {"stream": stream, "event": event, "device": ""}[kind]))
    return lines


def played(lines: Sequence[Line]) -> Program:
    """Return what the miniature makes of a program."""
    program = Program()
    for line in lines:
        if line[0] == "kernel":
            program.kernel(line[1], 3, line[2], reads=line[3], writes=line[4])
        elif line[0] == "record":
            program.record(line[2], line[1])
        elif line[0] == "wait":
            program.wait(line[1], line[2])
        else:
            program.synchronize(**{line[0]: line[1]})
    return program


def order_here(lines: Sequence[Line]) -> tuple[set[tuple[str, str]], str]:
    """Return the pairs of kernels in a certain order by the miniature, and the first in a race."""
    steps = played(lines).steps
    certain, on_gpu = before(steps), [step for step in steps if step.lane != CPU]
    pairs = {(a.name, b.name) for b in on_gpu for a in on_gpu if a.number in certain[b.number]}
    return pairs, next((late.name for _, late, _ in races(steps)), "")


def order_of_sanitizer(lines: Sequence[Line]) -> tuple[set[tuple[str, str]], str]:
    """Return the same two by PyTorch's CUDA sanitizer, fed with the program's events."""
    judge = private.Sanitizer()
    numbers = {name: at for at, name in enumerate([*STREAMS, *EVENTS, *TENSORS])}
    done: list[tuple[str, int, int]] = []
    pairs, first = set(), ""
    for line in lines:
        if line[0] == "kernel":
            _, name, stream, read, written = line
            raced = judge.kernel(name, numbers[stream], {numbers[read]}, {numbers[written]})
            first = first or (name if raced else "")
            pairs |= {(early, name) for early, number, on in done
                      if judge.ordered(numbers[stream], number, on)}  # fmt: skip
            done.append((name, judge.last, numbers[stream]))
        elif line[0] in ("record", "wait"):
            getattr(judge, line[0])(numbers[line[2]], numbers[line[1]])
        else:
            judge.synchronize(line[0], numbers.get(line[1], 0))
    return pairs, first


def order_by_delay(lines: Sequence[Line]) -> set[tuple[str, str]]:
    """Return the pairs in which the second still comes after the first when that takes very long.

    The order is not asked for here: each kernel in turn is made slow, and the times are looked at.
    """
    steps, found = played(lines).steps, set()
    on_gpu = [step for step in steps if step.lane != CPU]
    for slow in on_gpu:
        when = times(steps, {slow.number: 1e6})
        found |= {(slow.name, step.name) for step in on_gpu if step.number > slow.number
                  and when[step.number][0] >= when[slow.number][1]}  # fmt: skip
    return found


def agrees(seed: int) -> bool:
    """Tell whether the three judges name the same pairs, and two of them the same first race."""
    lines = random_program(seed)
    pairs, first = order_here(lines)
    return order_of_sanitizer(lines) == (pairs, first) and order_by_delay(lines) == pairs
