"""PyTorch, watched: the graphs that AOTAutograd hands to a compiler, and what a joint graph is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import getitem
from typing import Any

import torch
from functorch.compile import (
    aot_function,
    default_partition,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from torch import fx

from insidetorch import private
from miniatures.aotautograd.functional import Value
from miniatures.aotautograd.rules import Joint, Node

PARTITIONERS = {"min-cut": min_cut_rematerialization_partition, "default": default_partition}


@dataclass
class Seen:
    """What AOTAutograd did with one function: its result, and each graph."""

    result: Any = None
    joint: fx.GraphModule | None = None
    forward: fx.GraphModule | None = None
    backward: fx.GraphModule | None = None
    outputs: int = 0
    compiled: Callable[..., Any] | None = None
    static: list[int] = field(default_factory=list)


def watch(
    function: Callable[..., Any],
    *inputs: Any,
    partitioner: str = "min-cut",
    decompositions: Any = None,
    **settings: Any,
) -> Seen:
    """Run a function through AOTAutograd, and keep the graphs; nothing is compiled.

    :param settings: for `torch._functorch.config`.
    """
    seen = Seen()

    def part(joint: fx.GraphModule, examples: Any, **kwargs: Any) -> Any:
        seen.joint, seen.outputs = joint, kwargs["num_fwd_outputs"]
        return PARTITIONERS[partitioner](joint, examples, **kwargs)

    def forward(graph: fx.GraphModule, _: Any) -> Any:
        seen.forward = graph
        return make_boxed_func(graph)

    def backward(graph: fx.GraphModule, _: Any) -> Any:
        seen.backward = graph
        return make_boxed_func(graph)

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(private.aot_settings(**settings))
        seen.compiled = aot_function(
            function, forward, backward, partition_fn=part, decompositions=decompositions
        )
        seen.result = seen.compiled(*inputs)
    return seen


def outputs(graph: fx.GraphModule) -> list[Any]:
    """Return the nodes that a graph returns."""
    (end,) = [node for node in graph.graph.nodes if node.op == "output"]
    return list(end.args[0])


def calls(graph: fx.GraphModule | None) -> list[str]:
    """Return the names of a graph's calls, in order."""
    assert graph is not None
    return [node.name for node in graph.graph.nodes if node.op == "call_function"]


def operators(graph: fx.GraphModule | None) -> list[str]:
    """Return the operators that a graph calls, in order."""
    assert graph is not None
    return [operator(node) for node in graph.graph.nodes if node.op == "call_function"]


def operator(node: fx.Node) -> str:
    """Return the short name of what a node calls: ``add`` for ``aten.add.Tensor``."""
    if node.op == "placeholder":
        return "tangent" if "tangents" in node.name else "primal"
    if node.target is getitem:
        return "getitem"
    return str(node.target).split(".")[1]


def saved(seen: Seen) -> list[str]:
    """Return the names of what the forward graph returns besides the results."""
    assert seen.forward is not None
    return [node.name for node in outputs(seen.forward)[seen.outputs :]]


def saved_bytes(seen: Seen) -> int:
    """Return the bytes of what the forward graph keeps."""
    assert seen.forward is not None
    return sum(bytes_of(node) or 0 for node in outputs(seen.forward)[seen.outputs :])


def bytes_of(node: fx.Node) -> int | None:
    """Return the bytes of a node's tensor, and None for what is no tensor."""
    value = node.meta.get("val")
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else None


def joint_of(seen: Seen) -> Joint:
    """Return the joint graph in the miniature's words."""
    assert seen.joint is not None
    made: dict[fx.Node, Node] = {}
    for node in seen.joint.graph.nodes:
        if node.op != "output":
            args = [made[arg] for arg in node.all_input_nodes]
            made[node] = Node(node.name, operator(node), args, bytes_of(node))
    ends = outputs(seen.joint)
    results = [made[node] for node in ends[: seen.outputs] if isinstance(node, fx.Node)]
    gradients = [made[node] for node in ends[seen.outputs :] if isinstance(node, fx.Node)]
    return Joint(list(made.values()), results, gradients)


def written(graph: fx.GraphModule | None) -> list[tuple[Any, ...]]:
    """Return a graph's calls as operator and arguments, values by their number."""
    assert graph is not None
    numbers: dict[fx.Node, str] = {}
    lines: list[tuple[Any, ...]] = []
    for node in graph.graph.nodes:
        numbers[node] = f"%{len(numbers)}"
        if node.op == "placeholder":
            lines.append(("input",))
        elif node.op == "call_function":
            args = [numbers[arg] if isinstance(arg, fx.Node) else arg for arg in node.args]
            lines.append((operator(node), *map(plain, args)))
    ends = [numbers[node] for node in outputs(graph)]
    return [*lines, ("output", *ends)]


def written_small(values: list[Value], ends: list[Value]) -> list[tuple[Any, ...]]:
    """Return the miniature's calls in the same form."""
    numbers = {value: f"%{place}" for place, value in enumerate(values)}
    lines = [
        (value.op, *(numbers[arg] if isinstance(arg, Value) else plain(arg) for arg in value.args))
        for value in values
    ]
    return [*lines, ("output", *(numbers[value] for value in ends))]


def plain(arg: Any) -> Any:
    """Return an argument in a form that can be compared."""
    return tuple(arg) if isinstance(arg, (list, tuple)) else arg
