"""Dynamo in miniature: bytecode run on symbols, guards, a cache, graph breaks, resumption."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import takewhile
from types import FunctionType
from typing import Any

import torch
from torch import fx

from miniatures.dynamo.bytecode import TAKEN, live, ops_of
from miniatures.dynamo.calls import Recipe, Tracer
from miniatures.dynamo.interpreter import Interpreter, popped
from miniatures.dynamo.values import Break

Scope = dict[str, Any]  # L: local variables and what was on the stack; F: the function


class Skip(Exception):
    """This frame cannot be split here: it runs as it is, always."""


@dataclass
class Entry:
    """One translation of a frame: what it relies on, its graph, and what to do afterwards."""

    tracer: Tracer
    graph: Callable[..., Sequence[Any]]
    finish: Recipe

    def run(self, scope: Scope) -> Any:
        """Call the graph with what it takes from the frame; then return, or go on."""
        inputs = [eval(name, scope) for name in self.tracer.inputs.values()]
        return self.finish(self.graph(*inputs), scope)


class Frame:
    """A place where execution can begin: a function and an instruction, with its cache."""

    def __init__(self, world: Dynamo, function: FunctionType, start: int) -> None:
        self.world, self.function, self.start = world, function, start
        self.ops, self.entries = ops_of(function.__code__), list[Entry]()
        self.state: dict[str, Any] = {}  # the numbers seen in earlier translations

    def run(self, values: Scope, stack: Sequence[Any] = ()) -> Any:
        """Take the first entry whose guards hold, or make one."""
        scope = {
            "torch": torch,
            "F": self.function,
            "L": values | {f"stack{i}": v for i, v in enumerate(stack)},
        }
        for entry in self.entries:
            if all(kind(eval(name, scope)) == was for name, kind, was in entry.tracer.guards):
                return entry.run(scope)
        entry = self.translate(scope, list(values), len(stack))
        if len(self.entries) < self.world.limit:
            self.entries.append(entry)
        return entry.run(scope)

    def translate(self, scope: Scope, names: list[str], depth: int) -> Entry:
        """Run on symbols up to the end. After a break start again, and stop before it."""
        stops, here = set[int](), self.start
        while True:
            see, at = Tracer(self.state, scope), self.start
            values = {name: see.at(f"L[{name!r}]") for name in names}
            run = Interpreter(see, self.function.__code__, "F", values)
            run.stack = [see.at(f"L['stack{i}']") for i in range(depth)]
            try:
                while at >= 0 and at not in stops:
                    here = at
                    at = run.step(here)
            except Break as why:
                rest = takewhile(lambda op: op.name != "RETURN", self.ops[here + 1 :])
                loop = any(0 <= op.target < here for op in rest)
                if self.world.fullgraph or loop or self.ops[here].name not in ("CALL", "BRANCH"):
                    raise (NotImplementedError if self.start else Skip)(str(why)) from why
                stops.add(here)
                continue
            finish = self.ending(run, at)
            graph = see.finished()
            worth = any(node.op.startswith("call") for node in graph.graph.nodes)
            if worth and len(self.entries) < self.world.limit:
                return Entry(see, self.world.backend(graph), finish)
            return Entry(see, graph.forward, finish)

    def ending(self, run: Interpreter, at: int) -> Recipe:
        """Say what follows the graph: a return, or the instruction at `at` and a resumption."""
        see, op = run.tracer, self.ops[at]
        stack = [see.recipe(var, at < 0) for var in run.stack]
        names = [name for name in run.values if at >= 0 and name in live(self.ops, at)]
        values = {name: see.recipe(run.values[name]) for name in names}
        effects = see.effects()

        def finish(outs: Sequence[Any], scope: Scope) -> Any:
            real = [recipe(outs, scope) for recipe in stack]
            for place, parts in effects:
                eval(place, scope)[:] = [part(outs, scope) for part in parts]
            if at < 0:
                return real[-1]
            then = at + 1
            kept = {name: recipe(outs, scope) for name, recipe in values.items()}
            if op.name == "BRANCH":
                then = op.target if TAKEN[op.arg](real.pop()) else then
            else:
                function, args, kwargs = popped(real, op.arg)
                real.append(self.world.hooked(function)(*args, **kwargs))
            return self.world.frame(self.function, then).run(kept, real)

        return finish


class Dynamo:
    """The hook: holds the frames, counts compilations, and calls the backend."""

    def __init__(self, limit: int = 8, fullgraph: bool = False) -> None:
        self.limit, self.fullgraph = limit, fullgraph
        self.graphs, self.skipped = list[fx.GraphModule](), set[FunctionType]()
        self.frames: dict[tuple[FunctionType, int], Frame] = {}

    def backend(self, graph: fx.GraphModule) -> Callable[..., Any]:
        """Count a graph and run it as it is."""
        self.graphs.append(graph)
        return graph.forward

    def frame(self, function: FunctionType, start: int) -> Frame:
        """Return the frame that begins at an instruction of a function."""
        return self.frames.setdefault((function, start), Frame(self, function, start))

    def hooked(self, function: Any) -> Callable[..., Any]:
        """Return a function whose frames are translated, if it is one that can be."""
        if not isinstance(function, FunctionType):
            return function  # type: ignore[no-any-return]

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            if function not in self.skipped:
                try:
                    return self.frame(function, 0).run(bound.arguments)
                except Skip:
                    self.skipped.add(function)
            return function(*args, **kwargs)

        return call
