"""What the CPU side of PyTorch does, seen from outside: chunks, threads, faults, limits, logs."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from insidetorch.errors import BookError
from insidetorch.facts import tool
from insidetorch.processes import last_line, python_path, run
from miniatures.cpu_performance.parallel_for import Chunk

_LOOPS = r"""
#include <cstring>
#include <cstdint>
#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#define EACH __attribute__((target_clones("avx512f", "avx2", "default")))
static void streamed(float* to, const float* from, int64_t n) {
  const __m128 one = _mm_set1_ps(1);
  for (int64_t i = 0; i < n; i += 4)
    _mm_stream_ps(to + i, _mm_add_ps(_mm_loadu_ps(from + i), one));
  _mm_sfence();
}
#else
#define EACH
static void streamed(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] + 1;
}
#endif
EACH static void shifted(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] + 1;
}
EACH static int64_t mixed(const int64_t* from, int64_t n) {
  int64_t all = 0;
  for (int64_t i = 0; i < n; ++i) all ^= from[i];
  return all;
}
extern "C" int64_t moved(int64_t way, float* to, const float* from, int64_t n, int64_t times) {
  int64_t all = 0;
  for (int64_t i = 0; i < times; ++i) {
    if (way == 0) std::memcpy(to, from, 4 * n);
    if (way == 1) shifted(to, from, n);
    if (way == 2) streamed(to, from, n);
    if (way == 3) all ^= mixed((const int64_t*)from, n / 2);
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
  }
  return all;
}
#if defined(__x86_64__) && defined(__linux__)
#include <csignal>
#include <sys/time.h>
#include <ucontext.h>
static uint8_t moments[1024][4];
static volatile int64_t count = 0;
static void look(int, siginfo_t*, void* context) {
  const auto at = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  if (count < 1024) { std::memcpy(moments[count], (const void*)at, 4); count = count + 1; }
}
extern "C" const void* sample(int64_t microseconds) {
  struct sigaction action = {};
  action.sa_sigaction = look;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (microseconds) { count = 0; sigaction(SIGPROF, &action, nullptr); }
  const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  return moments;
}
extern "C" int64_t sampled() { return count; }
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#define LOOP(NAME, ISA, REG, SET, STEP)                                            \
  extern "C" __attribute__((target(ISA))) void NAME(int64_t times) {               \
    REG a0 = SET, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0,   \
        a8 = a0, a9 = a0, x = a0;                                                  \
    for (int64_t i = 0; i < times; ++i) {                                          \
      STEP(a0) STEP(a1) STEP(a2) STEP(a3) STEP(a4)                                 \
      STEP(a5) STEP(a6) STEP(a7) STEP(a8) STEP(a9)                                 \
      __asm__ volatile("" : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4),      \
                            "+x"(a5), "+x"(a6), "+x"(a7), "+x"(a8), "+x"(a9));     \
    }                                                                              \
  }
#define S1(a) a = _mm_add_ss(_mm_mul_ss(a, x), x);
#define S4(a) a = _mm256_fmadd_ps(a, x, x);
#define S8(a) a = _mm256_fmadd_pd(a, x, x);
#define Z4(a) a = _mm512_fmadd_ps(a, x, x);
#define Z8(a) a = _mm512_fmadd_pd(a, x, x);
#define ZB(a) a = _mm512_dpbf16_ps(a, (__m512bh)x, (__m512bh)x);
LOOP(scalar_float32, "sse2", __m128, _mm_setzero_ps(), S1)
LOOP(avx2_float32, "avx2,fma", __m256, _mm256_setzero_ps(), S4)
LOOP(avx2_float64, "avx2,fma", __m256d, _mm256_setzero_pd(), S8)
LOOP(avx512_float32, "avx512f", __m512, _mm512_setzero_ps(), Z4)
LOOP(avx512_float64, "avx512f", __m512d, _mm512_setzero_pd(), Z8)
LOOP(avx512_bfloat16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), ZB)
#endif
"""
_CHUNKS = r"""
#include <ATen/Parallel.h>
#include <atomic>
extern "C" int64_t chunks(int64_t begin, int64_t end, int64_t grain, int64_t* out) {
  std::atomic<int64_t> count{0};
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    int64_t* row = out + 3 * count++;
    row[0] = at::get_thread_num(); row[1] = first; row[2] = last;
  });
  return count;
}
extern "C" int64_t nested(int64_t end, int64_t* out) {
  std::atomic<int64_t> count{0};
  at::parallel_for(0, 2, 0, [&](int64_t, int64_t) {
    at::parallel_for(0, end, 1, [&](int64_t, int64_t) { ++count; });
  });
  return count;
}
"""

_FLOP = {
    "scalar float32": 2, "avx2 float32": 16, "avx2 float64": 8,
    "avx512 float32": 32, "avx512 float64": 16, "avx512 bfloat16": 64,
}  # fmt: skip
_NEEDS = {"scalar": (), "avx2": ("avx2", "fma3"), "avx512": ("avx512_f",)}


@cache
def _library(name: str) -> Any:
    """Compile one of the sources above in a temporary folder, and load it."""
    compiler = tool("g++", "c++", "clang++")
    if compiler is None:
        raise BookError("This cell compiles C++, and there is no compiler: install g++.")
    home = Path(torch.__file__).parent
    command = [compiler, "-O3", "-std=c++20", "-fopenmp", "-shared", "-fPIC"]
    if name == "chunks":
        abi = int(torch.compiled_with_cxx11_abi())
        command += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-isystem", str(home / "include")]
        command += [f"-L{home / 'lib'}", "-ltorch_cpu", "-lc10"]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, f"{name}.cpp"), Path(folder, f"{name}.so")
        source.write_text(_CHUNKS if name == "chunks" else _LOOPS, encoding="utf-8")
        command[1:1] = [str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = re.search(r"error: .*", done.stderr)
            raise BookError(f"The C++ does not compile ({said[0] if said else done.stderr[:200]}).")
        return ctypes.CDLL(str(library))


# ── Work ────────────────────────────────────────────────────────────────────────────────────────


def real_chunks(begin: int, end: int, grain: int) -> list[Chunk]:
    """Run an empty loop under `at::parallel_for`; return the chunks PyTorch made, by thread."""
    out = (ctypes.c_int64 * (3 * max(torch.get_num_threads(), 1)))()
    count = _library("chunks").chunks(
        ctypes.c_int64(begin), ctypes.c_int64(end), ctypes.c_int64(grain), out
    )
    return sorted((out[3 * i], out[3 * i + 1], out[3 * i + 2]) for i in range(count))


def nested_chunks(end: int) -> int:
    """Return how many chunks two loops of `end` make that run inside another parallel loop."""
    return int(_library("chunks").nested(ctypes.c_int64(end), None))


@contextmanager
def threads(number: int) -> Any:
    """Give PyTorch this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def cpu_seconds(function: Callable[[], object], *, times: int = 5) -> float:
    """Return the least CPU time of one call on this thread, of `times` calls and a first.

    A thread that waits for a core that another process has is not charged for the wait.
    """
    return _least(function, times, time.thread_time)


def wall_seconds(function: Callable[[], object], *, times: int = 9) -> float:
    """Return the least time of one call by the clock on the wall, of `times` calls and a first."""
    return _least(function, times, time.perf_counter)


def _least(function: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    """Return the least time of a call by a clock; the first of `times` + 1 calls does not count."""
    least = float("inf")
    for attempt in range(times + 1):
        start = clock()
        function()
        if attempt:
            least = min(least, clock() - start)
    return least


def faults(function: Callable[[], object]) -> int:
    """Return how many pages the kernel had to supply while `function` ran."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = function()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    del kept
    return after - before


def large_pages() -> bool:
    """Say whether Linux supplies pages of 2 MiB without being asked."""
    asks = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return asks.exists() and "[always]" in asks.read_text(encoding="utf-8")


def in_process(code: str, *, own: bool = False, **environment: str) -> Any:
    """Run Python in a process of its own, and return what it assigned to ``answer``.

    The process starts with this environment, without the variables that set threads or kernels.
    ``torch`` is imported, and so is everything in this module. Without variables the process is a
    fork of one that has imported torch and done nothing else, which saves the import.

    :param own: start the interpreter anew, so that it inherits what this thread is set to.
    """
    if not own and not environment:
        return _forked(code)
    head = "import json, os, sys, torch\nfrom miniatures.cpu_performance.watch import *\n"
    said = _run(f"{head}{code}\nprint(json.dumps(answer))", environment)
    return json.loads(said.splitlines()[-1])


_SERVER = """
import json, os, sys, traceback, torch
from miniatures.cpu_performance.watch import *
say, nothing = os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 1)
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        try:
            os.dup2(nothing, 0)
            space = dict(globals())
            exec(request["code"], space)
            found = {"answer": space["answer"]}
        except BaseException:
            found = {"error": traceback.format_exc()}
        with open(request["path"], "w") as file:
            json.dump(found, file)
        os._exit(0)
    os.waitpid(child, 0)
    print("done", file=say, flush=True)
"""
_ONE_AT_A_TIME = threading.Lock()


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that is forked; it ends when its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER], env=_environment({}), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    atexit.register(_stop, process)
    return process


def _stop(process: subprocess.Popen[str]) -> None:
    """End the process that is forked, and wait for it."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


def _forked(code: str) -> Any:
    """Run code in a fork of a process that has imported torch."""
    with _ONE_AT_A_TIME, tempfile.TemporaryDirectory() as folder:
        process, path = _server(), Path(folder, "answer.json")
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"code": code, "path": str(path)}) + "\n")
        process.stdin.flush()
        done = process.stdout.readline()
        found = json.loads(path.read_text(encoding="utf-8")) if done and path.exists() else {}
    if "answer" not in found:
        said = last_line(found.get("error", "it ended early"))
        raise BookError(f"The process failed ({said}); run the code by itself.")
    return found["answer"]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what sets threads or kernels, and with `more`."""
    ours = re.compile(r"(OMP|MKL|GOMP|KMP|ONEDNN|DNNL|ATEN|MALLOC|GLIBC|THP)_")
    env = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return env | {"PYTHONPATH": python_path(), **more}


def _run(code: str, environment: Mapping[str, str]) -> str:
    env = _environment(environment)
    done = run([sys.executable, "-u", "-c", code], env=env, seconds=600)
    if done.returncode:
        raise BookError(f"The process failed ({last_line(done.stderr)}); run the code by itself.")
    return done.stdout


def tasks() -> int:
    """Return how many threads this process has."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def first_start(name: str, count: int, limit: int = 32769) -> tuple[int, int]:
    """Return at how many elements an operator starts threads, and how many threads.

    A forked child looks, so that each operator finds a process whose pool has not started.

    :param name: an operator of one tensor with ``out=``.
    :param count: where to begin; one element is added at a time, up to `limit`.
    """
    x, out = torch.rand(limit), torch.rand(limit)
    inlet, outlet = os.pipe()
    child = os.fork()
    if not child:
        try:
            before, run = tasks(), getattr(torch, name)
            while tasks() == before and count < limit:
                count += 1
                run(x[:count], out=out[:count])
            os.write(outlet, json.dumps([count, tasks() - before]).encode())
        finally:
            os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet) as said:
        elements, started = json.loads(said.read())
    os.waitpid(child, 0)
    return elements, started


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────


WAYS = {"copy": (0, 1, 2), "read": (3,)}
"""The loops of ``moved`` above: three that read and write, one that only reads."""


def copy_rate(size: int, kind: str = "copy") -> float:
    """Return bytes per second of the fastest of our loops over arrays of `size` bytes, one core.

    :param kind: ``"copy"`` counts what is read and written, ``"read"`` what is read.
    """
    source, target = torch.ones(size // 4), torch.ones(size // 4)
    times, address = max(1, 2**24 // size), ctypes.c_void_p
    run = _library("loops").moved
    rates = []
    for way in WAYS[kind]:
        given = (
            ctypes.c_int64(way), address(target.data_ptr()), address(source.data_ptr()),
            ctypes.c_int64(size // 4), ctypes.c_int64(times),
        )  # fmt: skip
        rates.append(size * times / cpu_seconds(partial(run, *given), times=3))
    return max(rates) * (2 if kind == "copy" else 1)


def peaks() -> dict[str, float]:
    """Return floating-point operations per second of loops that only multiply and add, one core.

    Ten independent registers hide the latency. Instruction sets that the CPU lacks are left out.
    """
    has = capabilities()
    found = {}
    for name, flop in _FLOP.items():
        needs = [*_NEEDS[name.split()[0]], *(["avx512_bf16"] if "bfloat" in name else [])]
        if all(has.get(need) for need in needs) and has.get("architecture") == "x86_64":
            loop = getattr(_library("loops"), name.replace(" ", "_"))
            times = ctypes.c_int64(500_000)
            found[name] = 10 * flop * 500_000 / cpu_seconds(lambda: loop(times))  # noqa: B023
    return found


def registers(function: Callable[[], object], *, seconds: float = 0.2) -> int:
    """Return the bits of the registers that a call works on: of most instructions with vectors.

    A timer stops the program every 2 ms of CPU time and looks at the next instruction: its first
    bytes tell 512 bits (EVEX) from 256 (VEX). Without either: 128, which older ones have at most.
    """
    library = _library("loops")
    library.sample.restype = ctypes.c_void_p
    library.sampled.restype = ctypes.c_int64
    function()
    end = time.process_time() + seconds
    try:
        moments = library.sample(ctypes.c_int64(2000))
        while time.process_time() < end:
            function()
    finally:
        library.sample(ctypes.c_int64(0))
    size = 4 * library.sampled()
    code = ctypes.string_at(moments, size)
    found = Counter(_width(code[place : place + 4]) for place in range(0, size, 4))
    found[128] += 0
    return max((width for width in found if width), key=lambda width: found[width])


def _width(code: bytes) -> int:
    """Return the bits of an instruction's registers by its first bytes; 0 for no vector."""
    if code[0] == 0x62:
        return 128 << (code[3] >> 5 & 3)
    if code[0] in (0xC4, 0xC5):
        return 256 if code[2 if code[0] == 0xC4 else 1] & 4 else 128
    return 0


def capabilities() -> dict[str, Any]:
    """Return what PyTorch knows of the CPU: instruction sets, cores, caches."""
    return dict(torch.cpu.get_capabilities())


# ── Kernels ─────────────────────────────────────────────────────────────────────────────────────


def aten_calls(function: Callable[[], object]) -> list[str]:
    """Return the names of the operators that a call runs, without ``aten::``, in order."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        function()
    names = [event.name for event in found.events()]
    return [name.removeprefix("aten::") for name in names if name.startswith("aten::")]


def onednn(code: str, **environment: str) -> list[dict[str, str]]:
    """Run `code` in a process under oneDNN's log, and return its lines on primitives.

    Where `code` turns MKL's log on, a line of that has the engine ``MKL`` and MKL's name for it.

    :param code: may print; a line that starts with ``#`` becomes the `mark` of what follows.
    """
    done = _run(f"import torch\n{code}", {"ONEDNN_VERBOSE": "2", **environment})
    lines, mark = [], ""
    for line in done.splitlines():
        part = line.split(",")
        if line.startswith("#"):
            mark = line[1:].strip()
        product = re.match(r"MKL_VERBOSE (\w+)\(", line)
        if product:
            lines.append({"what": "exec", "engine": "MKL", "primitive": product[1], "mark": mark})
        if len(part) > 9 and part[2] == "primitive" and part[3] != "info":
            keys = ("what", "engine", "primitive", "implementation", "kind", "memory")
            found = dict(zip(keys, part[3:9], strict=True))
            lines.append({**found, "mark": mark, "problem": part[-2], "ms": part[-1]})
    return lines


def layouts(line: Mapping[str, str]) -> list[str]:
    """Return the memory formats in a line of oneDNN's log: ``src:abcd``, ``dst:aBcd16b``."""
    return [
        f"{part.split(':')[0]}:{part.split(':')[4]}"
        for part in line["memory"].split()
        if part.count(":") > 4
    ]
