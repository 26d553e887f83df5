"""The programs that are looked at from outside, and the start of the tools that do it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from miniatures.how_to_see_inside import watch as tools
from miniatures.how_to_see_inside.watch_run import beside, traced

PROGRAM = """
import torch
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
w = torch.ones(3, 2, requires_grad=True)

def program():
    torch.nn.functional.linear(x, w).relu().sum().backward()
"""
"""The page's program, as text for another process."""

HOT = f"""{PROGRAM}
import time
x, w = torch.rand(150, 150), torch.rand(150, 150, requires_grad=True)
end = time.process_time() + 1.5  # of the CPU, however busy the machine is
while time.process_time() < end:
    program()
"""
COMPILED = f"""{PROGRAM}
@torch.compile
def forward(x, w):
    return torch.nn.functional.linear(x, w).relu().sum()

with torch.no_grad():
    forward(x, w)
    with torch.profiler.profile() as watched:
        forward(x, w)
print("profile:", ", ".join(event.name for event in watched.events()))
"""
NEGATE = """
import torch
t = torch.tensor([1.0, 2.0, 3.0, 4.0])
u = t.neg()
"""
WRONG = """
import torch
torch.ones(2) @ torch.ones(3)
"""
CRASH = """
import ctypes, torch

def fails():
    ctypes.string_at(0)  # reads the address 0, as a broken extension might

fails()
"""
TWO_OWNERS = """
#include <c10/core/CPUAllocator.h>

int main() {
  auto* cpu = c10::GetCPUAllocator();
  at::DataPtr owner = cpu->allocate(256);
  at::DataPtr thief(owner.get(), owner.get(), cpu->raw_deleter(), c10::kCPU);
}
"""
REPR = "torch::gdb::tensor_repr"
IN_GDB = [
    "break at::Tensor::neg",
    "break at::_ops::neg::call",
    "run",
    "continue",
    "bt 2",
    "info args",
    f"print {REPR}(*(at::Tensor*){tools.ARGUMENT})",
    f"print ((char*(*)(void*))'{REPR}(at::Tensor const&)')({tools.ARGUMENT})",
    "call (int)PyGILState_Ensure()",
    'call (int)PyRun_SimpleString("import traceback; traceback.print_stack()")',
    "info breakpoints",
]
"""What is typed into gdb: two breakpoints, then questions at the second."""


def started() -> dict[str, Future[Any]]:
    """Start what needs a process of its own, one after the other, and return what waits for it."""
    ending = "program()\nimport sys; print('the end', file=sys.stderr)\n"
    return {
        "dispatch trace": beside(tools.script, PROGRAM + ending, TORCH_SHOW_DISPATCH_TRACE="1"),
        "gdb": beside(tools.gdb, NEGATE, *IN_GDB),
        "error": beside(tools.script, WRONG, TORCH_SHOW_CPP_STACKTRACES="1",
                        TORCH_DISABLE_ADDR2LINE="0"),
        "crash": beside(tools.script, CRASH, PYTHONFAULTHANDLER="1"),
        "log": beside(traced, COMPILED, TORCH_LOGS="graph_code,output_code"),
        "nm": beside(tools.symbols, "libtorch_cpu.so", "-C"),
        "py-spy": beside(tools.py_spy, HOT),
        "perf": beside(tools.perf, HOT),
        "alone": beside(tools.bare, TWO_OWNERS),
        "valgrind": beside(tools.memcheck, TWO_OWNERS),
    }  # fmt: skip
