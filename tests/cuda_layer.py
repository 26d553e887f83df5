"""A layer of `torch.cuda` for a machine without a GPU, on which the bodies of CUDA cells run.

It answers as the API does: every call is bound to the signature of the function that it stands
for, a name that PyTorch lacks stays missing, events have an order and milliseconds, a capture
refuses what waits. Tensors on ``cuda`` are meta tensors that say they are on ``cuda``: shapes,
types and devices are checked, and nothing is computed. What a cell prints on it means nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

DEVICE = torch.device("cuda", 0)
PROPERTIES = {
    "name": "no GPU", "major": 8, "minor": 6, "multi_processor_count": 82, "warp_size": 32,
    "total_memory": 24 * 2**30, "max_threads_per_multi_processor": 1536, "gcnArchName": "",
    "regs_per_multiprocessor": 65536, "L2_cache_size": 6 * 2**20, "uuid": "", "clock_rate": 1,
    "shared_memory_per_block": 48 * 2**10, "shared_memory_per_multiprocessor": 100 * 2**10,
    "shared_memory_per_block_optin": 99 * 2**10, "is_integrated": 0, "is_multi_gpu_board": 0,
    "memory_clock_rate": 1, "memory_bus_width": 1, "max_threads_per_block": 1024,
}  # fmt: skip


class Refused(RuntimeError):
    """What CUDA would refuse."""


class _State:
    capturing = False


def bound(original: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return `answer`, which takes only what `original` takes."""
    signature = inspect.signature(original)

    def call(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        return answer(*args, **kwargs)

    return call


def _is_cuda(value: Any) -> bool:
    return isinstance(value, int | str | torch.device) and str(value).startswith("cuda")


def _wait(what: str) -> None:
    if _State.capturing:
        raise Refused(f"CUDA error: operation not permitted when stream is capturing: {what}")


def _values(tensor: Tensor) -> Tensor:
    """Return ones on the CPU for a tensor without numbers."""
    return torch.ones(tensor.shape, dtype=tensor.dtype)


class Layer(TorchFunctionMode):
    """Sends what is meant for ``cuda`` to ``meta``, and has it say that it is on ``cuda``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        first = args[0] if args and isinstance(args[0], Tensor) else None
        on_gpu = first is not None and first.is_meta
        if name == "__get__":
            owner = getattr(func.__self__, "__name__", "")
            if on_gpu and owner in ("device", "is_cuda"):
                return DEVICE if owner == "device" else True
            return func(*args, **kwargs)
        if kwargs.pop("pin_memory", False):
            return func(*args, **kwargs)
        if name in ("cuda", "pin_memory") and first is not None:
            return first.to("meta") if name == "cuda" else first
        if on_gpu and name in ("item", "tolist", "__bool__", "__float__", "__int__", "cpu",
                               "numpy", "equal", "nonzero", "unique", "masked_select", "__format__",
                               "__repr__", "allclose"):  # fmt: skip
            _wait(name)
            args, kwargs = tree_map(
                lambda v: _values(v) if isinstance(v, Tensor) else v, (args, kwargs)
            )
            return func(*args, **kwargs)
        if (
            name == "to"
            and first is not None
            and (kwargs.get("device") == "cpu" or "cpu" in map(str, args[1:]))
        ):
            return _values(first) if on_gpu else func(*args, **kwargs)
        if name == "copy_" and first is not None and not on_gpu and args[1].is_meta:
            return first
        if name == "__getitem__" and on_gpu and _has_mask(args[1]):
            _wait("a mask as an index")
            return first.flatten()
        if name == "__setitem__" and on_gpu:
            return None
        send = lambda v: torch.device("meta") if _is_cuda(v) else v  # noqa: E731
        if "device" in kwargs:
            kwargs["device"] = send(kwargs["device"])
        args = tuple(send(v) for v in args)
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:  # a tensor where a number is expected is asked for it
            if "item() cannot be called on meta" not in str(error):
                raise
        _wait(name)
        given = tree_map(lambda v: _values(v) if isinstance(v, Tensor) else v, (args, kwargs))
        return func(*given[0], **{**given[1], **({"device": "cpu"} if "device" in kwargs else {})})


def _has_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype == torch.bool


class Event:
    """An event: it must be recorded, with timing, before it can be asked."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.timing, self.at = enable_timing, None

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        _wait("event.synchronize()")

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        if not (self.timing and end.timing):
            raise Refused("Both events must be created with argument 'enable_timing=True'.")
        if self.at is None or end.at is None:
            raise Refused("Both events must be recorded before calculating elapsed time.")
        return (end.at - self.at) * 1e3


class Stream:
    """A stream; the methods are those of `torch.cuda.Stream`."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = DEVICE

    def wait_stream(self, stream: Stream) -> None:
        assert isinstance(stream, Stream)

    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event

    def synchronize(self) -> None:
        _wait("stream.synchronize()")

    def query(self) -> bool:
        return True


class Graph:
    """A CUDA graph: it can be replayed after a capture, and captured once."""

    captured = False

    def replay(self) -> None:
        if not self.captured:
            raise Refused("Called CUDAGraph::replay without a preceding successful capture.")

    def reset(self) -> None:
        self.captured = False

    def pool(self) -> tuple[int, int]:
        return (0, 1)


@contextlib.contextmanager
def _graph(cuda_graph: Graph, **_: Any) -> Iterator[None]:
    if cuda_graph.captured:
        raise Refused("This CUDAGraph instance already owns a captured graph.")
    _State.capturing = True
    try:
        yield
        cuda_graph.captured = True
    finally:
        _State.capturing = False


class _Kernel:
    """A kernel in Triton's language: its arguments are bound, and it does not run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.signature = inspect.signature(function)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        assert 1 <= len(grid) <= 3 and all(isinstance(n, int) and n > 0 for n in grid), grid

        def launch(*args: Any, num_warps: int = 4, num_stages: int = 3, **kwargs: Any) -> None:
            self.signature.bind(*args, **kwargs)

        return launch


def _compiled_kernel(code: str, name: str, **_: Any) -> Callable[..., None]:
    assert re.search(rf"__global__ void {name}\(", code), f"no kernel {name} in the code"
    wanted = code[code.index(f"{name}(") :].split(")")[0].count(",") + 1

    def launch(grid: Any = (1, 1, 1), block: Any = (1, 1, 1), args: Any = None,
               shared_mem: int = 0, stream: Any = None) -> None:  # fmt: skip
        assert len(grid) == len(block) == 3 and block[0] * block[1] * block[2] <= 1024
        assert len(args) == wanted, f"{name} takes {wanted} arguments"

    return launch


class _Profile(torch.profiler.profile):
    """A profile with a kernel behind each operator of a meta tensor, as on a GPU."""

    def events(self) -> Any:
        from torch.autograd import DeviceType
        from torch.autograd.profiler_util import FunctionEvent

        seen = list(super().events())
        made = [
            FunctionEvent(
                id=n, name="kernel", thread=0, start_us=event.time_range.start,
                end_us=event.time_range.end, device_type=DeviceType.CUDA,
            )
            for n, event in enumerate(seen) if event.name.startswith("aten::")
        ]  # fmt: skip
        return seen + made

    def export_chrome_trace(self, path: str) -> None:
        import json

        super().export_chrome_trace(path)
        trace = json.loads(Path(path).read_text())
        args = {"grid": [1, 1, 1], "block": [128, 1, 1], "registers per thread": 16, "device": 0}
        first = next(e for e in trace["traceEvents"] if e.get("ph") == "X")
        trace["traceEvents"].append(
            {**first, "cat": "kernel", "name": "kernel", "pid": 0, "tid": 7, "args": args}
        )
        Path(path).write_text(json.dumps(trace))


def install() -> Layer:
    """Put the layer over `torch.cuda`; return the mode in which the cells are to run."""
    cuda = torch.cuda
    stream = Stream()
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "is_initialized": lambda: True, "init": lambda: None, "_lazy_init": lambda: None,
        "get_device_name": lambda device=None: PROPERTIES["name"],
        "get_device_capability": lambda device=None: (8, 6),
        "get_device_properties": lambda device=None: SimpleNamespace(**PROPERTIES),
        "synchronize": lambda device=None: _wait("torch.cuda.synchronize()"),
        "current_stream": lambda device=None: stream, "default_stream": lambda device=None: stream,
        "empty_cache": lambda: None, "ipc_collect": lambda: None,
        "set_sync_debug_mode": lambda debug_mode: _mode(debug_mode),
        "get_sync_debug_mode": lambda: 0, "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "is_bf16_supported": lambda including_emulation=True: True,
    }  # fmt: skip
    memory = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    for name in memory:
        answers[name] = lambda device=None: 0
    for name, answer in answers.items():
        setattr(cuda, name, bound(getattr(cuda, name), answer))
    for name in (*memory, "reset_peak_memory_stats", "empty_cache", "mem_get_info", "memory_stats",
                 "memory_snapshot", "reset_accumulated_memory_stats"):  # fmt: skip
        made = {
            "mem_get_info": lambda device=None: (2**30, 2**34),
            "memory_stats": lambda device=None: {},
            "memory_snapshot": lambda *args, **kwargs: [_segment()],
        }.get(name, answers.get(name, lambda device=None: None))
        for owner in (cuda, cuda.memory):
            setattr(owner, name, bound(getattr(owner, name), made))
    cuda.Stream, cuda.Event, cuda.CUDAGraph, cuda.graph = Stream, Event, Graph, _graph  # type: ignore
    cuda.stream = lambda stream: contextlib.nullcontext(_a_stream(stream))  # type: ignore
    cuda._compile_kernel = _compiled_kernel
    torch.Tensor.record_stream = lambda self, s: _a_stream(s) and None  # type: ignore
    torch._scaled_mm = bound(  # type: ignore[assignment]
        lambda input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None,
        use_fast_accum=False: None,
        lambda a, b, *scales, out_dtype=None, **_: torch.empty(
            a.shape[0], b.shape[1], dtype=out_dtype, device="meta"),
    )  # fmt: skip
    compile_of = torch.compile
    torch.compile = bound(compile_of, lambda model=None, **_: model or (lambda f: f))  # type: ignore
    torch.profiler.profile = _Profile  # type: ignore[misc]
    torch.testing.assert_close = bound(torch.testing.assert_close, _alike)
    try:
        import triton

        triton.jit = _Kernel
    except ImportError:
        pass
    from insidetorch.measure import timing

    timing._RUN, timing._RUNS, timing._PATIENCE = 1e-5, 3, 1e-3  # type: ignore[attr-defined]
    return Layer()


def _mode(debug_mode: int | str) -> None:
    assert debug_mode in ("default", "warn", "error", 0, 1, 2), debug_mode


def _a_stream(stream: Any) -> Any:
    assert stream is None or isinstance(stream, Stream), stream
    return stream


def _segment() -> dict[str, Any]:
    block = {"size": 512, "requested_size": 512, "address": 0, "state": "active_allocated"}
    return {
        "device": 0, "address": 0, "total_size": 2**21, "allocated_size": 512, "active_size": 512,
        "stream": 0, "segment_type": "small", "blocks": [block],
    }  # fmt: skip


def _alike(actual: Any, expected: Any, **_: Any) -> None:
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
