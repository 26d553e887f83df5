"""What follows from the graph of steps: who comes before whom, when, and what is a race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from miniatures.cuda_from_the_host.streams import CPU, Step


def before(steps: Sequence[Step]) -> list[frozenset[int]]:
    """Return for each step the numbers of all steps that have ended when it begins, for certain."""
    found: list[frozenset[int]] = []
    for step in steps:
        found.append(step.after.union(*(found[number] for number in step.after)))
    return found


def times(
    steps: Sequence[Step], takes: Mapping[int, float] | None = None
) -> list[tuple[float, float]]:
    """Return when each step begins and ends: each as soon as it may.

    :param takes: durations other than the steps' own, by number.
    """
    found: list[tuple[float, float]] = []
    for step in steps:
        begins = max((found[number][1] for number in step.after), default=0.0)
        found.append((begins, begins + (takes or {}).get(step.number, step.takes)))
    return found


def races(steps: Sequence[Step]) -> list[tuple[Step, Step, str]]:
    """Return pairs of steps that use one tensor, one of them writing, in no certain order."""
    certain, found = before(steps), []
    for late in steps:
        for early in steps[: late.number]:
            shared = (early.writes & (late.reads | late.writes)) | (early.reads & late.writes)
            if shared and early.number not in certain[late.number]:
                found.append((early, late, min(shared)))
    return found


def surfaces(steps: Sequence[Step], failed: str) -> Step | None:
    """Return the call that reports a kernel's error, if a call does.

    It is the first that begins when the kernel is over, or waits for it.
    """
    when, certain = times(steps), before(steps)
    (kernel,) = [step for step in steps if step.name == failed and step.lane != CPU]
    for step in steps[kernel.number + 1 :]:
        waits = step.kind == "wait" and kernel.number in certain[step.number]
        late = when[step.number][0] >= when[kernel.number][1]
        if step.lane == CPU and step.kind != "host" and (waits or late):
            return step
    return None


def captured(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of the streams alone, as a CUDA graph keeps them: without the CPU."""
    places = {s.number: at for at, s in enumerate(s for s in steps if s.lane != CPU)}
    return [
        Step(places[s.number], s.name, s.lane, s.kind, s.takes,
             frozenset(places[n] for n in s.after if n in places), s.reads, s.writes)
        for s in steps if s.lane != CPU
    ]  # fmt: skip
