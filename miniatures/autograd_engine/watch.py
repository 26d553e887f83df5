"""What PyTorch's engine does, seen from outside: order, nesting, threads, forks, errors."""

from __future__ import annotations

import sys
import threading
import weakref
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
os._exit(0)  # the engine's thread and the end of Python can race: an abort at exit
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = run(command, env=environment(CUDA_VISIBLE_DEVICES=""))
    done.check_returncode()
    return done.stdout.splitlines()


def ends(*programs: str) -> list[list[str]]:
    """Run each program to its end, as a process; return what it printed and, last, how it ended.

    That is ``exit 0``, another code, or a signal. Each is a child of one new process, which has
    imported PyTorch and sees no GPU.
    """
    program = f"""
import os, sys, torch
for text in {programs}:
    child = os.fork()
    if not child:
        exec(text)
        sys.exit()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"signal {{-status}}" if status < 0 else f"exit {{status}}", "", sep="\\n", flush=True)
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = run(command, env=environment(CUDA_VISIBLE_DEVICES="", TP_SOCKET_IFNAME="lo"))
    done.check_returncode()
    return [said.splitlines() for said in done.stdout.split("\n\n") if said]


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


def says(words: str) -> Callable[..., None]:
    """Return a hook that prints `words` and changes nothing."""

    def hook(*gradients: Any) -> None:
        print(words)

    return hook


def arrives(function: Callable[[Tensor], Tensor], gradient: Tensor, **options: Any) -> str:
    """Differentiate `function` at a new leaf; say whether `.grad` is the memory that arrived.

    :param gradient: what is passed to `backward`, which also decides the leaf's shape.
    :param options: for `backward`.
    """
    leaf = torch.zeros(gradient.shape, requires_grad=True)
    node: Any = get_gradient_edge(leaf).node
    came: list[int] = []
    node.register_prehook(lambda grads: came.append(grads[0].data_ptr()))
    torch.autograd.backward(function(leaf), gradient, **options)
    grad, leaf.grad = leaf.grad, None
    assert grad is not None
    return "taken" if came == [grad.data_ptr()] else "copied"


def in_step(*roots: Tensor, patience: float = 60) -> dict[str, list[str]]:
    """Run backward from each root in a thread of its own; each node waits for the other threads.

    Return what ran in each thread. The graphs need as many nodes as each other.

    :param patience: seconds that a node waits for the others before the passes are given up.
    :raises threading.BrokenBarrierError: the passes were not inside at the same time.
    """
    meeting = threading.Barrier(len(roots), timeout=patience)
    lanes: dict[str, list[str]] = {f"thread {n}": [] for n in range(1, len(roots) + 1)}
    broken: list[BaseException] = []

    def one(root: Tensor, lane: list[str]) -> None:
        def hook(node: Any) -> Callable[[Any], None]:
            def wait(grads: Any) -> None:
                meeting.wait()
                lane.append(short(node))

            return wait

        handles = [node.register_prehook(hook(node)) for node in nodes_of(root)]
        try:
            torch.autograd.backward(root)
        except threading.BrokenBarrierError as error:
            broken.append(error)
        finally:
            for handle in handles:
                handle.remove()

    threads = [
        threading.Thread(target=one, args=pair) for pair in zip(roots, lanes.values(), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
    return lanes


def lost(add: Callable[[Tensor], object], target: Tensor, threads: int = 4) -> int:
    """Call `add` with ones twenty times in each of several threads; count wrong elements."""
    ones, begin = torch.ones_like(target), threading.Barrier(threads)

    def work() -> None:
        begin.wait()
        for _ in range(20):
            add(ones)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return int((target != 20 * threads).sum())


class _Kept:
    """A saved tensor in a box, to which a weak reference is possible."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def still_saved(length: int, **options: Any) -> list[int]:
    """Run backward through a chain of sines; count the saved tensors before it and after each node.

    :param options: for `backward`.
    """
    boxes: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def pack(tensor: Tensor) -> _Kept:
        box = _Kept(tensor)
        boxes.add(box)
        return box

    value = torch.ones(4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        for _ in range(length):
            value = value.sin()
    counts: list[int] = []
    for node in nodes_of(value):
        node.register_prehook(lambda grads: counts.append(len(boxes)))
    torch.autograd.backward(value, torch.ones(4), **options)
    return [*counts[:-1], len(boxes)]


def _ends(program: str) -> tuple[int, str]:
    done = run([sys.executable, "-W", "ignore", "-c", program], env=environment())
    return done.returncode, done.stdout.strip()


def freed(*cases: tuple[int, bool]) -> list[str]:
    """Say for each case how a process ends that makes a chain of nodes and drops it.

    :param cases: how many nodes, and whether Python holds each for a moment, as `x.grad_fn` does.
        Each runs in a child of one new process.
    """
    _, said = _ends(f"""
import os, torch
for length, seen in {list(cases)}:
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        print(f"signal {{os.WTERMSIG(status)}}" if os.WIFSIGNALED(status) else "freed", flush=True)
        continue
    z = torch.ones(1, requires_grad=True)
    held = []
    for _ in range(length):
        z = z * 1.0
        if seen:
            held.append(z.grad_fn)
    del held, z
    os._exit(0)
""")
    return said.splitlines()


def interrupted() -> str:
    """Send SIGINT while C++ runs a long backward pass; say whether `.grad` is there when it raises.

    The other thread is let run by nothing but the pass itself, which gives Python's lock back.
    """
    _, said = _ends("""
import os, signal, sys, threading, torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started it may ignore the signal
leaf = z = torch.ones(1, requires_grad=True)
for _ in range(100_000):
    z = z * 1.0
began = threading.Event()
def other():
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)
sys.setswitchinterval(1000)
threading.Thread(target=other).start()
z.grad_fn.register_prehook(lambda grads: began.set())
try:
    z.backward()
    while True:
        began.wait(1)
except KeyboardInterrupt:
    print("filled" if leaf.grad is not None else "not filled")
""")
    return said
