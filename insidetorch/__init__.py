"""The book's toolkit: what a cell of a chapter calls to show, state, measure and replay."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_HOME = {
    "BookError": "errors",
    "Display": "display",
    "autograd_graph": "show.graphs",
    "bench": "measure.timing",
    "bench_table": "measure.timing",
    "captioned": "show.figures",
    "claim": "claims",
    "copy_bandwidth": "measure.cpu_beside_gpu",
    "cpp_stack": "watch.stacks",
    "figure": "show.figures",
    "graph": "show.figures",
    "listing": "show.listings",
    "matmul_peak": "measure.cpu_beside_gpu",
    "measured": "measure.cpu_beside_gpu",
    "private": "private",
    "ptx": "gpu.without_gpu",
    "record_data": "gpu.run_or_replay",
    "replay": "show.replays",
    "settled": "claims",
    "side_by_side": "measure.cpu_beside_gpu",
    "source": "show.excerpts",
    "style": "show.figures",
    "table": "display",
    "timeline": "show.timelines",
    "trace_ops": "watch.ops",
    "triton_code": "gpu.without_gpu",
    "verdict": "claims",
    "warns": "claims",
}
__all__ = sorted(_HOME)

try:
    __version__ = version("insidetorch")
except PackageNotFoundError:
    __version__ = "0+checkout"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'insidetorch' has no attribute {name!r}")
    module = import_module(f"insidetorch.{_HOME[name]}")
    value = module if name == _HOME[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def load_ipython_extension(shell: Any) -> None:
    """Make the shell record warnings and know ``%%cuda``; importing the package under IPython does.

    :param shell: the running IPython shell.
    """
    from insidetorch import claims
    from insidetorch.gpu import run_or_replay as cuda

    claims.record_warnings()
    cuda.register()


def _join_ipython() -> None:
    from insidetorch.display import in_ipython

    if in_ipython():
        load_ipython_extension(None)


_join_ipython()
