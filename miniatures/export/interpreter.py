"""An exported program, run by hand: bind the inputs, check the sizes, run the nodes, write back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from torch import fx
    from torch.export import ExportedProgram


class Refused(Exception):
    """The inputs are not those that the program was written for."""


class Interpreter:
    """Runs an exported program from its graph, its signature and its tensors."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.graph = program.graph_module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given, structure = pytree.tree_flatten((args, kwargs))
        if structure != self.program.call_spec.in_spec:
            raise Refused("other structure of inputs")
        bound = self.bind(given)
        self.check(bound)
        results = run(self.graph, bound)
        return self.write_back(results, bound)

    def bind(self, given: list[Any]) -> list[Any]:
        """Give each placeholder of the graph its value: the model's tensors, then the caller's."""
        users, bound = iter(given), []
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                bound.append(next(users))
            elif spec.target in self.program.state_dict:
                bound.append(self.program.state_dict[spec.target])
            else:
                bound.append(self.program.constants[spec.target])
        return bound

    def check(self, bound: list[Any]) -> None:
        """Refuse sizes that contradict what was assumed while the program was written."""
        sizes: dict[str, int] = {}
        holders = [node for node in self.graph.graph.nodes if node.op == "placeholder"]
        for node, value in zip(holders, bound, strict=True):
            expected = node.meta["val"]
            if not isinstance(expected, torch.Tensor):
                if value != expected:
                    raise Refused(f"{node.name} was {expected}")
                continue
            if value.dim() != expected.dim():
                raise Refused(f"{node.name} has {value.dim()} dimensions")
            for size, assumed in zip(value.shape, expected.shape, strict=True):
                if isinstance(assumed, int):
                    if size != assumed:
                        raise Refused(f"{node.name}: {size} instead of {assumed}")
                elif sizes.setdefault(str(assumed), size) != size:
                    raise Refused(f"{node.name}: {assumed} is already {sizes[str(assumed)]}")
        for symbol, allowed in self.program.range_constraints.items():
            size = sizes.get(str(symbol), int(allowed.lower))
            lowest = int(allowed.lower) if allowed.lower > 2 else 0
            if not lowest <= size <= allowed.upper:
                raise Refused(f"{symbol} is {size}")

    def write_back(self, results: list[Any], bound: list[Any]) -> Any:
        """Copy new values of buffers and inputs to where they belong; return what is left."""
        signature, returned = self.program.graph_signature, []
        users = [spec.arg.name for spec in signature.input_specs]
        for spec, value in zip(signature.output_specs, results, strict=True):
            if spec.kind is OutputKind.BUFFER_MUTATION:
                names = [one.target for one in signature.input_specs]
                bound[names.index(spec.target)].copy_(value)
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                bound[users.index(spec.target)].copy_(value)
            else:
                returned.append(value)
        return pytree.tree_unflatten(returned, self.program.call_spec.out_spec)


def run(graph: fx.GraphModule, bound: list[Any]) -> list[Any]:
    """Run the nodes of a graph in the order in which they stand."""
    values: dict[fx.Node, Any] = {}
    incoming = iter(bound)
    for node in graph.graph.nodes:
        args, kwargs = pytree.tree_map_only(
            torch.fx.Node, values.__getitem__, (node.args, node.kwargs)
        )
        if node.op == "placeholder":
            values[node] = next(incoming)
        elif node.op == "get_attr":  # a branch: a graph of its own
            values[node] = getattr(graph, str(node.target))
        elif node.op == "output":
            return list(args[0])
        elif node.target is torch.ops.higher_order.cond:
            decides, if_true, if_false, operands = args
            values[node] = run(if_true if decides else if_false, list(operands))
        else:
            assert callable(node.target)
            values[node] = node.target(*args, **kwargs)
    raise ValueError("a graph without an output")
