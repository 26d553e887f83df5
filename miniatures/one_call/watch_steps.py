"""Every machine instruction of a Python statement, from PyTorch's first to its last."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import torch

from insidetorch.errors import BookError
from insidetorch.private.symbols import symbolize
from insidetorch.watch.frames import native_frame
from miniatures.one_call.recorded_steps import replay

TRACE_ME, GO_ON, KILL, ONE_STEP, READ_REGISTERS, GENERAL = 0, 7, 8, 9, 0x4204, 1
"""Requests of Linux's system call ptrace, and the set of registers to read."""

COUNTERS = {"x86_64": 16, "aarch64": 32}
"""Which of the general registers says where the next instruction is."""

REFUSED = 77
"""Exit status of the process of its own where ptrace is forbidden."""

WARM_UP = 100
"""Calls before the one that is counted, so that caches are filled and nothing happens first."""


@dataclass(frozen=True)
class Step:
    """One instruction that was executed.

    :param layer: part of PyTorch it belongs to; ``interpreter``, or the library, outside of it.
    :param function: the function whose code it is, without arguments.
    :param code: the instruction in assembly; empty unless it was asked for.
    """

    layer: str
    function: str
    code: str = ""


PARTS = {
    "Python": ("interpreter",),
    "binding": ("Python binding", "libtorch", "libtorch_python"),
    "dispatcher": ("dispatcher",),
    "autograd": ("autograd kernel", "autograd node"),
    "ATen": ("ATen kernel", "libtorch_cpu"),
    "c10": ("core library", "libc10"),
    "C library": (),
}
"""Parts of a call, from the top down, and the layers in each. The last takes what is left."""


def part(step: Step) -> str:
    """Return the part of the call that an instruction belongs to."""
    return next((name for name, layers in PARTS.items() if step.layer in layers), "C library")


def spans(trace: Sequence[Step], name: str) -> list[tuple[int, int]]:
    """Return where a trace is in a part: number of the first instruction, and how many follow."""
    runs: list[tuple[int, int]] = []
    for number, step in enumerate(trace):
        if part(step) != name:
            continue
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return runs


def first(trace: Sequence[Step], function: str) -> int:
    """Return the number of the first instruction of a function, by the end of its name.

    :raises BookError: the trace never gets there.
    """
    for number, step in enumerate(trace):
        if step.function.endswith(function):
            return number
    raise BookError(f"The trace has no instruction of {function}: name a function that it runs.")


def runs(trace: Sequence[Step], function: str) -> bool:
    """Tell whether a trace has an instruction of a function, by the end of its name."""
    return any(step.function.endswith(function) for step in trace)


def lock_given_back(trace: Sequence[Step]) -> list[tuple[int, int]]:
    """Return the spans in which Python's lock is given back: first instruction, and the end."""
    free, begun = list[tuple[int, int]](), -1
    for number, step in enumerate(trace):
        if begun < 0 and step.function == "PyEval_SaveThread":
            begun = number
        elif begun >= 0 and re.fullmatch(r"PyEval_(Restore|Acquire)Thread|take_gil", step.function):
            free.append((begun, number))
            begun = -1
    return free


def way(trace: Sequence[Step]) -> list[str]:
    """Return which of the functions that the miniature has too a call passes, in order."""
    names = ("THPVariable_add", "call", "VariableType::add_Tensor", "redispatch",
             "wrapper_CPU_add_Tensor", "meta", "add_kernel")  # fmt: skip
    passed = (
        name
        for step in trace
        for name in names
        if step.function.endswith("::" + name) and not step.function.startswith("c10")
    )
    return list(dict.fromkeys(passed))


def arithmetic(trace: Sequence[Step]) -> list[str]:
    """Return the instructions that were disassembled and multiply or add floating-point numbers."""
    pattern = r"v?(fn?m(add|sub)\d*|mul|add)[ps][sdh]\b|f(mla|madd|add|mul)\b"
    return [step.code for step in trace if re.match(pattern, step.code)]


def steps(
    *statements: str,
    setup: str = "",
    decode: str = "",
    environment: Mapping[str, str] | None = None,
) -> list[list[Step]]:
    """Run statements one after the other, one machine instruction at a time; one list for each.

    A process of its own, which uses one thread, runs all of them a few hundred times; then a
    debugger's system call stops it after every instruction of one more run. What Python does
    before PyTorch's first instruction and after its last is left out. A result that is called `r`
    is dropped before the next statement, uncounted, unless that is ``del r``.

    :param setup: run once before.
    :param decode: functions whose name matches this regular expression are disassembled.
    :param environment: variables set for the process.
    :raises BookError: the statements fail, or the system does not let a process be stepped and
        there is no recording of them; if there is one, a line is printed that says so.
    """
    asked = request(*statements, setup=setup, decode=decode)
    try:
        told = stepped(asked, environment)
    except CannotStep as problem:
        told = replay(asked, environment, str(problem))
    kinds = [Step(*kind) for kind in told["kinds"]]
    return [[kinds[number] for number in trace] for trace in told["traces"]]


class CannotStep(Exception):
    """The system does not let a process be stepped; the message says why."""


def request(*statements: str, setup: str, decode: str) -> str:
    """Return what the process of its own is asked, as text."""
    return json.dumps({"statements": statements, "setup": setup, "decode": decode})


def stepped(asked: str, environment: Mapping[str, str] | None) -> dict[str, Any]:
    """Run a request in a process of its own and return what it told.

    :raises CannotStep: the system does not allow it.
    :raises BookError: the statements fail.
    """
    if platform.system() != "Linux" or platform.machine() not in COUNTERS:
        raise CannotStep("that takes Linux on x86-64 or 64-bit Arm")
    widest = (environment or {}).get("ATEN_CPU_CAPABILITY") == "avx512"
    if widest and torch.backends.cpu.get_cpu_capability() != "AVX512":
        raise CannotStep("this processor has no AVX-512")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "miniatures.one_call.watch_steps"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **(environment or {})},
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == REFUSED:
        raise CannotStep("the system forbids ptrace")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BookError(f"The statements could not be stepped through ({reason}): correct them.")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def threads_after(*sizes: int, call: str = "add(a, a)") -> list[int]:
    """Call a function of torch for tensors of these sizes in turn, with two threads allowed.

    Return how many threads the process has got for it, each time.

    :param call: what to call, with `a` for the tensor.
    """
    program = f"""
import os, torch
torch.set_num_threads(2)
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
for size in {sizes}:
    a = torch.empty(size)
    torch.{call}
    print(count() - before)
"""
    if platform.system() != "Linux":
        raise BookError("threads_after(…) counts the threads that Linux shows in /proc: use Linux.")
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


# ── In the process of its own ───────────────────────────────────────────────────────────────────


def _main() -> None:
    asked = json.load(sys.stdin)
    torch.set_num_threads(1)
    names: dict[str, Any] = {"torch": torch}
    exec(asked["setup"], names)
    code = [compile(statement, statement, "exec") for statement in asked["statements"]]
    for _ in range(WARM_UP):
        for one in code:
            _clear(one, names)
            exec(one, names)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # tracer and traced take turns
    child = os.fork()
    if child == 0:
        _child(code, names)
    traces = list(_follow(child, len(code)))
    json.dump(_told(traces, asked["decode"]), sys.stdout)


def _child(code: Sequence[Any], names: dict[str, Any]) -> None:
    """Be stepped: a signal before each statement and one after it tell the parent where it is."""
    if ctypes.CDLL(None).ptrace(TRACE_ME, 0, None, None) == -1:
        os._exit(REFUSED)
    mark, stop = signal.raise_signal, signal.SIGUSR1
    for counted in (False, True):
        for one in code:
            _clear(one, names)
            if counted:
                mark(stop)
            exec(one, names)
            if counted:
                mark(stop)
    os._exit(0)


def _clear(code: Any, names: dict[str, Any]) -> None:
    """Drop the last result, unless the statement is to do so."""
    if code.co_filename != "del r":
        names["r"] = None


def _follow(child: int, statements: int) -> Iterator[list[int]]:
    """Yield the addresses of the instructions between each pair of signals."""
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def ptrace(*arguments: int | None) -> None:
        if call(*arguments) == -1:
            os.kill(child, signal.SIGKILL)
            raise SystemExit(REFUSED)

    registers = (ctypes.c_uint64 * 64)()
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(registers), ctypes.sizeof(registers))
    counter = COUNTERS[platform.machine()]
    for number in range(statements):
        if number:
            ptrace(GO_ON, child, None, None)
        while _stopped(child) != signal.SIGUSR1:
            ptrace(GO_ON, child, None, None)
        trace: list[int] = []
        while True:
            ptrace(ONE_STEP, child, None, None)
            if _stopped(child) != signal.SIGTRAP:
                break
            vector[1] = ctypes.sizeof(registers)
            ptrace(READ_REGISTERS, child, GENERAL, ctypes.addressof(vector))
            trace.append(registers[counter])
        yield trace
    ptrace(KILL, child, None, None)
    os.waitpid(child, 0)


def _stopped(child: int) -> int:
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == REFUSED:
        raise SystemExit(REFUSED)
    if not os.WIFSTOPPED(status):
        raise SystemExit(f"the process ended with status {status} instead of stopping")
    return os.WSTOPSIG(status)


def _told(traces: Sequence[Sequence[int]], decode: str) -> dict[str, Any]:
    """Return the traces as numbers of kinds, cut to what lies between PyTorch's own code."""
    addresses = sorted({address for trace in traces for address in trace})
    # One is added since `symbolize` takes return addresses, which point behind a call.
    symbols = symbolize([address + 1 for address in addresses])
    libraries = _libraries()
    kinds: dict[tuple[str, str, str], int] = {}
    number, torch_code = {}, set()
    names = {address: name for address, (_, _, name) in zip(addresses, symbols, strict=True)}
    wanted = [a for a in addresses if decode and re.search(decode, names[a])]
    text = _disassembled(wanted)
    for address, name in names.items():
        library = next((lib for low, high, lib in libraries if low <= address < high), "")
        frame = native_frame(name, library)
        layer = "interpreter" if frame.kind == "interpreter" else frame.layer
        if re.match(r"libtorch|libc10", frame.where):
            torch_code.add(address)
        kind = (layer, frame.function, text.get(address, ""))
        number[address] = kinds.setdefault(kind, len(kinds))
    cut = []
    for trace in traces:
        inside = [place for place, address in enumerate(trace) if address in torch_code]
        kept = trace[inside[0] : inside[-1] + 1] if inside else []
        cut.append([number[address] for address in kept])
    return {"kinds": list(kinds), "traces": cut}


def _libraries() -> list[tuple[int, int, str]]:
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, *rest = line.split(maxsplit=5)
        low, high = (int(end, 16) for end in span.split("-"))
        found.append((low, high, rest[4] if len(rest) > 4 else ""))
    return found


def _disassembled(addresses: Sequence[int]) -> dict[int, str]:
    """Return the assembly of the code at these addresses of this process; needs objdump."""
    if shutil.which("objdump") is None:
        return {}
    regions: list[list[int]] = []
    for address in addresses:
        if regions and address - regions[-1][1] < 400:
            regions[-1][1] = address
        else:
            regions.append([address, address])
    machine = {"x86_64": "i386:x86-64"}.get(platform.machine(), platform.machine())
    text = {}
    for first, last in regions:
        with NamedTemporaryFile() as file:
            file.write(ctypes.string_at(first, last - first + 15))
            file.flush()
            command = ["objdump", "-D", "-b", "binary", "-m", machine, "--no-show-raw-insn"]
            command += ["--adjust-vma", str(first), file.name]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for place, code in re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", said, re.MULTILINE):
            short = re.sub(r"\b0x[0-9a-f]{9,}", "…", code.partition("#")[0])  # an address
            text[int(place, 16)] = " ".join(short.split())
    return text


if __name__ == "__main__":
    _main()
