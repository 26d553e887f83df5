"""The autograd engine in miniature: one thread, one queue, PyTorch's nodes."""

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

from insidetorch.private.graph import input_metadata, sequence_nr

Node: TypeAlias = Any  # torch.autograd.graph.Node, or one of a Python Function
Edges: TypeAlias = Iterable[tuple[Node | None, int]]  # and a slot of its buffer
Grads: TypeAlias = Sequence[Tensor | None]


@dataclass(eq=False)
class GraphTask:
    """One `backward`: what each node still waits for, and what has arrived."""

    depth: int  # how many calls of backward this one runs inside
    dependencies: Counter[Node] = field(default_factory=Counter)
    not_ready: dict[Node, list[Tensor | None]] = field(default_factory=dict)
    outstanding: int = 0  # tasks in the queue, plus the one that runs
    failed: bool = False
    callbacks: list[Callable[[], object]] = field(default_factory=list)


class NodeTask:
    """A node whose gradients have all arrived, waiting for its turn."""

    def __init__(self, owner: GraphTask, node: Node, inputs: Grads) -> None:
        self.owner = weakref.ref(owner)
        self.node, self.inputs = node, inputs

    def urgency(self) -> tuple[float, float]:
        """Deeper pass first, then greater number; leaves: the greatest."""
        owner, number = self.owner(), sequence_nr(self.node)
        depth = owner.depth if owner else math.inf
        return depth, math.inf if number is None else number

    def __lt__(self, other: NodeTask) -> bool:
        return self.urgency() > other.urgency()  # heapq pops the smallest


class Engine:
    """Runs graphs backwards; `grads` plays the part of the `.grad` fields."""

    def __init__(self) -> None:
        self.ready: list[NodeTask] = []
        self.running: list[GraphTask] = []
        self.grads: dict[Tensor, Tensor] = {}
        self.order: list[Node] = []
        self.pre_hooks: dict[Node, list[Callable[..., Any]]] = defaultdict(list)

    def backward(self, *roots: Tensor, grads: Grads = (), create_graph: bool = False) -> None:
        """Accumulate into `self.grads` what `torch.autograd.backward` would.

        :param grads: one gradient for each root; ones where it is left out.
        :param create_graph: record the backward pass itself.
        """
        task = GraphTask(depth=len(self.running))
        edges = [get_gradient_edge(root)[:2] for root in roots]
        task.dependencies = count_dependencies(edges)
        grads = grads or [torch.ones_like(root) for root in roots]
        self.running.append(task)
        try:
            with torch.set_grad_enabled(create_graph):
                self.deliver(task, edges, grads)
                self.run(task)
                for callback in task.callbacks:  # a callback may queue another
                    callback()
        finally:
            self.running.pop()

    def run(self, task: GraphTask) -> None:
        """Take tasks from the queue, of any owner, until `task` is done."""
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

    def deliver(self, task: GraphTask, edges: Edges, grads: Grads) -> None:
        """Add each gradient to the buffer at its edge; queue full nodes."""
        for (node, slot), grad in zip(edges, grads, strict=True):
            if node is None:
                continue  # that input of the operation wanted no gradient
            expected = input_metadata(node)
            buffer = task.not_ready.setdefault(node, [None] * len(expected))
            if grad is not None:
                held, grad = buffer[slot], fit(grad, expected[slot])
                buffer[slot] = grad if held is None else held + grad
            task.dependencies[node] -= 1
            if task.dependencies[node] == 0:
                job = NodeTask(task, node, task.not_ready.pop(node))
                heapq.heappush(self.ready, job)
                task.outstanding += 1

    def accumulate(self, leaf: Tensor, grad: Tensor | None) -> Grads:
        """Do as AccumulateGrad does, but always copy the first gradient."""
        if grad is not None and leaf not in self.grads:
            self.grads[leaf] = torch.empty_like(leaf.detach()).copy_(grad)
        elif grad is not None and torch.is_grad_enabled():
            self.grads[leaf] = self.grads[leaf] + grad
        elif grad is not None:
            self.grads[leaf].add_(grad)
        return ()


def count_dependencies(roots: Edges) -> Counter[Node]:
    """Count, for each node from `roots` on, the gradients it will get."""
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
    """Undo broadcasting and casts: a gradient gets the shape of its value."""
    return grad.sum_to_size(tuple(expected.shape)).to(expected.dtype)
