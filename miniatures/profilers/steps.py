"""The schedule: what each step does to a profiler, and which steps come out."""

from __future__ import annotations

from dataclasses import dataclass, field

NONE, WARMUP, RECORD, SAVE = "none", "warmup", "record", "record and save"


@dataclass(frozen=True)
class Schedule:
    """How many steps of a cycle do what; the arguments of `torch.profiler.schedule`."""

    wait: int
    warmup: int
    active: int
    repeat: int = 0
    skip_first: int = 0

    def action(self, step: int) -> str:
        """Return what is done in a step, counted from 0."""
        step -= self.skip_first
        length = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * length):
            return NONE
        at = step % length
        if at < self.wait:
            return NONE
        if at < self.wait + self.warmup:
            return WARMUP
        return RECORD if at < length - 1 else SAVE


@dataclass
class Steps:
    """A profiler reduced to what its steps do.

    :param calls: prepare, start, stop and ready, in order.
    :param traces: the numbers of the steps in each trace that was handed over.
    """

    schedule: Schedule
    step: int = 0
    calls: list[str] = field(default_factory=list)
    traces: list[list[int]] = field(default_factory=list)
    _kept: list[int] = field(default_factory=list)

    def enter(self) -> None:
        """Begin, as ``with`` does."""
        self._change(NONE, self.schedule.action(0))

    def next(self) -> None:
        """Say that the next step begins: ``step()``."""
        before = self.schedule.action(self.step)
        self.step += 1
        self._change(before, self.schedule.action(self.step))

    def leave(self) -> None:
        """End. What was recorded is handed over, though the cycle is not complete."""
        self._change(self.schedule.action(self.step), "end")

    def _change(self, before: str, now: str) -> None:
        if before in (RECORD, SAVE) and (before == SAVE or now == "end"):
            self._do("stop", "ready")
            self.traces.append(self._kept)
            self._kept = []
            before = NONE
        if before == WARMUP and now == "end":
            self._do("start", "stop")  # what was warmed up is thrown away
        elif before == NONE and now in (WARMUP, RECORD, SAVE):
            self._do("prepare")
        if before in (NONE, WARMUP) and now in (RECORD, SAVE):
            self._do("start")
        if now in (RECORD, SAVE):
            self._kept.append(self.step)

    def _do(self, *calls: str) -> None:
        self.calls += calls
