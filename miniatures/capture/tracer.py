"""FX's tracer in small: proxies write down what is done to them."""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.overrides import is_tensor_method_or_property
from torch.utils._pytree import tree_map

from miniatures.capture.nodes import Names, Node

OPERATORS = ["add", "sub", "mul", "truediv", "pow", "matmul", "getitem", "neg", "abs", "gt", "lt"]


class Tracer:
    """Calls a function with proxies, and keeps the nodes that they make."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names, self.parameters = Names(), dict[str, Proxy]()

    def trace(self, root: Any) -> list[Node]:
        """Return the nodes of a function, or of a module's `forward`."""
        self.root: Any = root if isinstance(root, nn.Module) else nn.Module()
        function = type(root).forward if self.root is root else root
        args: list[Any] = [root] if self.root is root else []
        for name, one in list(inspect.signature(function).parameters.items())[len(args) :]:
            default = () if one.default is one.empty else (one.default,)
            args.append(self.record("placeholder", name, default, {}))
        call, get = nn.Module.__call__, nn.Module.__getattr__
        with (
            patch.object(nn.Module, "__call__", lambda m, *a, **k: self.module(call, m, a, k)),
            patch.object(nn.Module, "__getattr__", lambda m, name: self.read(get(m, name))),
        ):
            self.record("output", "output", (function(*args),), {})
        return self.nodes

    def record(self, op: str, target: Any, args: Any, kwargs: Any) -> Proxy:
        """Make a node of what was done; its result does not exist, so return a proxy for it."""
        args, kwargs = tree_map(self.lower, (args, kwargs))
        name = target if isinstance(target, str) else target.__name__
        if name.startswith("__"):
            name = name.strip("_")
        self.nodes.append(Node(op, self.names.new(name), target, args, kwargs))
        return Proxy(self, self.nodes[-1])

    def lower(self, value: Any) -> Any:
        """Turn an argument into what a node may hold: a node, or a plain value."""
        if isinstance(value, torch.Tensor):  # it exists already: kept beside the list
            known = {**dict(self.root.named_buffers()), **vars(self.root)}
            name = next((name for name, one in known.items() if one is value), "")
            if not name:
                count = sum(key.startswith("_tensor_constant") for key in known)
                setattr(self.root, name := f"_tensor_constant{count}", value)
            value = self.record("get_attr", name, (), {})
        return value.to_node() if isinstance(value, Proxy) else value

    def module(self, call: Any, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Keep a layer of PyTorch as one call; go through the modules of other people."""
        (path,) = [name for name, one in self.root.named_modules() if one is module]
        if type(module).__module__.startswith("torch.nn") and type(module) is not nn.Sequential:
            return self.record("call_module", path, args, kwargs)
        return call(module, *args, **kwargs)

    def read(self, value: Any) -> Any:
        """Give a proxy for a parameter that is read from a module, one for each."""
        for name, known in self.root.named_parameters() if isinstance(value, nn.Parameter) else ():
            if known is value and name not in self.parameters:
                self.parameters[name] = self.record("get_attr", name, (), {})
            if known is value:
                return self.parameters[name]
        return value


class Proxy:
    """Stands for a value that does not exist yet."""

    def __init__(self, tracer: Tracer, node: Node | None) -> None:
        self.tracer, self.node = tracer, node

    def to_node(self) -> Node:
        assert self.node is not None
        return self.node

    def __getattr__(self, name: str) -> Attribute:
        return Attribute(self, name)

    def __bool__(self) -> bool:
        raise TypeError("the branch needs a value, and there is none")

    def __iter__(self) -> Iterator[Proxy]:
        frame = sys._getframe(1)
        lines = {line.offset: line for line in dis.get_instructions(frame.f_code)}
        if (line := lines[frame.f_lasti]).opname != "UNPACK_SEQUENCE":
            raise TypeError("the loop needs a value, and there is none")
        return (self[i] for i in range(line.argval))  # type: ignore[index]  # a, b = x

    @classmethod
    def __torch_function__(cls, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found: list[Proxy] = []
        tree_map(lambda one: found.append(one) if isinstance(one, Proxy) else None, (args, kwargs))
        if is_tensor_method_or_property(called):
            return found[0].tracer.record("call_method", called.__name__, args, kwargs or {})
        return found[0].tracer.record("call_function", called, args, kwargs or {})


class Attribute(Proxy):
    """`x.name`, before it is known whether it will be called."""

    def __init__(self, owner: Proxy, name: str) -> None:
        super().__init__(owner.tracer, None)
        self.owner, self.name = owner, name

    def to_node(self) -> Node:
        if self.node is None:
            made = self.tracer.record("call_function", getattr, (self.owner, self.name), {})
            self.node = made.to_node()
        return self.node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.record("call_method", self.name, (self.owner, *args), kwargs)


def _operator(name: str, swap: bool) -> Callable[..., Proxy]:
    def run(self: Proxy, *rest: Any) -> Proxy:
        args = (*rest, self) if swap else (self, *rest)
        return self.tracer.record("call_function", getattr(operator, name), args, {})

    return run


for _name in OPERATORS:
    setattr(Proxy, f"__{_name}__", _operator(_name, False))
    setattr(Proxy, f"__r{_name}__", _operator(_name, True))
