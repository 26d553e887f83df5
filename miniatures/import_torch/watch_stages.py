"""One import of torch, stage by stage: what is in the process, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miniatures.import_torch.watch import OPERATOR_COUNT, fresh

_STAGES = (
    OPERATOR_COUNT
    + """
import os, resource, time
from importlib.machinery import ExtensionFileLoader
from insidetorch.private.imports import variable_functions
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
BEFORE = {"torch": "python", "torch._C": "small", "torch._tensor": "before_tensor"}
AFTER = {"_initExtension": "types", "_autograd_init": "class"}
started, paused = time.perf_counter(), 0.0
points, states, handlers = [], [], []
HOME = os.path.realpath(TORCH) + "/"
page = os.sysconf("SC_PAGE_SIZE")

def private():
    with open("/proc/self/status") as status:
        return int(status.read().split("RssAnon:")[1].split()[0]) << 10

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * page

def mapped():
    with open("/proc/self/maps") as maps:
        found = {line.split(None, 5)[5].strip() for line in maps if ".so" in line}
    return sorted(one for one in found if one.startswith("/"))

def makes_tensor(C):
    if C is None:
        return "no torch._C"
    child = os.fork()
    if not child:
        variable_functions(C).zeros(2)
        os._exit(0)
    return "crashes" if os.waitpid(child, 0)[1] else "yes"

def state(name, C=None):
    global paused
    began = time.perf_counter()
    torch, C = sys.modules.get("torch"), C or sys.modules.get("torch._C")
    files = mapped()
    own = [one.rpartition("/")[2] for one in files
           if one.startswith(HOME) and one.count("/") <= HOME.count("/") + 2]
    states.append({
        "name": name, "at": began - started - paused, "own": own,
        "others": len(files) - len(own), "modules": len(sys.modules),
        "of_torch": sum(one.split(".")[0] == "torch" for one in sys.modules),
        "operators": operator_count() if "libtorch_cpu.so" in own else 0,
        "resident": resident(), "private": private(), "threads": len(os.listdir("/proc/self/task")),
        "names": sum(not one.startswith("__") for one in vars(torch)) if torch else 0,
        "dtype": hasattr(torch, "float32"), "Tensor": hasattr(torch, "Tensor"),
        "add": hasattr(torch, "add"), "nn": hasattr(torch, "nn"),
        "base": hasattr(C, "TensorBase"), "handlers": len(handlers),
        "tensor": makes_tensor(C)})
    paused += time.perf_counter() - began

class Watch:
    def find_spec(self, name, path=None, target=None):
        global paused
        began = time.perf_counter()
        count = None
        if name.startswith("torch.") and name.count(".") == 1 and len(states) > 3:
            count = operator_count()
        points.append([began - started - paused, len(sys.modules), resident(), count])
        paused += time.perf_counter() - began
        if name in BEFORE:
            state(BEFORE.pop(name))
        return None

def then(real, name):
    def step(*args):
        result = real(*args)
        state(name)
        return result
    return step

create, execute = ExtensionFileLoader.create_module, ExtensionFileLoader.exec_module

def create_module(loader, spec):
    if spec.name != "torch._C":
        return create(loader, spec)
    ctypes.CDLL(spec.origin)  # what Python does first, too: the loader's part alone
    state("libraries")
    made = create(loader, spec)
    state("initModule", made)
    return made

def exec_module(loader, module):
    execute(loader, module)
    if module.__name__ == "torch._C":
        for name, said in AFTER.items():
            setattr(module, name, then(getattr(module, name), said))

ExtensionFileLoader.create_module = create_module
ExtensionFileLoader.exec_module = exec_module
register = os.register_at_fork
def noted(**functions):
    handlers.extend(functions.values())
    return register(**functions)
os.register_at_fork = noted
sys.meta_path.insert(0, Watch())
import torch
state("end")
print(json.dumps([points, states]))
"""
)


@dataclass(frozen=True)
class Point:
    """A moment of an import, just before Python looks for a module.

    :param at: seconds since the start, without what watching took.
    :param modules: Python modules in the process.
    :param resident: bytes of memory in use.
    :param operators: operators that the dispatcher knows, where they were counted.
    """

    at: float
    modules: int
    resident: int
    operators: int | None


@dataclass(frozen=True)
class State:
    """What is in the process at the end of a stage.

    :param name: ``python``, ``small``, ``libraries``, ``initModule``, ``before_tensor``, ``types``,
        ``class`` or ``end``.
    :param at: seconds since the start, without what watching took.
    :param own: files of torch's libraries that are mapped.
    :param others: how many other libraries are mapped.
    :param modules: Python modules, and `of_torch` those of torch.
    :param operators: operators that the dispatcher knows.
    :param resident: bytes of memory in use, and `private` those that no other process shares.
    :param threads: threads of the process.
    :param names: names in the module torch.
    :param handlers: functions that Python runs in forked children.
    :param tensor: what comes of an attempt to make a tensor: ``yes``, ``crashes`` or
        ``no torch._C``.
    :param dtype: whether `torch.float32` is there; so `Tensor`, `add`, `nn`, and `base`, the
        base class in C++.
    """

    name: str
    at: float
    own: list[str]
    others: int
    modules: int
    of_torch: int
    operators: int
    resident: int
    private: int
    threads: int
    names: int
    dtype: bool
    Tensor: bool
    add: bool
    nn: bool
    base: bool
    handlers: int
    tensor: str


@dataclass(frozen=True)
class Run:
    """One import: moments in order, and the states at the ends of its stages, in order."""

    points: Sequence[Point]
    states: Sequence[State]

    def state(self, name: str) -> State:
        """Return the state of a name."""
        return next(one for one in self.states if one.name == name)


def watched_import(**env: str) -> Run:
    """Import torch in a new process and return what was in it at the end of each stage."""
    points, states = fresh(_STAGES, **env)
    return Run([Point(*point) for point in points], [State(**state) for state in states])
