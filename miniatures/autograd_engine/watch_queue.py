"""A backward pass step by step: what waits, what is queued, what runs and why it was next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from insidetorch.private.graph import sequence_nr
from miniatures.autograd_engine.engine import Engine, Grads, GraphTask, Node
from miniatures.autograd_engine.watch import short


@dataclass(frozen=True)
class State:
    """One moment of a pass: a node has just left the queue.

    :param running: the node that left it; None before the first and after the last.
    :param waiting: how many gradients each node still waits for, if any.
    :param queue: the nodes in the queue, the next one first.
    :param done: the nodes that have run.
    :param says: what happens, in a sentence.
    """

    running: Node | None
    waiting: Mapping[Node, int]
    queue: tuple[Node, ...]
    done: frozenset[Node]
    says: str


class Recorder(Engine):
    """The miniature engine, which notes its state whenever a node leaves the queue."""

    def __init__(self, names: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = {id(tensor): name for name, tensor in names.items()}
        self.states: list[State] = []

    def evaluate(self, task: GraphTask, node: Node, inputs: Grads) -> Grads:
        """Note the state, then run the node."""
        others = tuple(job.node for job in sorted(self.ready))
        says = f"`{self.label(node)}` has left the queue and runs: {self._why(node, others)}"
        self._note(task, node, others, says)
        return super().evaluate(task, node, inputs)

    def deliver(self, task: GraphTask, edges: Any, grads: Grads) -> None:
        """Deliver; the first time, note the state in which the pass begins."""
        edges = list(edges)
        begins = not self.states
        if begins:
            says = "The counts are made. Nothing has run; the root's gradient is about to come."
            self._note(task, None, (), says)
        super().deliver(task, edges, grads)
        if not begins and not self.ready:
            self._note(task, None, (), "The queue is empty and nothing waits: the pass is over.")

    def label(self, node: Node) -> str:
        """Return a node's name: that of its tensor for a leaf."""
        leaf = getattr(node, "variable", None)
        return short(node) if leaf is None else f"AccumulateGrad of {self.names[id(leaf)]}"

    def _why(self, node: Node, others: tuple[Node, ...]) -> str:
        number = sequence_nr(node)
        if not others:
            return "it is the only one."
        if number is None and sequence_nr(others[0]) is None:
            return "two leaves are ready; they count as equal."
        if number is None:
            return f"a leaf goes before `{self.label(others[0])}`."
        return f"its number, {number}, is greater than {sequence_nr(others[0])}."

    def _note(
        self, task: GraphTask, running: Node | None, queue: tuple[Node, ...], says: str
    ) -> None:
        waiting = {node: count for node, count in task.dependencies.items() if count > 0}
        self.states.append(State(running, waiting, queue, frozenset(self.order), says))


def recorded(root: Tensor, names: Mapping[str, Tensor]) -> Recorder:
    """Run the miniature engine from `root` and return it with the states of its queue.

    :param names: the leaves by name.
    """
    engine = Recorder(names)
    engine.backward(root)
    return engine
