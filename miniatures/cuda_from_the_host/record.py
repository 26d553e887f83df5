"""What a GPU does with a program: when its kernels ran, and whether a call waited for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from insidetorch import private
from miniatures.cuda_from_the_host.cases import STREAMS, Line

BUSY = 100_000_000
"""Cycles for which a GPU is kept busy: tens of milliseconds."""

_event: Callable[..., Any] = torch.cuda.Event
_stream: Callable[..., Any] = torch.cuda.Stream


def came_back(call: Callable[[], object]) -> bool:
    """Tell whether a call returns while the current stream is still busy.

    The call is made twice, and the second time counts: the first may load what it needs.
    """
    mark, busy = _event(), False
    for _ in range(2):
        torch.cuda.synchronize()
        private.busy(BUSY)
        mark.record()
        call()
        busy = not mark.query()
    torch.cuda.synchronize()
    return busy


def times_on_gpu(lines: Sequence[Line], cycles: int = 2_000_000) -> dict[str, tuple[float, float]]:
    """Run a program of `cases.random_program` on a GPU, and return when each kernel ran.

    :param cycles: how long each kernel keeps its stream busy.
    :return: begin and end in milliseconds, by marks before and behind each kernel.
    """
    streams = {name: _stream() for name in STREAMS}
    events: dict[str, Any] = {}
    marks: dict[str, list[Any]] = {}
    zero = _event(enable_timing=True)
    torch.cuda.synchronize()
    zero.record()
    for kind, *rest in lines:
        if kind == "kernel":
            marks[rest[0]] = [_event(enable_timing=True) for _ in range(2)]
            with torch.cuda.stream(streams[rest[1]]):
                marks[rest[0]][0].record()
                private.busy(cycles)
                marks[rest[0]][1].record()
        elif kind == "record":
            events.setdefault(rest[1], _event()).record(streams[rest[0]])
        elif kind == "wait":
            if rest[1] in events:
                streams[rest[0]].wait_event(events[rest[1]])
        elif kind == "stream":
            streams[rest[0]].synchronize()
        elif kind == "event":
            if rest[0] in events:
                events[rest[0]].synchronize()
        else:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return {
        name: (zero.elapsed_time(begin), zero.elapsed_time(end))
        for name, (begin, end) in marks.items()
    }
