"""Whose kernel a call runs: MKL's, oneDNN's or ATen's, and with which instructions."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn import functional

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


TYPES = ("float64", "float32", "bfloat16", "float16", "int64", "int32", "int8")


def work(side: int = 128) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return calls by operator and type: products, convolutions, attention, a sum, `exp`."""
    torch.manual_seed(0)
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    for name in TYPES:
        kind = getattr(torch, name)
        a = torch.randint(0, 3, (side, side)).to(kind)
        batch = a.expand(4, side, side).contiguous()
        calls: dict[str, Callable[[], Any]] = {
            "a @ b": lambda a=a: a @ a,
            "a @ vector": lambda a=a: a @ a[0],
            "bmm": lambda batch=batch: batch @ batch,
        }
        if kind.is_floating_point:
            image = torch.rand(4, 16, 24, 24).to(kind)
            weight = torch.rand(16, 16, 3, 3).to(kind)
            q = torch.rand(1, 2, 64, 32).to(kind)
            calls |= {
                "conv2d": lambda i=image, w=weight: functional.conv2d(i, w),
                "conv2d, one small image": lambda i=image, w=weight: functional.conv2d(i[:1], w),
                "attention": lambda q=q: functional.scaled_dot_product_attention(q, q, q),
                "exp": lambda a=a: a.exp(),
            }
        for operator, call in calls.items():
            found.setdefault(operator, {})[name] = call
    return found


def kernels(
    operators: Sequence[str] = (), types: Sequence[str] = TYPES
) -> dict[str, dict[str, list[str]]]:
    """Return whose kernel runs, by operator and type, on one thread.

    :param operators: some of those of `work`; all unless given.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            return {
                operator: {name: list(who(call)) for name, call in calls.items() if name in types}
                for operator, calls in work().items()
                if not operators or operator in operators
            }
    finally:
        torch.set_num_threads(before)


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
