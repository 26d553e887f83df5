"""Five questions to a slow line, each answered by a number that the process can be asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch.utils._python_dispatch import TorchDispatchMode

from insidetorch.display import Display, seconds, table
from miniatures.amp.draw import draw_grid
from miniatures.cpu_performance.watch import faults, threads, wall_seconds
from miniatures.cpu_performance.watch_kernels import copies, longest, who


class _Names(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.seen.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Answers:
    """What the five questions found about one call.

    :param spent: seconds of one call by the clock.
    :param operators: that ran.
    :param alone: seconds of one call on one thread.
    :param busy: cores that were busy on average, by CPU time over time.
    :param library: whose kernel did the work, and its name for it.
    :param copies: that ran inside it, with those that no operator shows.
    :param longest: the operator that takes the most time by itself.
    :param pages: that Linux had to supply, of 4 KiB, in the least of three calls.
    :param rate: bytes per second, of those that the caller said must move; 0 without.
    """

    spent: float
    operators: int
    alone: float
    busy: float
    library: tuple[str, str]
    copies: int
    longest: str
    pages: int
    rate: float


def ask(call: Callable[[], object], *, moved: int = 0, times: int = 3) -> Answers:
    """Ask the five questions about a call, which runs a dozen times for it.

    :param moved: bytes that it must read and write at least.
    """
    spent = wall_seconds(call, times=times)
    with _Names() as names:
        call()
    before, start = time.process_time(), time.perf_counter()
    call()
    busy = (time.process_time() - before) / (time.perf_counter() - start)
    with threads(1):
        alone = wall_seconds(call, times=times)
    return Answers(
        spent=spent,
        operators=len(names.seen),
        alone=alone,
        busy=busy,
        library=who(call),
        copies=copies(call),
        longest=longest(call),
        pages=min(faults(call) for _ in range(3)),
        rate=moved / spent,
    )


def answers(asked: Mapping[str, Answers]) -> Display:
    """Return a table: a row for each question, a column for each call."""
    rows = [
        ("time of a call", [seconds(a.spent) for a in asked.values()]),
        ("1. operators in it, and time for each",
         [f"{a.operators}, {seconds(a.spent / max(a.operators, 1))}" for a in asked.values()]),
        ("2. on one thread; cores busy",
         [f"{seconds(a.alone)}; {a.busy:.1f}" for a in asked.values()]),
        ("3. longest operator, whose kernel; copies",
         [f"{a.longest}, {' '.join(a.library)}; {a.copies}" for a in asked.values()]),
        ("4. new pages", [f"{a.pages:,}" for a in asked.values()]),
        ("5. bytes per second",
         [f"{a.rate / 1e9:.1f} GB/s" if a.rate else "–" for a in asked.values()]),
    ]  # fmt: skip
    return table(["question", *asked], [(name, *cells) for name, cells in rows])


def draw_planted(
    asked: Mapping[str, tuple[Answers, Answers]],
    threads_of: Mapping[str, int],
    *,
    caption: str,
    name: str,
) -> Display:
    """Draw five answers of slow calls and of their repair; the first that tells is set off.

    :param threads_of: on how many threads each slow call ran.
    """
    rows = {}
    for called, (slow, quick) in asked.items():
        cells = [
            (f"{slow.operators}\n→ {quick.operators}", slow.operators > 10 * quick.operators),
            (f"{slow.spent / quick.spent:.1f} ×\nas long", threads_of[called] > 1),
            (f"{slow.library[0]}\n→ {quick.library[0]}", slow.library[0] != quick.library[0]),
            (f"{slow.pages:,}\n→ {quick.pages}", slow.pages > 100 + 10 * quick.pages),
            (f"{slow.rate / 1e9:.1f}\n→ {quick.rate / 1e9:.1f}" if slow.rate else "",
             bool(slow.rate)),
        ]  # fmt: skip
        first = next((at for at, (_, differs) in enumerate(cells) if differs), 1)
        rows[called] = [(says, "b" if at == first else "") for at, (says, _) in enumerate(cells)]
    columns = ["1.\ncalls", "2.\ntime", "3.\nkernel", "4.\npages", "5.\nGB/s"]
    keys = {"b": "the first answer that tells them apart"}
    return draw_grid(rows, columns, keys=keys, caption=caption, name=name, high=0.48)
