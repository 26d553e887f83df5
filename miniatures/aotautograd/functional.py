"""Functionalisation in small: a program with views and writes becomes a list of calls without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Step = tuple[str, tuple[Any, ...]]
"""A view: the operator, and what it is called with besides the tensor."""


@dataclass(eq=False)
class Value:
    """One value of the graph: the call that makes it. It is never written to."""

    op: str
    args: tuple[Any, ...]
    shape: tuple[int, ...]


@dataclass(eq=False)
class Base:
    """What all views of one memory share: its value, and the writes not yet put into it."""

    value: Value
    writes: list[tuple[tuple[Step, ...], Value]] = field(default_factory=list)
    generation: int = 0


@dataclass(eq=False)
class Alias:
    """A tensor of the program: the views that lead to it from its base, and its last value."""

    base: Base
    chain: tuple[Step, ...]
    value: Value
    generation: int


class Functionaliser:
    """Write down what a program calls; a write becomes a new value."""

    def __init__(self) -> None:
        self.values: list[Value] = []

    def emit(self, op: str, *args: Any, shape: tuple[int, ...]) -> Value:
        """Add a call to the graph."""
        self.values.append(Value(op, args, shape))
        return self.values[-1]

    def fresh(self, value: Value) -> Alias:
        """Return a tensor with a memory of its own."""
        return Alias(Base(value), (), value, 0)

    def pure(self, op: str, tensor: Alias, *args: Any) -> Alias:
        """Call an operator that reads and makes something new."""
        read = [self.read(each) for each in (tensor, *args)]
        return self.fresh(self.emit(op, *read, shape=tensor.value.shape))

    def view(self, op: str, source: Alias, *args: Any) -> Alias:
        """Call a view: note a value, and how to come to it from the base."""
        value = self.forward((op, args), self.read(source))
        return Alias(source.base, (*source.chain, (op, args)), value, 0)

    def write(self, op: str, target: Alias, *args: Any) -> Alias:
        """Call `op` without its underscore; leave word at the base."""
        read = [self.read(each) for each in (target, *args)]
        value = self.emit(op.removesuffix("_"), *read, shape=target.value.shape)
        target.base.writes.append((target.chain, value))
        target.base.generation += 1
        self.read(target)
        return target

    def read(self, tensor: Any) -> Any:
        """Return a tensor's value; after a write to its base, made again from there."""
        if not isinstance(tensor, Alias):
            return tensor
        base = tensor.base
        if tensor.generation < base.generation:
            for chain, part in base.writes:
                base.value = self.put_back(base.value, chain, part)
            base.writes.clear()
            tensor.value, tensor.generation = base.value, base.generation
            for step in tensor.chain:
                tensor.value = self.forward(step, tensor.value)
        return tensor.value

    def put_back(self, whole: Value, chain: tuple[Step, ...], part: Value) -> Value:
        """Return the base with one part of it replaced: the views, walked backwards."""
        around = [whole]
        for step in chain[:-1]:
            around.append(self.forward(step, around[-1]))
        for step, outer in zip(reversed(chain), reversed(around), strict=False):
            part = self.backward(step, outer, part)
        return part

    def forward(self, step: Step, value: Value) -> Value:
        """Write down a view."""
        op, args = step
        return self.emit(op, value, *args, shape=seen_as(op, value.shape, args))

    def backward(self, step: Step, outer: Value, part: Value) -> Value:
        """Write down the inverse of a view: what `outer` is with `part` in its place."""
        op, args = step
        if op == "view":
            return self.emit(op, part, list(outer.shape), shape=outer.shape)
        if op in ("transpose", "unsqueeze"):
            inverse = "squeeze" if op == "unsqueeze" else op
            return self.emit(inverse, part, *args, shape=outer.shape)
        return self.emit(f"{op}_scatter", outer, part, *args, shape=outer.shape)

    def graph(self, outputs: list[Value]) -> list[Value]:
        """Return the calls that the outputs need, in order."""
        needed = set(outputs)
        for value in reversed(self.values):
            if value in needed:
                needed.update(each for each in value.args if isinstance(each, Value))
        return [value for value in self.values if value in needed or value.op == "input"]


def seen_as(op: str, shape: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of a view."""
    size = list(shape)
    if op == "view":
        return tuple(args[0])
    if op == "transpose":
        size[args[0]], size[args[1]] = size[args[1]], size[args[0]]
    elif op == "unsqueeze":
        size.insert(args[0], 1)
    elif op == "select":
        del size[args[0]]
    elif op == "slice":
        start, end, step = (*args[1:], 1)[:3]
        size[args[0]] = -(-(end - start) // step)
    else:
        size = [*size[2:], min(size[:2])]
    return tuple(size)
