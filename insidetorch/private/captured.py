"""Captured programs: graphs of TorchScript, how it runs them, and passes over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from insidetorch.private.name import Name

_PARSE_IR = Name("torch._C.parse_ir")
_LAST_GRAPH = Name("torch._C._last_executed_optimized_graph")
_PROFILED_RUNS = Name("torch._C._jit_get_num_profiled_runs")
_FUSES_ON_CPU = Name("torch._C._jit_can_fuse_on_cpu")
_PROFILING_EXECUTOR = Name("torch._C._jit_set_profiling_executor")
_PROFILING_MODE = Name("torch._C._jit_set_profiling_mode")
_CSE = Name("torch._C._jit_pass_cse")
_REWRITE = Name("torch._C._jit_pass_custom_pattern_based_rewrite_graph")
_FX_TRACING = Name("torch.fx._symbolic_trace.is_fx_tracing")
_FX_SYMBOLIC = Name("torch.fx._symbolic_trace.is_fx_symbolic_tracing")


def parse_graph(text: str) -> Any:
    """Return the graph of TorchScript that a text describes, as `print(function.graph)` writes it.

    `torch._C.parse_ir`.
    """
    return _PARSE_IR.get()(text)


def last_run_graph() -> Any:
    """Return the graph that TorchScript ran last on this thread, as it was optimised.

    `torch._C._last_executed_optimized_graph`.
    """
    return _LAST_GRAPH.get()()


def profiled_runs() -> int:
    """Return how many calls TorchScript watches before it optimises a graph.

    `torch._C._jit_get_num_profiled_runs`.
    """
    return int(_PROFILED_RUNS.get()())


def fuses_on_cpu() -> bool:
    """Tell whether TorchScript would fuse operators on the CPU. `torch._C._jit_can_fuse_on_cpu`."""
    return bool(_FUSES_ON_CPU.get()())


@contextmanager
def older_executor() -> Iterator[None]:
    """Let functions that are first called inside the block run as before profiling came.

    `torch._C._jit_set_profiling_executor` and `_jit_set_profiling_mode`.
    """
    executor, mode = _PROFILING_EXECUTOR.get(), _PROFILING_MODE.get()
    before = executor(False), mode(False)
    try:
        yield
    finally:
        executor(before[0])
        mode(before[1])


def merge_equal(graph: Any) -> Any:
    """Return a copy of a graph in which equal nodes are one. `torch._C._jit_pass_cse`."""
    copy = graph.copy()
    _CSE.get()(copy)
    return copy


def rewrite_graph(graph: Any, pattern: str, replacement: str) -> Any:
    """Return a copy of a graph with each match of a pattern replaced; both are texts of graphs.

    `torch._C._jit_pass_custom_pattern_based_rewrite_graph`.
    """
    copy = graph.copy()
    _REWRITE.get()(pattern, replacement, copy)
    return copy


def capture_questions() -> dict[str, Callable[[], bool]]:
    """Return the functions that say whether the program is being captured, by name.

    `torch.fx._symbolic_trace.is_fx_tracing` and `is_fx_symbolic_tracing`; the others are public.
    """
    import torch

    return {
        "is_fx_tracing": _FX_TRACING.get(),
        "is_fx_symbolic_tracing": _FX_SYMBOLIC.get(),
        "is_scripting": torch.jit.is_scripting,  # type: ignore[attr-defined]
        "is_tracing": torch.jit.is_tracing,  # type: ignore[attr-defined]
        "is_compiling": torch.compiler.is_compiling,
        "is_exporting": torch.compiler.is_exporting,
    }
