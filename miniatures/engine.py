"""The autograd engine in miniature: it drives PyTorch's own graph nodes, in PyTorch's own order.

One thread, one queue. As the nodes are real (`tensor.grad_fn`), the engine alone is compared.
"""

from __future__ import annotations

import heapq
import math
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from insidetorch.private import input_metadata, sequence_nr

Node: TypeAlias = Any  # torch.autograd.graph.Node, or a node of a Python Function
Edge: TypeAlias = tuple[Node | None, int]  # a node, and the slot of its input buffer
Grads: TypeAlias = Sequence[Tensor | None]


@dataclass(eq=False)
class GraphTask:
    """One call of `backward`: what each node still waits for, and what has arrived."""

    create_graph: bool
    depth: int  # how many calls of backward this one runs inside
    dependencies: Counter[Node] = field(default_factory=Counter)
    not_ready: dict[Node, list[Tensor | None]] = field(default_factory=dict)
    outstanding: int = 0  # tasks in the queue, plus the one that runs
    failed: bool = False
    callbacks: list[Callable[[], object]] = field(default_factory=list)


class NodeTask:
    """A node whose gradients have all arrived, waiting for its turn."""

    def __init__(self, owner: GraphTask, node: Node, inputs: Grads) -> None:
        self.owner, self.node, self.inputs = weakref.ref(owner), node, inputs

    def urgency(self) -> tuple[float, float]:
        """Deeper backward first, then the younger node; a leaf counts as the youngest of all."""
        owner, number = self.owner(), sequence_nr(self.node)
        return owner.depth if owner else math.inf, math.inf if number is None else number

    def __lt__(self, other: NodeTask) -> bool:
        return self.urgency() > other.urgency()  # heapq takes the smallest first


class Engine:
    """Runs graphs backwards; `grads` plays the part of the `.grad` fields."""

    def __init__(self) -> None:
        self.ready: list[NodeTask] = []
        self.running: list[GraphTask] = []
        self.grads: dict[Tensor, Tensor] = {}
        self.order: list[Node] = []
        self.pre_hooks: dict[Node, list[Callable[[Grads], Grads | None]]] = defaultdict(list)

    def backward(self, *roots: Tensor, grads: Grads = (), create_graph: bool = False) -> None:
        """Accumulate into `self.grads` what `torch.autograd.backward(roots, grads)` would.

        :param roots: tensors with history.
        :param grads: one gradient for each root; ones where it is left out.
        :param create_graph: record the backward pass itself.
        """
        task = GraphTask(create_graph, depth=len(self.running))
        edges: list[Edge] = [get_gradient_edge(root)[:2] for root in roots]
        task.dependencies = count_dependencies(edges)
        self.running.append(task)
        try:
            with torch.set_grad_enabled(create_graph):
                self.deliver(task, edges, grads or [torch.ones_like(root) for root in roots])
                self.run(task)
                for callback in task.callbacks:  # a callback may queue another
                    callback()
        finally:
            self.running.pop()

    def run(self, task: GraphTask) -> None:
        """Take tasks from the queue, whoever owns them, until `task` is done."""
        while task.outstanding:
            job = heapq.heappop(self.ready)
            owner = job.owner()
            if owner is None or owner.failed:
                continue  # left behind by a backward that raised
            try:
                outputs = self.evaluate(owner, job.node, job.inputs)
            except BaseException:
                owner.failed = True
                raise
            self.deliver(owner, job.node.next_functions, outputs)
            owner.outstanding -= 1

    def evaluate(self, task: GraphTask, node: Node, inputs: Grads) -> Grads:
        """Run the hooks of a node, then the node."""
        self.order.append(node)
        for hook in self.pre_hooks[node]:
            inputs = hook(inputs) or inputs
        if hasattr(node, "variable"):
            return self.accumulate(node.variable, inputs[0])
        outputs = node(*inputs) if callable(node) else node.apply(*inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def deliver(self, task: GraphTask, edges: Iterable[Edge], grads: Grads) -> None:
        """Add each gradient to the buffer at the end of its edge; queue the nodes that are full."""
        for (node, slot), grad in zip(edges, grads, strict=True):
            if node is None:
                continue  # that input of the forward operation wanted no gradient
            buffer = task.not_ready.setdefault(node, [None] * len(input_metadata(node)))
            if grad is not None:
                held, grad = buffer[slot], fit(grad, input_metadata(node)[slot])
                buffer[slot] = grad if held is None else held + grad
            task.dependencies[node] -= 1
            if task.dependencies[node] == 0:
                heapq.heappush(self.ready, NodeTask(task, node, task.not_ready.pop(node)))
                task.outstanding += 1

    def accumulate(self, leaf: Tensor, grad: Tensor | None) -> Grads:
        """Do what AccumulateGrad does, but for the stealing: always copy the first gradient."""
        if grad is not None and leaf not in self.grads:
            self.grads[leaf] = torch.empty_like(leaf, requires_grad=False).copy_(grad)
        elif grad is not None and torch.is_grad_enabled():
            self.grads[leaf] = self.grads[leaf] + grad
        elif grad is not None:
            self.grads[leaf].add_(grad)
        return ()


def count_dependencies(roots: Iterable[Edge]) -> Counter[Node]:
    """Count, for each node reachable from `roots`, the gradients that will be sent to it."""
    counts: Counter[Node] = Counter(node for node, _ in roots)
    to_visit = list(counts)
    while to_visit:
        for node, _ in to_visit.pop().next_functions:
            if node is not None:
                if node not in counts:
                    to_visit.append(node)
                counts[node] += 1
    return counts


def fit(grad: Tensor, expected: Any) -> Tensor:
    """Undo broadcasting and casts, so that a gradient looks like the value it belongs to."""
    return grad.sum_to_size(tuple(expected.shape)).to(expected.dtype)
