"""A CPU that starts work and a GPU that does it: who is busy when, from durations alone.

Times are in microseconds. The CPU goes on as soon as it has started a kernel; the GPU takes the
kernels of one queue in their order. Only a wait makes the CPU stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CPU, GPU, COPY = "CPU", "GPU", "copies"


@dataclass(frozen=True)
class Launch:
    """The CPU starts something on the GPU.

    :param name: of the kernel.
    :param takes: how long it runs on the GPU.
    :param cost: how long the CPU needs to start it.
    :param queue: where it waits for its turn; `COPY` runs beside `GPU`.
    :param after: names of what must have ended before, in other queues.
    """

    name: str
    takes: float
    cost: float = 5.0
    queue: str = GPU
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wait:
    """The CPU waits until everything that it has started is done, as `item()` does."""

    name: str = "item()"


@dataclass(frozen=True)
class Host:
    """The CPU does something else, such as reading the next batch."""

    name: str
    takes: float


Step = Launch | Wait | Host


@dataclass(frozen=True)
class Span:
    """Something that happened.

    :param lane: `CPU`, `GPU` or `COPY`.
    :param kind: ``launch``, ``wait``, ``host`` or ``kernel``.
    """

    lane: str
    kind: str
    name: str
    start: float
    end: float


def run(program: Sequence[Step]) -> list[Span]:
    """Return what happens when the CPU goes through a program, in the order in which it begins."""
    spans: list[Span] = []
    now, free, done = 0.0, dict[str, float](), dict[str, float]()
    for step in program:
        if isinstance(step, Launch):
            ready = now + step.cost
            spans.append(Span(CPU, "launch", step.name, now, ready))
            begin = max(ready, free.get(step.queue, 0.0), *(done[name] for name in step.after), 0.0)
            free[step.queue] = done[step.name] = begin + step.takes
            spans.append(Span(step.queue, "kernel", step.name, begin, begin + step.takes))
            now = ready
        elif isinstance(step, Wait):
            until = max([now, *free.values()])
            spans.append(Span(CPU, "wait", step.name, now, until))
            now = until
        else:
            spans.append(Span(CPU, "host", step.name, now, now + step.takes))
            now += step.takes
    return sorted(spans, key=lambda span: (span.start, span.lane))


def waiting(spans: Sequence[Span], at: float) -> list[str]:
    """Return the kernels that are launched and have not begun at a time: what the queue holds."""
    launched = {span.name: span.end for span in spans if span.kind == "launch"}
    return [
        span.name
        for span in spans
        if span.kind == "kernel" and launched[span.name] <= at < span.start
    ]
