"""Nine slow lines as a profiler writes them, described event by event, and what is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

from miniatures.gpu_performance.questions import Work

Events = Iterator[tuple[str, str, float, float]]
"""For each event: ``CPU`` or ``CUDA``, its name, and from when to when, in microseconds."""


def _loop(times: int, step: float, one: Callable[[float], Events]) -> Events:
    """Repeat a step; the step begins at a time that it is given."""
    for n in range(times):
        yield from one(n * step)


def _optimizer(at: float) -> Events:
    yield "CPU", "Optimizer.step#Adam.step", at, at + 900
    yield "CUDA", "Optimizer.step#Adam.step", at + 10, at + 900
    for n in range(90):
        yield "CPU", "aten::mul_", at + 10 * n, at + 10 * n + 8
        yield "CPU", "cudaLaunchKernel", at + 10 * n + 3, at + 10 * n + 7
        yield "CUDA", "elementwise", at + 10 * n + 8, at + 10 * n + 10


def _mask(at: float) -> Events:
    yield "CPU", "aten::nonzero", at, at + 300
    yield "CPU", "cudaMemcpyAsync", at + 20, at + 60
    yield "CPU", "cudaStreamSynchronize", at + 60, at + 290
    yield "CUDA", "forward", at + 100, at + 280
    yield "CPU", "aten::linear", at + 300, at + 400


def _memory(at: float) -> Events:
    yield "CPU", "aten::empty", at, at + 600
    yield "CPU", "cudaFree", at, at + 350
    yield "CPU", "cudaMalloc", at + 350, at + 590
    yield "CPU", "cudaLaunchKernel", at + 610, at + 616
    yield "CUDA", "forward", at + 620, at + 900


def _loader(at: float) -> Events:
    yield "CPU", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 700
    yield "CPU", "aten::stack", at + 500, at + 600
    yield "CPU", "cudaLaunchKernel", at + 705, at + 711
    yield "CUDA", "forward", at + 712, at + 1000


def _python(at: float) -> Events:
    yield "CPU", "aten::linear", at + 800, at + 830
    yield "CPU", "cudaLaunchKernel", at + 810, at + 816
    yield "CUDA", "forward", at + 820, at + 1000


def _pageable(at: float) -> Events:
    yield "CPU", "cudaMemcpyAsync", at, at + 880
    yield "CUDA", "Memcpy HtoD (Pageable -> Device)", at + 20, at + 880
    yield "CPU", "cudaLaunchKernel", at + 885, at + 890
    yield "CUDA", "forward", at + 890, at + 1000


def _alone(name: str) -> Callable[[float], Events]:
    def one(at: float) -> Events:
        yield "CPU", "cudaLaunchKernel", at, at + 6
        yield "CUDA", name, at + 10, at + 1000

    return one


def traces() -> dict[str, tuple[SimpleNamespace, dict[str, Work], str]]:
    """Return, by name, a profile as `spans_of` takes it, the work of its kernels, the limit."""
    many, million = Work(1e7), 1e6
    lines: dict[str, tuple[Events, dict[str, Work], str]] = {
        "an optimizer without foreach": (_loop(3, 900, _optimizer), {}, "launch"),
        "x[mask] in each step": (_loop(5, 400, _mask), {}, "waiting"),
        "empty_cache() in each step": (_loop(4, 900, _memory), {}, "waiting"),
        "a loader in this process": (_loop(4, 1000, _loader), {}, "loading"),
        "reading files in the loop": (_loop(4, 1000, _python), {}, "loading"),
        "a batch that is not pinned": (_loop(4, 1000, _pageable), {"forward": many}, "link"),
        "other ranks are late": (
            _loop(3, 1000, _alone("ncclDevKernel_AllReduce_Sum_f32_RING_LL")), {}, "link"),
        "a product in float32": (
            _loop(3, 1000, _alone("sgemm")), {"sgemm": Work(1e7, 5e4 * million)}, "shape"),
        "one row on one block": (
            _loop(3, 1000, _alone("scan")), {"scan": Work(8 * million)}, "shape"),
    }  # fmt: skip
    return {name: (_profile(events), work, limit) for name, (events, work, limit) in lines.items()}


def _profile(events: Events) -> SimpleNamespace:
    """Return what has the parts of a profile that `spans_of` looks at."""
    found = [
        SimpleNamespace(
            name=name,
            device_type=f"DeviceType.{device}",
            time_range=SimpleNamespace(start=start, end=end),
            is_user_annotation="#" in name,
        )
        for device, name, start, end in events
    ]
    return SimpleNamespace(events=lambda: found)
