"""A CPU that starts work on streams: what each step comes after, as a graph of steps.

Nothing computes. A kernel comes after the call that starts it and after what its stream holds; a
call comes after the call before it, and after what it waits for. Times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CPU, MAIN = "CPU", "main"


@dataclass(frozen=True)
class Step:
    """Something that the CPU or a stream does.

    :param number: its place in the program.
    :param lane: `CPU`, or the stream that it runs on.
    :param kind: ``call``, ``wait`` and ``host`` on the CPU; ``kernel`` and ``copy`` on a stream.
    :param takes: how long it runs; of a wait, how long it takes when there is nothing to wait for.
    :param after: numbers of the steps that must have ended before it begins.
    :param reads: names of the tensors that it reads.
    :param writes: names of the tensors that it writes.
    """

    number: int
    name: str
    lane: str
    kind: str
    takes: float
    after: frozenset[int]
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


def names(words: str) -> frozenset[str]:
    """Return the names in a text such as ``"x y"``."""
    return frozenset(words.split())


class Program:
    """What a Python program asks of CUDA, call by call.

    :param cost: how long the CPU needs for a call.
    :param blocking: as with ``CUDA_LAUNCH_BLOCKING=1``, each launch waits for what it started.
    """

    def __init__(self, cost: float = 5.0, *, blocking: bool = False) -> None:
        self.steps: list[Step] = []
        self.cost, self.blocking = cost, blocking
        self.ends: dict[str, frozenset[int]] = {}
        self.marks: dict[str, frozenset[int]] = {}
        self.cpu: frozenset[int] = frozenset()

    def _add(self, name: str, lane: str, kind: str, takes: float, after: Iterable[int],
             reads: str = "", writes: str = "") -> frozenset[int]:  # fmt: skip
        number = len(self.steps)
        self.steps.append(Step(number, name, lane, kind, takes, frozenset(after),
                               names(reads), names(writes)))  # fmt: skip
        return frozenset([number])

    def _call(self, name: str, kind: str = "call", after: Iterable[int] = ()) -> None:
        self.cpu = self._add(name, CPU, kind, self.cost, self.cpu.union(after))

    def host(self, name: str, takes: float, reads: str = "", writes: str = "") -> None:
        """Let the CPU do something itself, such as reading a tensor that lies in its memory."""
        self.cpu = self._add(name, CPU, "host", takes, self.cpu, reads, writes)

    def kernel(self, name: str, takes: float, stream: str = MAIN, *, reads: str = "",
               writes: str = "", kind: str = "kernel") -> None:  # fmt: skip
        """Start a kernel: the CPU makes a call, and the stream gets one thing more to do."""
        self._call(name)
        behind = self.ends.get(stream, frozenset())
        self.ends[stream] = self._add(name, stream, kind, takes, behind | self.cpu, reads, writes)
        if self.blocking and kind == "kernel":
            self._call(f"wait for {name}", "wait", self.ends[stream])

    def record(self, event: str, stream: str = MAIN) -> None:
        """Put a mark behind what the stream holds by now; the event's older mark is forgotten."""
        self._call(f"{event}.record")
        self.marks[event] = self.ends.get(stream, frozenset())

    def wait(self, stream: str, event: str) -> None:
        """Let what the stream gets from now on come after the mark; no mark, no wait."""
        self._call(f"{event}.wait")
        self.ends[stream] = self.ends.get(stream, frozenset()) | self.marks.get(event, frozenset())

    def wait_stream(self, stream: str, other: str) -> None:
        """Let the stream's next work come after all that the other stream holds by now."""
        self.record("…", other)
        self.wait(stream, "…")

    def synchronize(self, *, stream: str = "", event: str = "", device: str = "") -> None:
        """Let the CPU stand still until a stream, a mark, or all streams of a device are done."""
        if stream:
            self._call("synchronize", "wait", self.ends.get(stream, ()))
        elif event:
            self._call("synchronize", "wait", self.marks.get(event, ()))
        else:
            on = [end for name, end in self.ends.items() if device_of(name) == (device or "cuda:0")]
            self._call("synchronize", "wait", frozenset().union(*on))

    def copy(self, name: str, takes: float, stream: str = MAIN, *, reads: str = "",
             writes: str = "", pinned: bool = False,
             non_blocking: bool = False) -> None:  # fmt: skip
        """Copy between the CPU and a GPU: the call returns at once if both options are given.

        Otherwise it waits: PyTorch does for a blocking copy, the driver, as a rule, for
        ordinary memory.
        """
        self.kernel(name, takes, stream, reads=reads, writes=writes, kind="copy")
        if not (pinned and non_blocking):
            self._call(f"wait for {name}", "wait", self.ends[stream])

    def item(self, tensor: str, stream: str = MAIN) -> None:
        """Fetch a number: a blocking copy of a few bytes, so a wait for its stream."""
        self.copy("item", 2, stream, reads=tensor)

    def between(self, name: str, takes: float, source: str, target: str, *, reads: str = "",
                writes: str = "") -> None:  # fmt: skip
        """Copy from one GPU to another: both streams wait for each other, and the CPU for none."""
        self.wait_stream(source, target)
        self.kernel(name, takes, source, reads=reads, writes=writes, kind="copy")
        self.wait_stream(target, source)


def device_of(stream: str) -> str:
    """Return the device of a stream: ``cuda:1`` of ``cuda:1/main``, and ``cuda:0`` of ``main``."""
    return stream.partition("/")[0] if "/" in stream else "cuda:0"
