"""Six slow programs for a GPU, planted: each has one fault, and a chip to hold them against."""

from __future__ import annotations

from collections.abc import Callable

from miniatures.gpu_performance.launch_queue import Host, Launch, Step, Wait
from miniatures.gpu_performance.questions import Speeds, Work

CHIP = Speeds(memory=2e12, compute=100e12)
"""A round-numbered chip: 2 MB in a microsecond, and 100 million operations."""


def _time(work: Work) -> float:
    """Return the microseconds that a kernel takes on `CHIP`, at 80 % of its bound."""
    return max(work.bytes / CHIP.memory, work.flop / CHIP.compute) * 1e6 / 0.8


def _repeated(times: int, steps: Callable[[int], list[Step]]) -> list[Step]:
    return [each for n in range(times) for each in steps(n)]


def slow_programs() -> dict[str, tuple[list[Step], dict[str, Work], str]]:
    """Return, by name, a program, the work of its kernels, and the limit that was planted."""
    small, large = Work(12e3, 1e3), Work(200e6, 5e7)
    product, wasted = Work(100e6, 1.4e11), Work(200e6)
    step = [Launch(name, _time(large) / 4) for name in ("forward", "backward", "step")]
    return {
        "many small kernels": (
            [*[Launch(f"add {n}", 2) for n in range(40)], Wait("end")],
            {f"add {n}": small for n in range(40)}, "launch"),
        "loss.item() in each step": (
            _repeated(6, lambda n: [*(Launch(f"{s.name} {n}", 6) for s in step), Wait()]),
            {f"{s.name} {n}": small for s in step for n in range(6)}, "waiting"),
        "a slow loader": (
            _repeated(4, lambda n: [
                Host("next(batches)", 300), *(Launch(f"{s.name} {n}", s.takes) for s in step)]),
            {f"{s.name} {n}": large for s in step for n in range(4)}, "loading"),
        "a chain that is not fused": (
            [*[Launch(name, _time(large)) for name in ("mul", "add", "relu", "norm")], Wait("end")],
            dict.fromkeys(("mul", "add", "relu", "norm"), large), "memory"),
        "a large product": (
            [Launch("mm", _time(product)), Launch("relu", _time(large) / 2), Wait("end")],
            {"mm": product, "relu": Work(100e6)}, "compute"),
        "a transpose by rows": (
            [Launch("copy", _time(wasted) * 4.5), Wait("end")], {"copy": wasted}, "shape"),
    }  # fmt: skip
