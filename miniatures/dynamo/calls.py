"""What values do in the small Dynamo: which calls go into the graph, and which are worked out."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch.nn import functional

from miniatures.dynamo.values import Break, Method, Recorder, Var

DATA = {"item", "tolist", "numpy", "backward"}  # methods that need data
MEANT = {"shape", "ndim", "dtype", "device", "requires_grad"}  # attributes known without data
FOLDED = (len, range, int, float, abs, min, max, isinstance)  # called while tracing
GRAPHED = {id(f) for m in (torch, functional) for f in vars(m).values() if callable(f)}

Recipe = Callable[[Sequence[Any], dict[str, Any]], Any]  # from outputs and scope to a value


class Tracer(Recorder):
    """A recorder that computes with Vars."""

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

    def items(self, var: Var) -> Any:
        """Return the elements of a list, a tuple or an iterator."""
        if isinstance(value := self.look(var).value, torch.Tensor):
            raise Break("a loop over a tensor")
        return value
