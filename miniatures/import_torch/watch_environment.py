"""When an environment variable is read, what an import leaves as it was, and what a child gets."""

from __future__ import annotations

from miniatures.import_torch.watch import each_after_import, fresh, together

VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "TORCH_LOGS": "no_such_log",
    "PYTORCH_JIT": "0",
    "ATEN_CPU_CAPABILITY": "default",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
    "TORCH_HOME": "/somewhere",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "true",
}
"""The variables that are tried, each with a value that changes something."""

_PROBES = """
import json, os, sys
os.environ.pop("MKL_NUM_THREADS", None)  # it would count instead of OpenMP's
import torch
def caught(action):
    try:
        return str(action())
    except Exception as error:
        return str(error)
def probes():
    return {
        "OMP_NUM_THREADS": torch.get_num_threads(),
        "PYTORCH_JIT": type(torch.jit.script(
            torch.nn.functional.tanhshrink)).__name__,
        "ATEN_CPU_CAPABILITY": torch.backends.cpu.get_cpu_capability(),
        "TORCH_SHOW_CPP_STACKTRACES": "Exception raised from" in caught(
            lambda: torch.ones(2) @ torch.ones(3)),
        "TORCH_HOME": torch.hub.get_dir(),
    }
"""
_AFTER = "import os\nos.environ.update({values!r})\n"


def read_when() -> dict[str, str]:
    """Set variables before the import, after it, and after a first use; say what had an effect.

    :return: variable → ``at the import``, ``at the first use`` or ``at each use``.
    """
    values = {key: value for key, value in VARIABLES.items() if f'"{key}":' in _PROBES}
    late, show = _AFTER.format(values=values), "print(json.dumps(probes()))"
    quick = {"TORCH_DISABLE_ADDR2LINE": "1"}
    three = (_PROBES + show, _PROBES + late + show, _PROBES + "probes()\n" + late + show)
    two = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    (before,), (unset, after, used) = together(
        lambda: [fresh(_PROBES + show, **values, **quick)],
        lambda: each_after_import(*three, **two, **quick),
    )
    found = {}
    for key in values:
        if before[key] == unset[key]:
            found[key] = "never"
        elif used[key] != unset[key]:
            found[key] = "at each use"
        else:
            found[key] = "at the first use" if after[key] != unset[key] else "at the import"
    return found


_UNCHANGED = """
import gc, json, locale, logging, multiprocessing, os, random, signal, sys
import threading, warnings
import numpy
def now():
    return {
        "signal handlers": [str(signal.getsignal(s)) for s in sorted(signal.valid_signals())],
        "locale": locale.setlocale(locale.LC_ALL),
        "numbers below the normal ones": 5e-324 > 0.0,
        "Python's random numbers": hash(random.getstate()),
        "NumPy's random numbers": str(numpy.random.get_state()),
        "working folder": os.getcwd(),
        "module path": list(sys.path),
        "threads": threading.active_count(),
        "recursion limit": sys.getrecursionlimit(),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "root logger": [logging.getLogger().level, len(logging.getLogger().handlers)],
        "garbage collector": gc.get_threshold(),
        "flags for loading": sys.getdlopenflags(),
        "warning filters": len(warnings.filters),
        "environment": dict(os.environ),
        "excepthook": str(sys.excepthook),
    }
before = now()
import torch
after = now()
print(json.dumps({what: before[what] == after[what] for what in before}))
"""


def unchanged() -> dict[str, bool]:
    """Look at state that a whole process shares, before and after `import torch`.

    NumPy is imported before, so that only PyTorch's doing counts.
    """
    found: dict[str, bool] = fresh(_UNCHANGED)
    return found


_FORKSERVER = """
import json, multiprocessing, sys
context = multiprocessing.get_context("forkserver")
PRELOAD
def start(what):
    with context.Pool(1) as pool:
        return pool.apply(eval, (what,))
print(json.dumps(start("'torch' in __import__('sys').modules")))
"""


def child_has_torch(preload: bool) -> bool:
    """Start a child by `forkserver` and say whether it begins with torch imported.

    :param preload: whether the server was told to import torch.
    """
    line = "context.set_forkserver_preload(['torch'])" if preload else ""
    return bool(fresh(_FORKSERVER.replace("PRELOAD", line)))


_THREADS_AND_FORK = """
import contextlib, json, os, select, signal, torch
def large():
    return (torch.ones(2**22) + 1).sum().item()
torch.set_num_threads(2)
PARENT
reader, writer = os.pipe()
child = os.fork()
if not child:
    CHILD
    os.write(writer, b"x")
    os._exit(0)
os.close(writer)
done, quiet, used = [], 0, None
while not done and quiet < 10:  # asleep in all its threads for ten looks: it waits
    done, _, _ = select.select([reader], [], [], 0.1)
    tasks, now = f"/proc/{child}/task", []
    for task in os.listdir(tasks):
        with contextlib.suppress(OSError):  # it ended just now
            stat = open(f"{tasks}/{task}/stat").read().rpartition(")")[2].split()
            now.append((stat[0], *stat[11:13]))  # state, seconds of the processor
    quiet = quiet + 1 if now == used and all(state == "S" for state, *_ in now) else 0
    used = now
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(json.dumps("it finished" if done else "it waits"))
"""


def fork_after_threads(*pairs: tuple[str, str]) -> list[str]:
    """Fork, perhaps after a large operation, and let the child compute one.

    :param pairs: what a parent does before the fork, ``large()`` or ``pass``, and what the child
        does; ``large()`` uses two threads.
    :return: of each whether the child finished, or slept for a second without an end.
    """
    programs = [
        _THREADS_AND_FORK.replace("PARENT", parent).replace("CHILD", child)
        for parent, child in pairs
    ]
    return each_after_import(*programs, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
