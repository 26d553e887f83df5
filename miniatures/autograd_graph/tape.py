"""Recording in miniature: from PyTorch's own derivatives.yaml to PyTorch's own graph.

`record` calls an operator and remembers the call. The miniature engine runs the graph that comes
of it. Left out: views and writes in place, lists of tensors, hooks, derivatives of derivatives.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from insidetorch.private.schemas import operator_arguments, operator_results
from miniatures.autograd_graph.derivatives import PARTS, Names, Rule, overload, rules

Edge: TypeAlias = tuple[Any, int]  # a node, and which of the gradients it takes
clock = itertools.count()  # gives out sequence numbers


@dataclass(eq=False)
class Value:
    """A tensor, and what autograd keeps beside it."""

    data: Tensor
    requires_grad: bool = False
    grad_fn: Node | None = None
    output_nr: int = 0
    accumulator: Callable[[], AccumulateGrad | None] = lambda: None  # weak: the graph owns it

    def view_as(self, other: Value) -> Value:
        """Record a view: `torch.autograd.graph.get_gradient_edge` asks a leaf for its node so."""
        view: Value = record("view", self, list(other.data.shape))
        return view


@dataclass(eq=False)
class AccumulateGrad:
    """The node of a leaf; the only one that knows whose gradient it gets."""

    variable: Tensor
    next_functions: tuple[Edge, ...] = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    @property
    def _input_metadata(self) -> list[Tensor]:
        return [self.variable]


@dataclass(eq=False)
class Node:
    """The derivative of one call: made and linked before the kernel runs."""

    rule: Rule
    next_functions: list[Edge]
    saved: dict[str, Any] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(clock))
    _input_metadata: list[Tensor] = field(default_factory=list)

    def name(self) -> str:
        return self.rule.node

    def _sequence_nr(self) -> int:
        return self.number

    def save_input(self, name: str, value: Any) -> None:
        """Keep an input, if a formula that will run mentions it."""
        users, formulas = self.rule.users(name), list(self.rule.formulas)
        if isinstance(value, Value) and len(formulas) > 1 == len(users):
            place = formulas.index(users[0])
            users = users if self.next_functions[place][0] else []
        if users:
            self.saved[name] = value
        for part, read in PARTS.items() if isinstance(value, Value) else ():
            if self.rule.users(f"{name}_{part}"):
                self.saved[f"{name}_{part}"] = read(value.data)

    def save_output(self, name: str, value: Value) -> None:
        """Keep an output that a formula mentions, but not its history."""
        if name and self.rule.users(name):
            self.saved[name] = value.data

    def adopt(self, output: Value) -> None:
        """Become the history of an output: set_history."""
        output.requires_grad, output.grad_fn = True, self
        output.output_nr = len(self._input_metadata)
        self._input_metadata.append(output.data)

    def __call__(self, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return a gradient for each edge: its formula on what was saved."""
        if all(grad is None for grad in grads):
            return (None,) * len(self.next_functions)
        pairs = zip(grads, self._input_metadata, strict=True)
        filled = [torch.zeros_like(m) if g is None else g for g, m in pairs]
        saved = {name: plain(value) for name, value in self.saved.items()}
        names = Names(saved | {"grad": filled[0], "grads": filled})
        due = zip(self.rule.formulas.values(), self.next_functions, strict=True)
        return tuple(eval(f, {}, names) if n else None for f, (n, _) in due)


def record(operator: str, *args: Any, **options: Any) -> Any:
    """Call an ATen operator, such as ``mul.Tensor``; record it if need be.

    :param args: values, numbers and lists, as in the operator's schema.
    """
    kernel = overload(operator)
    inputs = operator_arguments(kernel)
    inputs |= dict(zip(inputs, args, strict=False)) | options
    rule, node = rules().get(operator), None
    asked = [inputs[name] for name in rule.formulas] if rule else []
    wanted = torch.is_grad_enabled() and any(v.requires_grad for v in asked)
    if rule and wanted:
        node = Node(rule, [gradient_edge(value) for value in asked])
        for name, value in inputs.items():
            node.save_input(name, value)
    with torch.no_grad():
        raw = kernel(*map(plain, args), **options)
    single = isinstance(raw, Tensor)
    outputs = [Value(tensor) for tensor in ([raw] if single else raw)]
    names = ["result"] if single else operator_results(kernel)
    if node is not None:
        for output in outputs:
            if output.data.is_floating_point():
                node.adopt(output)
        for name, output in zip(names, outputs, strict=False):
            node.save_output(name, output)
    return outputs[0] if single else outputs


def gradient_edge(value: Value) -> Edge:
    """Return the node that takes the gradient of `value`, and which one it is."""
    if value.grad_fn is not None or not value.requires_grad:
        return value.grad_fn, value.output_nr
    node = value.accumulator() or AccumulateGrad(value.data)
    value.accumulator = weakref.ref(node)
    return node, 0


def plain(value: Any) -> Any:
    """Return the tensor of a `Value`, and anything else as it is."""
    return value.data if isinstance(value, Value) else value
