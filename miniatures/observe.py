"""What PyTorch's engine did, seen from outside: the nodes of a graph in the order they ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
