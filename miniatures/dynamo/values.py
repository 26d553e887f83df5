"""What the small Dynamo knows of Python's values: which are guarded, and how."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import fx

ITSELF = (FunctionType, type, ModuleType, type(len))  # such a thing is guarded by identity


class Break(Exception):
    """This instruction cannot be part of a graph."""


def exactly(value: Any) -> tuple[type, Any]:
    """Be the kind of guard that holds for equal values of one type."""
    return type(value), value


@dataclass(eq=False)
class Var:
    """What the interpreter knows of one value: a variable tracker."""

    value: Any  # itself; for a tensor, one without data; for a list, its Vars
    source: str | None = None  # where the frame has it
    node: Any = None  # what computes it in the graph
    lazy: bool = False  # nobody looked at it yet, so no guard speaks of it


@dataclass
class Method:
    """A method with its owner: a Var of a Python function, or the name of a built-in one."""

    function: Any
    owner: Var


class Recorder:
    """A graph in the making, and what it relies on."""

    def __init__(self, state: dict[str, Any], scope: dict[str, Any]) -> None:
        self.state, self.scope, self.graph = state, scope, fx.Graph()
        self.first = self.graph.create_node("get_attr", "first")  # inputs go before, calls after
        self.guards: list[tuple[str, Callable[[Any], Any], Any]] = []
        self.seen: dict[int, Var] = {}
        self.inputs: dict[fx.Node, str] = {}
        self.picks: list[fx.Node] = []
        self.outputs: dict[fx.Node, int] = {}
        self.written: list[Var] = []

    def at(self, place: str) -> Var:
        """Return what the frame has in a place, not looked at yet."""
        return Var(eval(place, self.scope), place, lazy=True)

    def named(self, function: str, name: str) -> Var:
        """Return a global variable of a function, or a builtin."""
        if name in eval(f"{function}.__globals__", self.scope):
            return self.at(f"{function}.__globals__[{name!r}]")
        return Var(getattr(builtins, name))

    def finished(self) -> fx.GraphModule:
        """Close the graph; inputs and elements that nothing uses go."""
        for node in [self.first, *self.inputs, *self.picks]:
            if not node.users and node not in self.outputs:
                self.graph.erase_node(node)
                self.inputs.pop(node, None)
        self.graph.output(tuple(self.outputs))
        return fx.GraphModule({}, self.graph)

    def guard(self, name: str, kind: Callable[[Any], Any]) -> None:
        """Rely on a fact about a value of the frame."""
        self.guards.append((name, kind, kind(eval(name, self.scope))))

    def changing(self, name: str, now: Any) -> bool:
        """Tell whether a number was another one in an earlier translation; remember it."""
        self.state[name] = now if self.state.get(name, now) == now else None
        return self.state[name] is None

    def placeholder(self, name: str, filled: str = "{}") -> fx.Node:
        """Add an input to the graph, behind those that it has."""
        with self.graph.inserting_before(self.first):
            node = self.graph.placeholder(re.sub(r"\W+", "_", name))
        self.inputs[node] = filled.format(name)
        return node

    def look(self, var: Var) -> Var:
        """Use a value: at the first time guard it, and make a tensor an input."""
        value, name = var.value, var.source
        if not var.lazy or name is None:
            return var
        var.lazy = False
        if isinstance(value, torch.Tensor):
            if first := self.seen.get(id(value)):  # two names of one tensor
                self.guard(f"{name} is {first.source}", bool)
                var.source, var.node, var.value = first.source, first.node, first.value
                return var
            self.tensor(value, name)
            var.node, var.value = self.placeholder(name), value.detach().to("meta")
            self.seen[id(value)] = var
        elif value is None or isinstance(value, (bool, str, torch.dtype)):
            self.guard(name, exactly)
        elif isinstance(value, (int, float)):
            self.guard(name, type)
            if not self.changing(name, value):
                self.guard(name, exactly)
            elif isinstance(value, int):
                var.node = self.placeholder(name)
            else:  # a backend gets a float that changes as a tensor
                number = self.placeholder(name, "torch.tensor({}, dtype=torch.float64)")
                var.node = self.graph.call_method("item", (number,))
        elif type(value) in (list, tuple):
            self.guard(name, lambda v: (type(v), len(v)))
            items = (Var(v, f"{name}[{i}]", lazy=True) for i, v in enumerate(value))
            var.value = type(value)(items)
        else:
            self.guard(name, id if isinstance(value, ITSELF) else type)
        return var

    def tensor(self, value: torch.Tensor, name: str) -> None:
        """Guard a tensor: everything but its data; a size that has changed may change again."""
        for other in self.seen.values():
            self.guard(f"{name} is {other.source}", bool)
        self.guard(name, lambda t: (type(t), t.dtype, t.device, t.requires_grad, t.ndim))
        moving = [self.changing(f"{name}[{i}]", n) and n > 1 for i, n in enumerate(value.shape)]
        for i, moves in enumerate(moving):
            self.guard(f"{name}.shape[{i}] > 1" if moves else f"{name}.shape[{i}]", int)
        self.guard(name, torch.Tensor.is_contiguous if any(moving) else torch.Tensor.stride)

    def plain(self, var: Var) -> Any:
        """Return a value that is no tensor as it is; a changing number is fixed by that."""
        if isinstance(self.look(var).value, torch.Tensor):
            raise Break(f"the data of {var.node}")
        if var.node is not None:
            if var.source is None:
                raise Break("a number that changes")
            self.guard(var.source, exactly)
        if type(var.value) in (list, tuple):
            return type(var.value)(self.plain(item) for item in var.value)
        return var.value
