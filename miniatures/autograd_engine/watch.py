"""What PyTorch's engine does, seen from outside: order, nesting, threads, forks, errors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from insidetorch.private.engine import execution_order
from insidetorch.processes import environment, run
from miniatures.autograd_engine.engine import count_dependencies


def nodes_of(*roots: Tensor) -> list[Any]:
    """Return every node that a backward pass from `roots` can reach, each once."""
    return list(count_dependencies([get_gradient_edge(root)[:2] for root in roots]))


def ran(backward: Callable[[], object], *roots: Tensor) -> list[Any]:
    """Call `backward` and return the nodes of `roots` in the order PyTorch evaluated them."""
    order: list[Any] = []

    def watch(node: Any) -> Callable[[Any], None]:
        return lambda grads: order.append(node)

    handles = [node.register_prehook(watch(node)) for node in nodes_of(*roots)]
    try:
        backward()
    finally:
        for handle in handles:
            handle.remove()
    return order


def short(node: Any) -> str:
    """Return the name of a node without its namespace: ``MulBackward0``, ``AccumulateGrad``."""
    name: str = node.name()
    return name.rpartition("::")[2]


def nested(levels: int, note: Callable[[], object]) -> None:
    """Run `levels` backward passes, each started by a hook of the one before; `note` each."""
    with torch.enable_grad():
        root = torch.ones(1, requires_grad=True) * 2

    def hook(grads: Any) -> None:
        note()
        if levels > 1:
            nested(levels - 1, note)

    node: Any = root.grad_fn
    node.register_prehook(hook)
    torch.autograd.backward(root)


def backward_after_fork(*levels: int) -> list[str]:
    """Say how a backward pass ends in a forked child, for a parent that nested so many before.

    One new process, which sees no GPU, takes the `levels` in turn: it nests that many backward
    passes, then forks. Each answer is ``ok`` or the error's text.
    """
    program = f"""
import os, torch
from miniatures.autograd_engine.watch import nested
for levels in {levels}:
    nested(levels, lambda: None)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    try:
        torch.ones(1, requires_grad=True).sum().backward()
        print("ok", flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = run(command, env=environment(CUDA_VISIBLE_DEVICES=""))
    done.check_returncode()
    return done.stdout.splitlines()


def error_of(call: Callable[[], object]) -> str:
    """Call and return the text of the exception that it raises; empty if it raises none."""
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def foretold(root: Tensor) -> tuple[list[Any], list[Any]]:
    """Run backward from `root`; return the order PyTorch predicted, and the one that came.

    The prediction works inside a pass, and only while multithreading is switched off.
    """
    told: list[Any] = []
    node: Any = root.grad_fn
    node.register_prehook(lambda grads: told.extend(execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        return told, ran(root.backward, root)


def heap_of_equals(count: int) -> list[int]:
    """Return the order in which equal elements leave a binary heap that they entered as 0, 1, 2…

    None overtakes another on its way up. When the first leaves, its right child takes the place,
    or the left one if it is alone, and so on down; the last element fills the hole at the end.
    """
    heap, order = list(range(count)), []
    while heap:
        order.append(heap[0])
        last, hole = heap.pop(), 0
        while (left := 2 * hole + 1) < len(heap):
            child = min(left + 1, len(heap) - 1)
            heap[hole], hole = heap[child], child
        heap[hole : hole + 1] = [last] if heap else []
    return order


def ticks_while(work: Callable[[], object], times: int = 1000) -> int:
    """Repeat `work`, at most `times` times, until another thread has counted; return its count.

    Python is told not to take its lock from a running thread: the other can count only if `work`
    gives the lock back by itself. So 0 does not depend on how busy the machine is; more than 0
    needs the other thread to get a core in one of the repetitions.
    """
    ticks: list[None] = []
    begun, stop = threading.Event(), threading.Event()

    def count() -> None:
        begun.set()
        while not stop.wait(0.0005):
            ticks.append(None)

    other = threading.Thread(target=count)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # before the start: a request already made for the lock would stand
    try:
        other.start()
        begun.wait()
        before = len(ticks)
        for _ in range(times):
            work()
            if len(ticks) > before:
                break
        return len(ticks) - before
    finally:
        sys.setswitchinterval(usual)
        stop.set()
        other.join()


def chains(width: int, nodes: int) -> Tensor:
    """Return a sum of `width` chains of multiplications, each from its own leaf; `nodes` in all.

    They are built side by side, so that as many nodes are ready at a time as there are chains.
    """
    values = [torch.ones(1, requires_grad=True) for _ in range(width)]
    for _ in range(nodes // width):
        values = [value * 0.5 for value in values]
    return torch.stack(values).sum()
