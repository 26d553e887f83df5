"""The chapter's questions to a slow line, asked of who was busy when: which of the limits holds?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from miniatures.gpu_performance.launch_queue import CPU, GPU, Span

LINKS = ("Memcpy HtoD", "Memcpy DtoH", "Memcpy PtoP", "nccl")
"""So begin the names, in a profile, of what uses the way to the CPU or to another GPU."""

BUSY, NEAR, MUCH = 0.8, 0.5, 0.2
"""Above `BUSY` the GPU is busy; a kernel within `NEAR` of its bound is near it; a wait is long from
`MUCH` of the time on. Rough lines, to choose where to look, and no constants of nature."""


@dataclass(frozen=True)
class Work:
    """What one kernel has to do at least: bytes to move, and floating-point operations."""

    bytes: float
    flop: float = 0.0


@dataclass(frozen=True)
class Speeds:
    """What a chip can do: bytes a second, FLOP a second, and seconds for one launch."""

    memory: float
    compute: float
    launch: float = 5e-6


@dataclass(frozen=True)
class Answer:
    """Which limit holds, and what the questions found.

    :param limit: ``launch``, ``waiting``, ``loading``, ``link``, ``memory``, ``compute`` or
        ``shape``.
    :param found: the answers, in the order of the questions.
    """

    limit: str
    found: tuple[str, ...]


def bound(kernels: int, work: Work, chip: Speeds) -> dict[str, float]:
    """Return the least seconds that launches, memory and arithmetic each take; none is faster."""
    return {
        "launch": kernels * chip.launch,
        "memory": work.bytes / chip.memory,
        "compute": work.flop / chip.compute,
    }


def ask(spans: Sequence[Span], work: Mapping[str, Work], chip: Speeds) -> Answer:
    """Ask the questions in their order, until one names the limit.

    :param spans: who was busy when, in microseconds.
    :param work: of each kernel, by name.
    :raises KeyError: of the longest kernel, `work` is not known.
    """
    wall = max(span.end for span in spans) - min(span.start for span in spans)
    busy = _covered([span for span in spans if span.lane == GPU]) / wall
    found = [f"the GPU is busy {busy:.0%} of the time"]
    if busy < BUSY:
        of_cpu = {
            kind: [span for span in spans if span.lane == CPU and span.kind == kind]
            for kind in ("wait", "launch", "host")
        }
        shares = {kind: _covered(some) / wall for kind, some in of_cpu.items()}
        found.append(
            f"the CPU waits {shares['wait']:.0%}, launches {shares['launch']:.0%} and does "
            f"something else {shares['host']:.0%} of the time"
        )
        if shares["host"] > max(shares["launch"], shares["wait"]):
            return Answer("loading", tuple(found))
        if shares["wait"] < MUCH:
            return Answer("launch", tuple(found))
        longest = max(of_cpu["wait"], key=lambda span: span.end - span.start).name
        return Answer("waiting", (*found, f"the longest wait is {longest}"))
    took: dict[str, float] = {}
    for span in spans:
        if span.lane == GPU:
            took[span.name] = took.get(span.name, 0.0) + span.end - span.start
    longest = max(took, key=lambda name: took[name])
    if longest.startswith(LINKS):
        return Answer("link", (*found, f"the longest is no computation, but {longest}"))
    least = bound(0, work[longest], chip)
    limit = max(least, key=lambda name: least[name])
    reached = least[limit] * 1e6 / took[longest]
    found += [f"the longest kernel is {longest}", f"its bound is {limit}: it reaches {reached:.0%}"]
    return Answer(limit if reached >= NEAR else "shape", tuple(found))


def _covered(spans: Sequence[Span]) -> float:
    """Return how long at least one of the spans ran."""
    total, until = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.start):
        total += max(0.0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total
