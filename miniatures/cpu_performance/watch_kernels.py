"""Whose kernel a call runs: MKL's, oneDNN's or ATen's, and with which instructions."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from miniatures.cpu_performance.watch import aten_calls, cpu_seconds

Who = tuple[str, str]
"""A library, ``MKL``, ``oneDNN`` or ``ATen``, and its name for the kernel."""


def who(function: Callable[[], object]) -> Who:
    """Return whose kernel does the work of a call, from the libraries' own logs.

    What neither log names is ATen's own loop.
    """
    lines = _logged(function)
    dnn = [p for p in (line.split(",") for line in lines) if p[2:4] == ["primitive", "exec"]]
    names = [p[6] for p in dnn if p[5] != "reorder"]
    if names:
        return "oneDNN", names[-1]
    mkl = [found[1] for line in lines if (found := re.match(r"MKL_VERBOSE (\w+)\(", line))]
    if mkl:
        return "MKL", mkl[-1]
    return "ATen", "its own loop"


def copies(function: Callable[[], object]) -> int:
    """Return how many copies run inside a call: ATen's, and the reorders in oneDNN's log."""
    parts = [line.split(",") for line in _logged(function)]
    reorders = sum(p[2:4] == ["primitive", "exec"] and p[5] == "reorder" for p in parts)
    return reorders + aten_calls(function).count("copy_")


def lapack_calls(function: Callable[[], object]) -> Counter[str]:
    """Return how often MKL ran each of its functions in a call, from its log."""
    names = (re.match(r"MKL_VERBOSE (\w+)\(", line) for line in _logged(function))
    return Counter(found[1] for found in names if found)


def longest(function: Callable[[], object]) -> str:
    """Return the operator in a call that takes the most time by itself, without ``aten::``."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        function()
    most = max(found.key_averages(), key=lambda event: event.self_cpu_time_total)
    return str(most.key).removeprefix("aten::")


def _logged(function: Callable[[], object]) -> list[str]:
    """Return what MKL and oneDNN print while a call runs with their logs on."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as log:
        screen = os.dup(1)
        os.dup2(log.fileno(), 1)
        try:
            with ExitStack() as both:
                both.enter_context(torch.backends.mkldnn.verbose(1))  # type: ignore[no-untyped-call]
                both.enter_context(torch.backends.mkl.verbose(1))  # type: ignore[no-untyped-call]
                function()
        finally:
            os.dup2(screen, 1)
            os.close(screen)
        log.seek(0)
        return log.read().decode(errors="replace").splitlines()


TYPES = ("float64", "float32", "bfloat16", "float16", "int64")


def work(side: int = 128) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return calls by operator and type: products, convolutions, attention."""
    torch.manual_seed(0)
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    for name in TYPES:
        kind = getattr(torch, name)
        a = torch.randint(0, 3, (side, side)).to(kind)
        calls: dict[str, Callable[[], Any]] = {
            "a @ b": partial(torch.mm, a, a),
            "a @ vector": partial(torch.mv, a, a[0]),
        }
        if kind.is_floating_point:
            image, weight = torch.rand(4, 16, 24, 24).to(kind), torch.rand(16, 16, 3, 3).to(kind)
            q = torch.rand(1, 2, 64, 32).to(kind)
            calls |= {
                "conv2d": partial(functional.conv2d, image, weight),
                "conv2d, small": partial(functional.conv2d, image[:1], weight),
                "attention": partial(functional.scaled_dot_product_attention, q, q, q),
            }
        for operator, call in calls.items():
            found.setdefault(operator, {})[name] = call
    return found


def kernels() -> dict[str, dict[str, list[str]]]:
    """Return whose kernel runs, by operator and type, on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            return {
                operator: {name: list(who(call)) for name, call in calls.items()}
                for operator, calls in work().items()
            }
    finally:
        torch.set_num_threads(before)


def speeds() -> dict[str, float]:
    """Return seconds of a few calls on arrays that fit a cache, on one thread."""
    torch.set_num_threads(1)
    x, out, m = torch.rand(4096), torch.empty(4096), torch.rand(256, 256)
    calls: dict[str, Callable[[], Any]] = {
        "add": partial(torch.add, x, 1, out=out),
        "sigmoid": partial(torch.sigmoid, x, out=out),
        "softmax, dim 1": partial(torch.softmax, m, 1),
        "softmax, dim 0": partial(torch.softmax, m, 0),
        "cumsum": partial(torch.cumsum, m, 1),
    }
    return {name: cpu_seconds(call, times=30) for name, call in calls.items()}


LIMITS: Mapping[str, Mapping[str, str]] = {
    "all it has": {},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "SSE": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
}
"""Environments that hold the three libraries back, each by its own switch."""
