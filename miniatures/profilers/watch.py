"""Watching PyTorch: an observer registered through the C++ API, and real profiles as trees."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.profiler import profile

from insidetorch.errors import BookError
from insidetorch.facts import tool
from miniatures.profilers.tracer import Tracer

OBSERVER = r"""
#include <ATen/record_function.h>
using Begin = void (*)(const char* name, int scope, int64_t sequence);
using End = void (*)();
static Begin begin_;
static End end_;

static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& call) {
  begin_(call.name(), static_cast<int>(call.scope()), call.seqNr());
  return nullptr;
}
static void finish(const at::RecordFunction&, at::ObserverContext*) { end_(); }

extern "C" uint64_t watch(Begin begin, End end) {
  begin_ = begin;
  end_ = end;
  return at::addThreadLocalCallback(at::RecordFunctionCallback(&start, &finish));
}
extern "C" void unwatch(uint64_t handle) { at::removeCallback(handle); }
"""
"""All of the C++: two functions that hand on what `RecordFunction` says."""

TWO_PROFILES = """
import json, torch
from torch.profiler import profile
x = torch.ones(4)
try:
    with profile() as outer:
        with profile() as inner:
            x.add(x)
        x.mul(x)
    print(json.dumps([len(outer.events()), len(inner.events())]))
except RuntimeError as error:
    print(json.dumps(str(error)))
"""
"""A program with one profile in another; it prints the events of both, or the error."""

RECORDED = """
import json, tempfile, torch
from pathlib import Path
from torch.profiler import ExecutionTraceObserver, profile
layer, x = torch.nn.Linear(4, 3), torch.ones(2, 4)
layer(x).relu().sum().backward()
with profile():
    layer(x)  # so the numbers of the two files do not begin alike
with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder, "et.json"))
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(execution_trace_observer=observer) as seen:
        layer(x).relu().sum().backward()
    nodes = json.loads(Path(path).read_text())["nodes"]
    seen.export_chrome_trace(str(Path(folder, "k.json")))
    lines = json.loads(Path(folder, "k.json").read_text())["traceEvents"]
by_id = {node["id"]: node for node in nodes}
nodes = [n for n in sorted(nodes, key=lambda n: n["id"]) if "pytorch|" not in n["name"]]
lines = [e for e in lines if e.get("cat") in ("cpu_op", "user_annotation")]
rf_ids = [next(a["value"] for a in n["attrs"] if a["name"] == "rf_id") for n in nodes]
ids_of = lambda key: sorted([e["name"], e["args"][key]] for e in lines)
print(json.dumps({"nodes": [n["name"] for n in nodes],
    "lines": [e["name"] for e in sorted(lines, key=lambda e: (e["ts"], -e["dur"]))],
    "rf_ids": sorted([n["name"], i] for n, i in zip(nodes, rf_ids)),
    "record_ids": ids_of("Record function id"), "external_ids": ids_of("External id"),
    "addmm": next(n for n in nodes if n["name"] == "aten::addmm")["inputs"]}))
"""
"""A step under the profiler and the execution trace's observer; it prints the names of both."""

_BEGIN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64)
_END = ctypes.CFUNCTYPE(None)


@cache
def _library() -> Any:
    """Compile `OBSERVER` in a temporary folder, and load it."""
    compiler = tool("g++", "c++", "clang++")
    if compiler is None:
        raise BookError("This cell compiles C++, and there is no compiler: install g++.")
    home = Path(torch.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "observer.cpp"), Path(folder, "observer.so")
        source.write_text(OBSERVER, encoding="utf-8")
        command = [compiler, str(source), "-o", str(library), "-std=c++20", "-shared", "-fPIC"]
        command += [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
        command += ["-isystem", str(home / "include"), f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = re.search(r"error: .*", done.stderr)
            raise BookError(f"The C++ does not compile ({said[0] if said else done.stderr[:200]}).")
        loaded = ctypes.CDLL(str(library))
    loaded.watch.restype = ctypes.c_uint64
    loaded.unwatch.argtypes = [ctypes.c_uint64]
    return loaded


@contextmanager
def observing(tracer: Tracer) -> Iterator[Tracer]:
    """Tell a tracer of all that PyTorch announces on this thread inside the block.

    :raises BookError: there is no C++ compiler, or it refuses the observer.
    """

    def begin(name: bytes, scope: int, sequence: int) -> None:
        tracer.begin(name.decode(), scope, sequence)

    library, starts, ends = _library(), _BEGIN(begin), _END(tracer.end)
    handle = library.watch(starts, ends)
    try:
        yield tracer
    finally:
        library.unwatch(handle)


def chrome_of(profiled: Any) -> dict[str, Any]:
    """Return what ``export_chrome_trace`` writes of a profile that has ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(path))
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content | {"bytes": path.stat().st_size}


def outline_of(profiled: Any) -> list[tuple[int, str]]:
    """Return depth and name of the events of a profile, as PyTorch nested them."""
    return [(_depth(event), event.name) for event in profiled.events()]


def _depth(event: Any) -> int:
    return 0 if event.cpu_parent is None else 1 + _depth(event.cpu_parent)


def profiled(run: Callable[[], object], **options: Any) -> Any:
    """Run once to warm up, then under `torch.profiler.profile` with these options."""
    run()
    with profile(**options) as seen:
        run()
    return seen


class Calls(profile):
    """A profiler that notes what its schedule makes it do, and records nothing."""

    def __init__(self, steps: Any) -> None:
        self.calls: list[str] = []
        super().__init__(schedule=steps, on_trace_ready=self._ready)
        self.record_steps = False

    def prepare_trace(self) -> None:
        self.calls.append("prepare")

    def start_trace(self) -> None:
        self.calls.append("start")

    def stop_trace(self) -> None:
        self.calls.append("stop")

    def _ready(self, _: Any) -> None:
        self.calls.append("ready")
