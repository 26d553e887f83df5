"""What PyTorch's engine does, seen from outside: the order of nodes, nesting, forks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from miniatures.engine import count_dependencies


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
from miniatures.observe import nested
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
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": root, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()
