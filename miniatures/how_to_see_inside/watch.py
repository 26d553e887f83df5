"""Looking at a program from outside its process: gdb, nm, py-spy, perf, Valgrind, Callgrind.

Each function runs a tool and returns what it said as `Seen`; where a tool is missing or refused,
the `Seen` is false and its text is one sentence that says what to do.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name

from insidetorch.display import Display, escape
from insidetorch.errors import BookError
from insidetorch.private.modes import debug_mode, dispatch_mode
from insidetorch.processes import environment

LIBRARIES = Path(torch.__file__).parent / "lib"
PACKAGES = {"c++": "g++", "nm": "binutils", "readelf": "binutils", "perf": "linux-perf"}
NOISE = re.compile(
    r"^\[(New Thread|Thread|Inferior|Detaching)|^Using host lib|^warning:|^Function \""
)
ARGUMENT = "$x0" if os.uname().machine == "aarch64" else "$rsi"
"""The register that holds the first parameter of a C++ function that returns a tensor."""


class Calls(TorchFunctionMode):
    """Lists the functions of PyTorch that Python code calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        self.seen.append(resolve_name(func) or func.__name__)
        return func(*args, **(kwargs or {}))


class Operators(dispatch_mode()):  # type: ignore[misc]
    """Lists the operators that arrive below autograd, bound for a backend."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        self.seen.append(f"aten::{func.__name__.removesuffix('.default')}")
        return func(*args, **(kwargs or {}))


OBSERVERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": nullcontext,
    "TorchFunctionMode": Calls,
    "TorchDispatchMode": Operators,
    "DebugMode": debug_mode,
    "profiler": torch.autograd.profiler.profile,
}
"""What can be wrapped around a program, by name."""


@dataclass(frozen=True, repr=False)
class Seen(Display):
    """What a tool said, or why it said nothing.

    :param title: the tool and its target.
    :param lines: the output, shortened for reading.
    :param status: exit status of the program; None if the tool was not run.
    """

    title: str = ""
    lines: tuple[str, ...] = ()
    status: int | None = None

    def __bool__(self) -> bool:
        return self.status is not None

    def part(self, start: str, end: str = "") -> Seen:
        """Return the lines from the first that holds `start` to the next that holds `end`.

        :raises BookError: a text is not there.
        """
        if not self:
            return self
        rest = list(self.lines[_find(self, self.lines, start) :])
        last = 1 + _find(self, rest[1:], end) if end else len(rest) - 1
        return seen(self.title, rest[: last + 1], self.status)

    def having(self, *texts: str) -> Seen:
        """Return the lines that hold one of the texts, with ⋯ where others between are left out."""
        chosen: list[str] = []
        last = -1
        for number, line in enumerate(self.lines):
            if any(text in line for text in texts):
                chosen += ["⋯", line] if chosen and number > last + 1 else [line]
                last = number
        return seen(self.title, chosen, self.status) if self else self


def link(address: str, text: str) -> Display:
    """Return a text that leads to an address, for a cell of a table."""
    return Display(f'<a href="{escape(address)}">{escape(text)}</a>', text)


def _find(whole: Seen, lines: Sequence[str], text: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise BookError(f"{whole.title}: no line of the output has {text!r}; choose another text.")


def seen(title: str, lines: Sequence[str], status: int | None) -> Seen:
    """Return an output ready to be shown, without addresses and without this machine's paths."""
    short = tuple(_shortened(line) for line in lines)
    text = "\n".join(short)
    html = (
        f'<figure class="it it-excerpt"><figcaption><span class="it-symbol">{escape(title)}</span>'
        f'</figcaption><div class="highlight"><pre class="it-code" '
        f'style="padding-left: 0.8em; white-space: pre-wrap; overflow-wrap: anywhere" '
        f'tabindex="0" role="group" aria-label="{escape(title)}">{escape(text)}</pre></div>'
        "</figure>"
    )
    return Seen(html, f"{title}\n{text}", None, title, short, status)


def absent(title: str, why: str) -> Seen:
    """Return a `Seen` that says in one sentence why there is nothing to see."""
    sentence = f"{title}: nothing to show, because {why.rstrip('.')}."
    return Seen(f'<p class="it it-absent">{escape(sentence)}</p>', sentence, None, title)


def _shortened(line: str) -> str:
    line = re.sub(r"(/\S*/site-packages/)?torch/lib/", "", line)
    line = re.sub(r"/\S*/site-packages/", "", line)
    line = re.sub(r'(?<![\w.])/[^\s":,;)]*/(?=[^\s/":,;)]+)', "", line)
    return re.sub(r"0x[0-9a-fA-F]{5,}", "0x…", line).rstrip()


def _missing(title: str, *tools: str) -> Seen | None:
    for tool in tools:
        if shutil.which(tool) is None:
            package = PACKAGES.get(tool, tool)
            return absent(title, f"{tool} is not installed: install the system package {package}")
    return None


def _run(command: Sequence[object], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=1800,
        check=False,
    )


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="insidetorch-")


def _script(folder: str, program: str) -> Path:
    path = Path(folder, "script.py")
    path.write_text(program, encoding="utf-8")
    return path


def script(program: str, **environment: str) -> Seen:
    """Run a Python program in a process of its own, with environment variables, to its end."""
    with _folder() as folder:
        done = _run([sys.executable, _script(folder, program)], **environment)
    title = " ".join([*(f"{name}={value}" for name, value in environment.items()), "python"])
    return seen(title, done.stdout.splitlines(), done.returncode)


def gdb(program: str, *commands: str) -> Seen:
    """Run a Python program under gdb with these commands; the result is the transcript."""
    title = "gdb --args python script.py"
    if (problem := _missing(title, "gdb")) is not None:
        return problem
    settings = ["breakpoint pending on", "confirm off", "debuginfod enabled off", "width 0"]
    settings += ["pagination off", "startup-with-shell off", "unwindonsignal on"]
    asked = [f"set {setting}" for setting in settings]
    for command in commands:
        asked += [f"echo (gdb) {command}\\n", command]
    with _folder() as folder:
        options = [option for command in asked for option in ("-ex", command)]
        path = _script(folder, program)
        done = _run(["gdb", "-nx", "-q", "-batch", *options, "--args", sys.executable, path])
    refused = re.search(r".*(ptrace|Operation not permitted|not being run).*", done.stdout)
    if refused:
        why = f"gdb may not trace here ({refused[0].strip()})"
        return absent(title, f"{why}: allow ptrace, in a container with --cap-add=SYS_PTRACE")
    said = done.stdout[done.stdout.index("(gdb) ") :].replace('Thread 1 "python" hit ', "")
    lines = re.sub(r"0x[0-9a-f]{9,} in ", "", said).splitlines()
    return seen(title, [line for line in lines if line and not NOISE.search(line)], 0)


def symbols(library: str, *options: str) -> Seen:
    """List the symbols of one of PyTorch's libraries with `nm`."""
    title = " ".join(["nm", *options, library])
    if (problem := _missing(title, "nm")) is not None:
        return problem
    done = _run(["nm", *options, LIBRARIES / library])
    return replace(seen(title, (), done.returncode), lines=tuple(done.stdout.splitlines()))


def sections(library: str) -> Seen:
    """List the names of the sections of one of PyTorch's libraries with `readelf`."""
    title = f"readelf --sections {library}"
    if (problem := _missing(title, "readelf")) is not None:
        return problem
    done = _run(["readelf", "-SW", LIBRARIES / library])
    names = re.findall(r"\]\s+(\.\S+)", done.stdout)
    return seen(title, names, done.returncode)


def py_spy(program: str, rate: int = 100) -> Counter[tuple[str, ...]] | Seen:
    """Sample the stack of a Python program, native frames included, `rate` times a second.

    :returns: how often each stack was seen, the outermost frame first.
    """
    title = "py-spy record --native"
    beside = Path(sys.executable).with_name("py-spy")
    tool = str(beside) if beside.exists() else shutil.which("py-spy")
    if tool is None:
        return absent(title, "py-spy is not installed: pip install py-spy")
    with _folder() as folder:
        out = Path(folder, "stacks.txt")
        path = _script(folder, program)
        options = ["--native", "-r", rate, "-f", "raw", "-o", out]
        done = _run([tool, "record", *options, "--", sys.executable, path], OMP_NUM_THREADS="1")
        if not out.exists():
            said = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            return absent(title, f"it was refused ({said}): allow ptrace")
        stacks: Counter[tuple[str, ...]] = Counter()
        for line in out.read_text(encoding="utf-8").splitlines():
            frames, _, count = line.rpartition(" ")
            stacks[tuple(_shortened(frame) for frame in _split(frames))] += int(count)
    return stacks


def _split(frames: str) -> list[str]:
    """Split a line of py-spy into frames, without template arguments and parameters."""
    plain = frames.replace("(anonymous namespace)", "anon")
    before = ""
    while before != plain:
        before, plain = plain, re.sub(r"(?<=\w)<[^<>;]*>", "", plain)
    return [re.sub(r"\([^()]*\)(?=.* \()", "", frame) for frame in plain.split(";")]


def perf(program: str, library: str = "libtorch_cpu.so", rows: int = 6) -> Seen:
    """Sample a Python program with Linux's `perf`; the result is a library's hottest functions."""
    title = "perf record -e task-clock; perf report"
    if (problem := _missing(title, "perf")) is not None:
        return problem
    with _folder() as folder:
        data = Path(folder, "perf.data")
        path = _script(folder, program)
        options = ["-q", "-e", "task-clock", "-o", data]
        done = _run(["perf", "record", *options, sys.executable, path], OMP_NUM_THREADS="1")
        if done.returncode or not data.exists():
            said = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            return absent(title, f"the system refused it ({said.strip()})")
        options = ["--stdio", "-F", "overhead,sym", "--dsos", library]
        report = _run(["perf", "report", "-i", data, *options]).stdout.splitlines()
    lines = [line for line in report if line.strip() and not line.startswith("#")]
    return seen(f"{title} ({library})", [line[:90] for line in lines[:rows]], 0)


def built(code: str, folder: str, *options: str) -> Path:
    """Compile a C++ program against the wheel's headers and its library c10.

    :raises BookError: the compiler refuses it.
    """
    target = Path(folder, "program")
    Path(folder, "program.cpp").write_text(code, encoding="utf-8")
    command = ["c++", "-std=c++20", "-g", "-O1", f"-I{LIBRARIES.parent / 'include'}", *options]
    linked = [f"-L{LIBRARIES}", "-lc10", f"-Wl,-rpath,{LIBRARIES}"]
    done = _run([*command, Path(folder, "program.cpp"), "-o", target, *linked])
    if done.returncode:
        raise BookError(f"The C++ compiler refused the program: {done.stdout.splitlines()[0]}")
    return target


def bare(code: str) -> Seen:
    """Compile a C++ program and run it as it is."""
    problem = _missing("./program", "c++")
    return _cpp(code, "./program", []) if problem is None else problem


def memcheck(code: str) -> Seen:
    """Compile a C++ program and run it under Valgrind's memory checker."""
    title = "valgrind ./program"
    problem = _missing(title, "c++", "valgrind")
    return _cpp(code, title, ["valgrind", "-q"]) if problem is None else problem


def _cpp(code: str, title: str, before: list[str]) -> Seen:
    with _folder() as folder:
        done = _run([*before, built(code, folder)])
    lines = [re.sub(r"^==\d+== ?", "", line) for line in done.stdout.splitlines()]
    return seen(title, lines, done.returncode)


SWITCH = """
#include "callgrind.h"
extern "C" void on() { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_TOGGLE_COLLECT; }
extern "C" void off() { CALLGRIND_TOGGLE_COLLECT; CALLGRIND_DUMP_STATS;
                        CALLGRIND_STOP_INSTRUMENTATION; }
"""
COUNTED = """
import gc, sys
gc.disable()
sys.modules["numpy"] = None  # halves the time that the import takes under Valgrind
{program}
import ctypes
switch = ctypes.CDLL({switch!r})
"""
EXPRESSION = """
for _ in range(2):
    {0}
switch.on()
{0}
switch.off()
"""
OBSERVED = """
from miniatures.how_to_see_inside.watch import OBSERVERS
for observer in OBSERVERS.values():
    for _ in range(3):
        with observer():
            program()
    with observer():
        switch.on()
        program()
        switch.off()
"""


class Counting:
    """Counts machine instructions in the background, in one process under Valgrind's Callgrind.

    With `expressions`, those that each of them takes after `program`, at its third evaluation.
    Without, those of the function `program` that it defines, at the fourth run under each observer.
    """

    def __init__(self, program: str, *expressions: str) -> None:
        self.names = expressions or tuple(OBSERVERS)
        title = "valgrind --tool=callgrind"
        self.problem = _missing(title, "c++", "valgrind")
        if self.problem is not None:
            return
        self.folder = _folder()
        here = self.folder.name
        header = LIBRARIES.parent / "utils/benchmark/utils/valgrind_wrapper"
        switch = built(SWITCH, here, "-shared", "-fPIC", f"-I{header}")
        parts = map(EXPRESSION.format, expressions) if expressions else [OBSERVED]
        text = COUNTED.format(program=program, switch=str(switch)) + "".join(parts)
        path = _script(here, text)
        options = ["--instr-atstart=no", "--collect-atstart=no", f"--callgrind-out-file={here}/out"]
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", *options, sys.executable, "-W", "ignore", str(path)],
            env=environment(OMP_NUM_THREADS="1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.process.kill)

    def counts(self) -> dict[str, int] | Seen:
        """Wait for the end; return the instructions by expression, or by observer."""
        if self.problem is not None:
            return self.problem
        self.process.wait(timeout=1800)
        found = {}
        for number, name in enumerate(self.names, start=1):
            dump = Path(self.folder.name, f"out.{number}")
            total = re.search(r"^totals: (\d+)", dump.read_text() if dump.exists() else "", re.M)
            if total is None:
                return absent("valgrind --tool=callgrind", "Valgrind failed on this machine")
            found[name] = int(total[1])
        self.folder.cleanup()
        return found


def frames(function: Callable[[], object]) -> int:
    """Count the Python functions that are entered while `function` runs, itself included."""
    entered = 0

    def watch(frame: object, event: str, argument: object) -> None:
        nonlocal entered
        entered += event == "call"

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
    return entered
