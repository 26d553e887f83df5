"""What `import torch` does, seen from outside: a new process for each look; its loader's log."""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from insidetorch import processes
from insidetorch.errors import BookError
from miniatures.import_torch.loader import Library, Process, read

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def torch_folder() -> Path:
    """Return the folder of the installed torch, without importing it."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise BookError("torch is not installed: run `pip install torch` first.")
    return Path(spec.origin).parent


def _source(program: str) -> str:
    return f"TORCH = {str(torch_folder())!r}\n{program}"


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return processes.environment(CUDA_VISIBLE_DEVICES="") | dict(more)


def run(program: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python process that sees no GPU.

    :param program: Python source; the miniatures can be imported, and ``TORCH`` is torch's folder.
    :param options: options of the interpreter.
    :param env: more environment variables.
    :raises BookError: if the program fails.
    """
    command = [sys.executable, *options, "-W", "ignore", "-c", _source(program)]
    done = processes.run(command, env=_environment(env))
    if done.returncode:
        said = processes.last_line(done.stderr or f"exit status {done.returncode}")
        raise BookError(f"a program of this chapter failed ({said}): run it by itself.")
    return done


def fresh(program: str, **env: str) -> Any:
    """Run a program as `run` does and return the last line that it prints, read as JSON."""
    return json.loads(run(program, **env).stdout.splitlines()[-1])


_SERVER = """
import contextlib, io, json, os, sys, torch
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a program writes by itself is no answer
def child_of(program):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                exec(program, {"TORCH": TORCH})
            with os.fdopen(writer, "w") as pipe:
                pipe.write(said.getvalue())
        finally:
            os._exit(0)
    os.close(writer)
    return child, reader
for programs in sys.stdin:
    found = []
    for child, reader in [child_of(program) for program in json.loads(programs)]:
        with os.fdopen(reader) as pipe:
            lines = pipe.read().splitlines()
        os.waitpid(child, 0)
        found.append(json.loads(lines[-1]) if lines else None)
    print(json.dumps(found), file=answers, flush=True)
"""


class _Server:
    """A process that has imported torch and runs programs in forked children of it."""

    def __init__(self, **env: str) -> None:
        command = [sys.executable, "-W", "ignore", "-c", _source(_SERVER)]
        self._process = subprocess.Popen(
            command, env=_environment(env), encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, programs: Collection[str]) -> list[Any]:
        """Run programs, all at once, and return of each the last line that it printed."""
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None:
            raise BookError("a program of this chapter has no pipes: this is a bug, report it.")
        questions.write(json.dumps(list(programs)) + "\n")
        questions.flush()
        answer = answers.readline()
        if not answer:
            raise BookError("`import torch` failed in a new process: run it by itself.")
        found: list[Any] = json.loads(answer)
        return found

    def end(self) -> None:
        """Let it end: nobody asks any more."""
        self._process.communicate()


@cache
def _shared() -> _Server:
    server = _Server()
    atexit.register(server.end)
    return server


def each_after_import(*programs: str, **env: str) -> list[Any]:
    """Run each program in a forked child of a process that has imported torch, all at once.

    Calls without variables share that process, so that torch is imported once for all.

    :return: of each the last line that it prints, read as JSON.
    """
    if not env:
        return _shared().ask(programs)
    server = _Server(**env)
    try:
        return server.ask(programs)
    finally:
        server.end()


def together(*looks: Callable[[], T]) -> list[T]:
    """Take several looks, two at a time, and return what each found, in order."""
    with ThreadPoolExecutor(2) as pool:
        return [begun.result() for begun in [pool.submit(look) for look in looks]]


# ── The loader ──────────────────────────────────────────────────────────────────────────────────

_ANSWER = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(\S+)'")
_OPENED = re.compile(r"file=(\S+) \[0\];  dynamically loaded by")
_CONSTRUCTORS = re.compile(r"calling init: (\S+)")
_EVERYONE = re.compile(r"add (\S+) \[0\] to global scope")


@dataclass(frozen=True)
class LoaderLog:
    """What the dynamic loader did in one process; libraries are named by their files.

    :param opened: the libraries that were asked for while it ran, in order.
    :param initialised: the libraries whose constructors ran, in order.
    :param everyone: those that were added to the scope of the whole process.
    :param answers: which library's definition a library got, by (library, symbol), in order.
    :param files: what each library says about itself, by name.
    """

    opened: list[str]
    initialised: list[str]
    everyone: list[str]
    answers: dict[tuple[str, str], str]
    files: dict[str, Library]

    def same(self, one: str | None, other: str) -> bool:
        """Tell whether two names mean one library: that of its file and its own may differ."""
        return one is not None and self.files[one].name == self.files[other].name


def loader_log(program: str = "import torch", **env: str) -> LoaderLog:
    """Run a program in a new process and return what its dynamic loader says that it did.

    ``LD_DEBUG`` makes GNU's loader talk; ``LD_BIND_NOW`` has it look up every name at once.

    :raises BookError: on a system without GNU's C library.
    """
    with tempfile.TemporaryDirectory() as folder:
        talk = {"LD_DEBUG": "files,bindings,scopes", "LD_DEBUG_OUTPUT": f"{folder}/log"}
        run(program, **talk, LD_BIND_NOW="1", **env)
        logs = sorted(Path(folder).iterdir(), key=lambda file: file.stat().st_size)
        if not logs:
            raise BookError("this system's loader keeps no log: use Linux with the GNU C library.")
        text = logs[-1].read_text(encoding="utf-8", errors="replace")
    answers: dict[tuple[str, str], str] = {}
    paths: dict[str, str] = {}
    for asker, answer, symbol in _ANSWER.findall(text):
        paths |= {name(asker): asker, name(answer): answer}
        answers.setdefault((name(asker), symbol), name(answer))
    files = _libraries(paths)

    def named(pattern: re.Pattern[str]) -> list[str]:
        found = dict.fromkeys(name(path) for path in pattern.findall(text))
        return [one for one in found if one in files]

    known = {pair: answer for pair, answer in answers.items() if {pair[0], answer} <= set(files)}
    return LoaderLog(named(_OPENED), named(_CONSTRUCTORS), named(_EVERYONE), known, files)


DEPENDENCIES = "libtorch_global_deps.so"


def replay(
    log: LoaderLog, everyone: Collection[str] = (DEPENDENCIES,)
) -> tuple[Process, dict[tuple[str, str], str | None]]:
    """Let the miniature open the libraries of a log and give the answers that its loader gave.

    :param everyone: the libraries to open for the whole process.
    :return: the miniature, and its answer to each question, asked when the asker has come.
    """
    questions: dict[str, list[tuple[str, str]]] = {}
    for pair in log.answers:
        questions.setdefault(pair[0], []).append(pair)
    program = next(asker for asker in questions if asker.startswith("python"))
    process, answers = Process(program, log.files), dict[tuple[str, str], str | None]()
    for library in log.opened:
        known = len(process.loaded)
        process.open(library, everyone=library in everyone)
        for new in process.loaded[known:]:
            answers |= {pair: process.answer(*pair) for pair in questions.get(new, [])}
    return process, answers


def name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def _libraries(paths: Mapping[str, str]) -> dict[str, Library]:
    found: dict[str, Library] = {}
    for file, path in paths.items():
        if Path(path).is_file():
            library = read(path)
            found |= {library.name: library, file: library}
    return found


# ── The C++ half, without and before the Python half ────────────────────────────────────────────

_DEPENDENCIES = """
import ctypes, json, os, sys
from insidetorch.private.imports import answer_fork_check, extension, variable_functions
ctypes.CDLL(f"{TORCH}/lib/libtorch_global_deps.so", mode=ctypes.RTLD_GLOBAL)
"""

OPERATOR_COUNT = """
import ctypes, json, sys
words = ctypes.sizeof(ctypes.c_size_t)
def operator_names():  # a std::vector: begin, end, capacity
    library = ctypes.CDLL(f"{TORCH}/lib/libtorch_cpu.so")
    dispatcher = library._ZN3c1010Dispatcher13realSingletonEv
    dispatcher.restype = ctypes.c_void_p
    names = library._ZN3c1010Dispatcher13getAllOpNamesEv
    names.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    vector = (ctypes.c_size_t * 3)()
    names(vector, dispatcher())
    return vector
def operator_count():
    vector = operator_names()
    return (vector[1] - vector[0]) // (8 * words)
"""

_OPERATORS = """
vector = operator_names()
def text(string):  # std::string: where it begins, how long it is, room for a short one
    start, length = (ctypes.c_size_t * 2).from_address(string)
    return ctypes.string_at(start, length).decode()
found = []
for start in range(vector[0], vector[1], 8 * words):  # OperatorName: two strings
    operator, overload = text(start), text(start + 4 * words)
    found.append(f"{operator}.{overload}" if overload else operator)
print(json.dumps([found, "torch" in sys.modules]))
"""

_ALONE = """
import types
from collections import Counter
torch = types.ModuleType("torch")
torch.__path__, sys.modules["torch"] = [TORCH], torch
C, answers = extension(), {}
def attempt(what, action):
    try:
        answers[what] = str(action())
    except Exception as error:
        answers[what] = f"{type(error).__name__}: {error}"
python = ctypes.CDLL(f"{TORCH}/lib/libtorch_python.so")
pointer = ctypes.c_void_p.in_dll(python, "THPVariableClass")
attempt("the pointer THPVariableClass", lambda: pointer.value)
attempt("an object of the base class", C.TensorBase)
attempt("a data type", lambda: torch.float32)
attempt("a Python subclass", lambda: type("Mine", (C.TensorBase,), {}).__mro__[1:])
attempt("the shape of an object of it", lambda: (*type("Mine", (C.TensorBase,), {})(2, 3).shape,))
kinds = Counter(type(getattr(C, name)).__name__ for name in dir(C))
print(json.dumps([len(dir(C)), dict(kinds), answers, "numpy" in sys.modules]))
"""

_FIRST = """
import json, os, resource, signal, sys
from insidetorch.private.imports import answer_fork_check, extension, variable_functions
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
log = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        C, depth = sys.modules.get("torch._C"), name.count(".")
        if C is None or (log and log[-1][1] == "a tensor"):
            return None
        if name.startswith("torch.") and (depth == 1 or "autograd" in name):
            child = os.fork()
            if not child:
                variable_functions(C).zeros(2)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            how = signal.Signals(status & 127).name if status & 127 else "an error"
            log.append((name, how if status else "a tensor"))
        return None
sys.meta_path.insert(0, Watch())
import torch
print(json.dumps(log))
"""


def operators_of_constructors() -> tuple[list[str], bool]:
    """Open `libtorch_cpu` in a new process and return the operators that are there at once.

    The dispatcher is asked through its C++ functions; nothing of torch's Python runs.

    :return: names as ``aten::add.Tensor``, and whether torch was imported after all.
    """
    found, imported = fresh(_DEPENDENCIES + OPERATOR_COUNT + _OPERATORS)
    return sorted(found), imported


def extension_alone() -> tuple[int, dict[str, int], dict[str, str], bool]:
    """Load `torch._C` in a new process, with an empty module in torch's place.

    :return: how many names it has, how many of each kind, what a few attempts say, and whether
        NumPy was imported on the way.
    """
    names, kinds, answers, numpy = fresh(_DEPENDENCIES + _ALONE)
    return names, kinds, answers, numpy


def first_tensor() -> list[tuple[str, str]]:
    """Import torch in a new process and try, in forked children, when a tensor can be made.

    :return: before which import it was tried, and what came: ``a tensor``, or a signal's name.
    """
    return [(module, how) for module, how in fresh(_FIRST)]


# ── The Python half ─────────────────────────────────────────────────────────────────────────────

_TIME = re.compile(r"import time: +(\d+) \| +(\d+) \|( +)(\S+)")


@dataclass(frozen=True)
class Imported:
    """One module of an import.

    :param name: its name.
    :param depth: how many imports it ran inside of.
    :param own: seconds spent in itself.
    :param total: seconds with what it imported.
    """

    name: str
    depth: int
    own: float
    total: float


def import_times(program: str = "import torch") -> list[Imported]:
    """Run a program under ``-X importtime`` and return its imports in the order they ended."""
    rows = _TIME.findall(run(program, "-X", "importtime").stderr)
    return [
        Imported(module, len(indent) // 2, int(own) / 1e6, int(total) / 1e6)
        for own, total, indent, module in rows
    ]


_WORK = """
import json, sys
from importlib.machinery import ExtensionFileLoader
entered = 0
def note(frame, event, argument):
    global entered
    entered += event == "call"
def now():
    status = open("/proc/self/status").read()
    return entered, int(status.split("RssAnon:")[1].split()[0]) >> 10
def watched(load):
    def step(loader, what):
        named = getattr(what, "name", getattr(what, "__name__", None)) == "torch._C"
        before = now()
        made = load(loader, what)
        if named:
            inside.append([late - early for early, late in zip(before, now())])
        return made
    return step
inside = []
for step in ("create_module", "exec_module"):
    setattr(ExtensionFileLoader, step, watched(getattr(ExtensionFileLoader, step)))
before = now()
sys.setprofile(note)
import torch
sys.setprofile(None)
whole = [late - early for early, late in zip(before, now())]
print(json.dumps([[sum(one) for one in zip(*inside)], whole]))
"""


def import_work() -> tuple[list[int], list[int]]:
    """Count what loading and initialising ``torch._C`` does, and what `import torch` does in all.

    :returns: for each the Python functions entered, and the MiB of memory that were written.
    """
    part, whole = fresh(_WORK)
    return part, whole


# ── Fork ────────────────────────────────────────────────────────────────────────────────────────

HANDLER = """
import ctypes, json, os, torch
from insidetorch.private.imports import answer_fork_check, extension, variable_functions
CUDA = ctypes.c_int8(1)  # c10::DeviceType
library = ctypes.CDLL(f"{TORCH}/lib/libtorch_python.so")
prefix, suffix = "_ZN5torch5utils", "N3c1010DeviceTypeE"
register = library[f"{prefix}37register_fork_handler_for_device_initE{suffix}"]
marked = library[f"{prefix}21is_device_in_bad_forkE{suffix}"]
marked.restype = ctypes.c_bool
answer_fork_check(lambda: marked(CUDA))
"""

_FORK = """
def child():
    reader, writer = os.pipe()
    if not os.fork():
        try:
            torch.ones(1, device="cuda")
            said = "a tensor"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps([marked(CUDA), said]).encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    return json.loads(os.read(reader, 10000))
before = child()
register(CUDA)
print(json.dumps([before, child(), marked(CUDA)]))
"""


def fork_marks() -> tuple[list[Any], list[Any], bool]:
    """Fork after `import torch`, register PyTorch's fork handler for CUDA, and fork again.

    The handler is the C++ function that `torch.cuda` registers before its first call of CUDA; it
    is in every build. A build without CUDA has no `_cuda_isInBadFork`, which asks for the mark;
    the same question is put in its place.

    :return: for both children, whether they were marked and what a CUDA tensor gave; and whether
        the parent is marked.
    """
    ((before, after, parent),) = each_after_import(HANDLER + _FORK)
    return before, after, parent
