"""A tracer: two notes for each line, and a file in Chrome's format."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

USER_SCOPE = 7
"""The scope of ``record_function``, in `at::RecordScope`."""


@dataclass
class Line:
    """What becomes a line of the trace.

    :param start: when it began, in nanoseconds.
    :param end: when it ended; 0 until then.
    :param sequence: the sequence number that autograd had then, or -1.
    """

    name: str
    scope: int
    thread: int
    start: int
    end: int = 0
    sequence: int = -1


class Tracer:
    """An observer: `begin` and `end` are called around everything that PyTorch announces.

    :param clock: what time it is, in nanoseconds; a counter serves as well.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.clock = clock
        self.lines: list[Line] = []
        self._open: dict[int, list[Line]] = defaultdict(list)

    def begin(self, name: str, scope: int, sequence: int) -> None:
        """Note what begins on this thread, and when."""
        thread = threading.get_ident()
        line = Line(name, scope, thread, self.clock(), sequence=sequence)
        self._open[thread].append(line)
        self.lines.append(line)

    def end(self) -> None:
        """Note when the newest line of this thread that is open ends."""
        self._open[threading.get_ident()].pop().end = self.clock()

    def chrome(self) -> dict[str, Any]:
        """Return the trace as `json.dump` writes it: times in microseconds, no parents."""
        threads = list(dict.fromkeys(line.thread for line in self.lines))
        return {
            "traceEvents": [
                {
                    "ph": "X",
                    "name": line.name,
                    "cat": "user_annotation" if line.scope == USER_SCOPE else "cpu_op",
                    "pid": 1,
                    "tid": 1 + threads.index(line.thread),
                    "ts": line.start / 1000,
                    "dur": (line.end - line.start) / 1000,
                    "args": {"Sequence number": line.sequence},
                }
                for line in self.lines
                if line.end
            ]
        }
