"""Random programs for both: modules written as source text, and graphs of TorchScript."""

from __future__ import annotations

import random
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from insidetorch import private
from miniatures.capture.alias import Aliases
from miniatures.capture.nodes import Node, run
from miniatures.capture.tracer import Tracer

OUTSIDE = torch.tensor([0.5, -1.0, 2.0])

LINES = (
    "{n} = {a} + {b}", "{n} = {a} * {b}", "{n} = 2 - {a}", "{n} = {a} / 3", "{n} = -{a}",
    "{n} = torch.sin({a})", "{n} = {a}.cos()", "{n} = torch.clamp({a}, min=-0.5, max={k})",
    "{n} = {a}.clamp(max={k})", "{n} = F.relu({a})", "{n} = torch.maximum({a}, {b})",
    "{n} = torch.stack([{a}, {b}]).sum(0)", "{n} = {a} + OUTSIDE", "{n} = self.layer({a})",
    "{n} = self.block({a})", "{n} = {a} * self.scale", "{n} = {a} - self.memory",
    "{n} = F.linear({a}, self.block.weight)", "{n}, {m} = torch.stack([{a}, {b}])",
    "{n} = {a} * {a}.shape[0]", "{n} = {a}[:].T", "{n} = abs({a})" , "{n} = {a}.pow(2)",
    "for i in range(2): {a} = {a} + i", "{n} = {a} * self.factor", "{n} = {a}.max() + {b}",
    "{n} = {a} + torch.ones(3)",
    "{n} = self.layers({a})", "{n} = torch.where({a} > {b}, {a}, {b})", "{n} = {a}.add_(1)",
)  # fmt: skip


class Block(nn.Module):
    """A module that is no layer of PyTorch: tracers go through it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3) * 0.5)

    def forward(self, x: Any) -> Any:
        return torch.tanh(x @ self.weight)


class Base(nn.Module):
    """What a random program may use besides its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.block, self.factor = nn.Linear(3, 3), Block(), 1.5
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("memory", torch.full((3,), 0.25))


def random_module(seed: int) -> nn.Module:
    """Return a module whose `forward` has between three and twelve random lines."""
    draw = random.Random(seed)
    names, lines = ["x", "y"], []
    for number in range(draw.randint(3, 12)):
        new = draw.choice([f"v{number}", "x", "add", f"v_{number}", "max_1"])
        a, b = draw.choice(names), draw.choice(names)
        line = draw.choice(LINES)
        lines.append(line.format(n=new, m=f"w{number}", a=a, b=b, k=draw.choice([0.5, 1])))
        if "{n}" in line:
            names.append(new)
        if "{m}" in line:
            names.append(f"w{number}")
    result = draw.choice(["{a}", "({a}, {b})", "{{'one': {a}, 'two': [{b}, 2]}}"])
    last = result.format(a=names[-1], b=draw.choice(names))
    body = "\n    ".join([*lines, f"return {last}"])
    space: dict[str, Any] = {"torch": torch, "F": F, "OUTSIDE": OUTSIDE}
    exec(f"def forward(self, x, y{draw.choice(['', '=1.5'])}):\n    {body}", space)
    torch.manual_seed(seed)
    module: nn.Module = type("Program", (Base,), {"forward": space["forward"]})()
    return module


def told(nodes: Any, kind: type) -> list[tuple[Any, ...]]:
    """Return a list of nodes as values to compare: references to nodes become their names."""

    def plain(value: Any) -> Any:
        if isinstance(value, kind):
            return f"%{value.name}"  # type: ignore[attr-defined]
        if isinstance(value, (list, tuple)):
            return type(value).__name__.removeprefix("immutable_"), [plain(one) for one in value]
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        return value

    return [
        (one.op, one.name, one.target, plain(tuple(one.args)), plain(dict(one.kwargs)))
        for one in nodes
    ]


def compare(seed: int) -> dict[str, bool]:
    """Trace and run a random module with the miniature and with FX; say what is equal."""
    ours, theirs, itself = (random_module(seed) for _ in range(3))
    nodes = Tracer().trace(ours)
    graph = fx.symbolic_trace(theirs)

    def flat(value: Any) -> list[torch.Tensor]:
        leaves = torch.utils._pytree.tree_leaves(value)
        return [torch.as_tensor(one) for one in leaves]

    def inputs() -> list[torch.Tensor]:
        return list(torch.arange(18.0).view(2, 3, 3).sin())

    results = [
        flat(run(nodes, ours, *inputs())), flat(fx.Interpreter(graph).run(*inputs())),
        flat(graph(*inputs())), flat(itself(*inputs())),
    ]  # fmt: skip
    return {
        "nodes": told(nodes, Node) == told(graph.graph.nodes, fx.Node),
        "results": all(
            len(one) == len(results[0]) and all(map(torch.equal, one, results[0]))
            for one in results[1:]
        ),
    }


OPERATIONS = {
    "aten::relu(%{a})": "Tensor", "aten::mul(%{a}, %{b})": "Tensor",
    "aten::select(%{a}, %zero, %zero)": "Tensor", "aten::t(%{a})": "Tensor",
    "aten::add_(%{a}, %{b}, %one)": "Tensor", "aten::relu_(%{a})": "Tensor",
    "aten::detach(%{a})": "Tensor", "aten::view_as(%{a}, %{b})": "Tensor",
    "aten::copy_(%{a}, %{b}, %no)": "Tensor", "aten::contiguous(%{a}, %zero)": "Tensor",
    "prim::ListConstruct(%{a}, %{b})": "Tensor[]",
}  # fmt: skip


def random_graph(seed: int) -> str:
    """Return the text of a random graph: operators that view, write, and collect; and branches."""
    draw = random.Random(seed)
    count = 0

    def block(known: list[str], lists: list[str], deep: int) -> list[str]:
        nonlocal count
        lines = []
        for _ in range(draw.randint(2, 9 if deep == 0 else 3)):
            count += 1
            new, a, b = f"v{count}", draw.choice(known), draw.choice(known)
            kind = draw.random()
            if kind < 0.12 and deep < 2:
                sides = []
                for _ in range(2):
                    inner = [*known]
                    sides.append((block(inner, [*lists], deep + 1), draw.choice(inner)))
                lines.append(f"%{new} : Tensor = prim::If(%flag)")
                for at, (inside, last) in enumerate(sides):
                    lines += [f"  block{at}():", *(f"    {one}" for one in inside)]
                    lines.append(f"    -> (%{last})")
                known.append(new)
            elif kind < 0.3 and lists:
                call = draw.choice(["aten::__getitem__(%{l}, %zero)", "aten::cat(%{l}, %zero)"])
                lines.append(f"%{new} : Tensor = " + call.format(l=draw.choice(lists)))
                known.append(new)
            else:
                call, result = draw.choice(list(OPERATIONS.items()))
                lines.append(f"%{new} : {result} = {call.format(a=a, b=b)}")
                (known if result == "Tensor" else lists).append(new)
        return lines

    known = ["x", "y"]
    lines = block(known, [], 0)
    made = {"zero : int": 0, "one : int": 1, "no : bool": 0}
    constants = [f"%{name} = prim::Constant[value={value}]()" for name, value in made.items()]
    body = "\n".join(f"  {line}" for line in [*constants, *lines])
    return f"graph(%x : Tensor, %y : Tensor, %flag : bool):\n{body}\n  return (%{known[-1]})"


def compare_aliases(seed: int) -> dict[str, int]:
    """Analyse a random graph with the miniature and with PyTorch; count what is equal."""
    graph = private.parse_graph(random_graph(seed))
    theirs, ours = graph.alias_db(), Aliases().graph(graph)
    values = tensors(graph)
    pairs = [(a, b) for a in values for b in values]
    return {
        "pairs": len(pairs),
        "alike": sum(ours.may_alias(a, b) == theirs.may_contain_alias(a, b) for a, b in pairs),
        "values": len(values),
        "written alike": sum(ours.has_writers(a) == theirs.has_writers(a) for a in values),
        "apart": sum(not ours.may_alias(a, b) for a, b in pairs),
        "written": sum(map(ours.has_writers, values)),
    }


def tensors(graph: Any) -> list[Any]:
    """Return the values of a graph that are tensors, those in its blocks too."""
    found = list(graph.inputs())

    def walk(nodes: Any) -> None:
        for node in nodes:
            found.extend(node.outputs())
            for block in node.blocks():
                walk(block.nodes())

    walk(graph.nodes())
    return [value for value in found if str(value.type()) == "Tensor"]
