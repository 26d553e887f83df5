"""What the small Dynamo knows of Python's values: which are guarded, and how; what they do."""

from __future__ import annotations

import builtins
import inspect
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import fx
from torch.nn import functional

DATA = {"item", "tolist", "numpy", "backward"}  # methods that need data
MEANT = {"shape", "ndim", "dtype", "device", "requires_grad"}  # attributes known without data
ITSELF = (FunctionType, type, ModuleType, type(len))  # such a thing is guarded by identity
FOLDED = (len, range, int, float, abs, min, max, isinstance)  # called while tracing
GRAPHED = {id(f) for m in (torch, functional) for f in vars(m).values() if callable(f)}

Recipe = Callable[[Sequence[Any], dict[str, Any]], Any]  # from outputs and scope to a value


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


class Tracer:
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

    def local(self, name: str) -> Var:
        """Return a variable of the frame, not looked at yet."""
        return self.at(f"L[{name!r}]")

    def at(self, place: str) -> Var:
        """Return what the frame has in a place, not looked at yet."""
        return Var(eval(place, self.scope), place, lazy=True)

    def named(self, function: str, name: str) -> Var:
        """Return a global variable of a function, or a builtin."""
        if name in eval(f"{function}.__globals__", self.scope):
            return self.at(f"{function}.__globals__[{name!r}]")
        return Var(getattr(builtins, name))

    def items(self, var: Var) -> Any:
        """Return the elements of a list, a tuple or an iterator."""
        if isinstance(value := self.look(var).value, torch.Tensor):
            raise Break("a loop over a tensor")
        return value

    def recipe(self, var: Var, returned: bool = False) -> Recipe:
        """Say how to make the real value later: from the frame, from the graph, or at once."""
        through = returned and isinstance(self.look(var).value, torch.Tensor)
        if (source := var.source) is not None and not through:
            return lambda outs, scope: eval(source, scope)
        if var.node is not None:
            index = self.outputs.setdefault(var.node, len(self.outputs))
            return lambda outs, scope: outs[index]
        if isinstance(value := var.value, (list, tuple)):
            parts = [self.recipe(item) for item in value]
            return lambda outs, scope: type(value)(part(outs, scope) for part in parts)
        if isinstance(value, Method):
            owner, name = self.recipe(value.owner), value.function
            name = name.value.__name__ if isinstance(name, Var) else name
            return lambda outs, scope: getattr(owner(outs, scope), name)
        return lambda outs, scope: value

    def effects(self) -> list[tuple[str, list[Recipe]]]:
        """Say what lists of the frame hold at the end."""
        lists = [(var.source, [self.recipe(v) for v in var.value]) for var in self.written]
        return [(source, parts) for source, parts in lists if source]

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
            for other in self.seen.values():
                self.guard(f"{name} is {other.source}", bool)
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

    def parts(self, var: Var, of_graph: bool) -> Any:
        """Return nodes, as arguments in the graph; or values without data, to try a call."""
        value = self.look(var).value
        if isinstance(value, (list, tuple)):
            return type(value)(self.parts(item, of_graph) for item in value)
        if isinstance(value, slice):
            return slice(*(self.plain(x) for x in (value.start, value.stop, value.step) if x))
        return var.node if of_graph and var.node is not None else value

    def emit(self, op: str, target: Any, args: Sequence[Var], **kwargs: Var) -> Var:
        """Add a call to the graph; a try shows what comes out."""
        both = (True, False)
        nodes, values = ([self.parts(a, which) for a in args] for which in both)
        named, tried = ({k: self.parts(a, which) for k, a in kwargs.items()} for which in both)
        node = self.graph.create_node(op, target, tuple(nodes), named)
        call = getattr(torch.Tensor, target) if op == "call_method" else target
        result = call(*values, **tried)
        if not isinstance(result, (tuple, list)):
            return Var(result, node=node)
        pick = partial(self.graph.call_function, operator.getitem)
        parts = [Var(r, node=pick((node, i))) for i, r in enumerate(result)]
        self.picks += [part.node for part in parts]
        return Var(tuple(parts))

    def compute(self, function: Callable[..., Any], args: Sequence[Var]) -> Var:
        """Compute with an operator: in the graph if a tensor takes part, else at once."""
        values = [self.look(arg).value for arg in args]
        if any(isinstance(value, torch.Tensor) for value in values):
            if function in (operator.is_, operator.is_not):
                return Var(function(*values))
            return self.emit("call_function", function, args)
        if function is operator.getitem and isinstance(values[0], (list, tuple, dict)):
            key, source = self.plain(args[1]), args[0].source
            if isinstance(values[0], dict):
                return Var(values[0][key], f"{source}[{key!r}]", lazy=True)
            return values[0][key]  # type: ignore[no-any-return]
        return Var(function(*(self.plain(arg) for arg in args)))

    def attribute(self, var: Var, name: str) -> Var:
        """Read an attribute: of a tensor, a list, or any object that the frame can name."""
        owner = self.look(var).value
        if isinstance(owner, torch.Tensor) and name in MEANT:
            return self.meant(var, getattr(owner, name))
        if isinstance(owner, torch.Tensor) and not callable(getattr(owner, name)):
            return self.emit("call_function", getattr, [var, Var(name)])
        if var.source is None or isinstance(owner, (torch.Tensor, list, tuple)):
            return Var(Method(name, var))
        value, source = getattr(owner, name), f"{var.source}.{name}"
        if inspect.ismethod(value):
            return Var(Method(Var(value.__func__, f"{source}.__func__", lazy=True), var))
        read = Var(value, source, lazy=True)
        return self.look(read) if isinstance(value, torch.Tensor) else read

    def meant(self, var: Var, value: Any) -> Var:
        """Answer a question about a tensor without data: that relies on every size of it."""
        for source in [var.source] if var.source else [v.source for v in self.seen.values()]:
            self.guard(f"{source}.shape", tuple)
        return Var(tuple(map(Var, value)) if isinstance(value, tuple) else value)

    def call(self, function: Var, args: Sequence[Var], kwargs: dict[str, Var]) -> Var | None:
        """Call something that is not written in Python; of what is, return None."""
        value = self.look(function).value
        if isinstance(value, Method) and isinstance(value.owner.value, torch.Tensor):
            if value.function in DATA:
                raise Break(f"Tensor.{value.function}")
            if value.function in ("size", "dim"):
                size = [self.plain(arg) for arg in args]
                return self.meant(value.owner, getattr(value.owner.value, value.function)(*size))
            return self.emit("call_method", value.function, [value.owner, *args], **kwargs)
        if isinstance(value, Method) and value.function == "append":
            self.written += [value.owner] * (value.owner not in self.written)
            return Var(value.owner.value.append(*args))
        if id(value) in GRAPHED:
            return self.emit("call_function", value, args, **kwargs)
        if value is len and isinstance(self.look(args[0]).value, (list, tuple)):
            return Var(len(args[0].value))
        if value in FOLDED:
            result = value(*(self.plain(arg) for arg in args))
            return Var([Var(i) for i in result]) if value is range else Var(result)
        of_python = isinstance(value, Method) and isinstance(value.function, Var)
        if isinstance(value, (FunctionType, torch.nn.Module)) or of_python:
            return None
        raise Break(f"a call of {value!r}")
