"""Random programs: views and writes for the functionaliser, joint graphs for the cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from miniatures.aotautograd import watch
from miniatures.aotautograd.cut import kept, split
from miniatures.aotautograd.functional import Functionaliser, Value
from miniatures.aotautograd.rules import Joint

Program = list[tuple[str, str, int, tuple[Any, ...]]]
"""Lines of a program: kind, operator, the tensor it is called on, and further arguments."""

ATEN = torch.ops.aten
INPUTS = 2


def program(seed: int, lines: int = 9) -> tuple[Program, list[int]]:
    """Return a random program of views and writes on two inputs, and what it returns."""
    pick = random.Random(seed)
    made: Program = []
    tensors = [torch.zeros(4, 4) for _ in range(INPUTS)]
    owner = list(range(INPUTS))
    for _ in range(lines):
        at = pick.randrange(len(tensors))
        kind = pick.choice(["view", "view", "write", "write", "pure"])
        tensor = tensors[at]
        others = [
            k for k, t in enumerate(tensors) if owner[k] != owner[at] and t.shape == tensor.shape
        ]
        if kind == "view":
            op, args = a_view(pick, tensor)
        elif kind == "write":
            choices: list[tuple[str, tuple[Any, ...]]] = [
                ("mul_", (2.0,)), ("add_", (1.0,)), ("fill_", (3.0,)), ("zero_", ()),
            ]  # fmt: skip
            choices += [(name, (k,)) for k in others for name in ("copy_", "mul_")]
            op, args = pick.choice(choices)
            args = tuple(Ref(a) if isinstance(a, int) else a for a in args)
        else:
            op, args = pick.choice([("sin", ()), ("clone", ()), ("mul", (0.5,))])
        made.append((kind, op, at, args))
        if kind != "write":
            tensors.append(run_line(made[-1], tensors))
            owner.append(owner[at] if kind == "view" else len(owner))
    returned = sorted(pick.sample(range(INPUTS, len(tensors)), min(2, len(tensors) - INPUTS)))
    return made, returned


class Ref(int):
    """The number of a tensor, as an argument."""


def a_view(pick: random.Random, tensor: torch.Tensor) -> tuple[str, tuple[Any, ...]]:
    """Return a view that the tensor allows."""
    dims = tensor.dim()
    choices: list[tuple[str, tuple[Any, ...]]] = [("unsqueeze", (pick.randint(0, dims),))]
    if dims:
        dim = pick.randrange(dims)
        size = tensor.shape[dim]
        choices.append(("select", (dim, pick.randrange(size))))
        if size > 2:
            choices += [("slice", (dim, 1, size)), ("slice", (dim, 0, size - 1, 2))]
    if dims > 1:
        choices.append(("transpose", tuple(pick.sample(range(dims), 2))))
        choices.append(("diagonal", ()))
    if tensor.is_contiguous() and tensor.numel() > 1:
        choices.append(("view", ([tensor.numel()],)))
    return pick.choice(choices)


OVERLOADS = {
    "view": ATEN.view.default, "select": ATEN.select.int, "slice": ATEN.slice.Tensor,
    "transpose": ATEN.transpose.int, "unsqueeze": ATEN.unsqueeze.default,
    "diagonal": ATEN.diagonal.default,
}  # fmt: skip


def run_line(line: tuple[str, str, int, tuple[Any, ...]], tensors: list[torch.Tensor]) -> Any:
    """Run one line of a program with PyTorch."""
    _, op, at, args = line
    read = [tensors[arg] if isinstance(arg, Ref) else arg for arg in args]
    if op in OVERLOADS:
        return OVERLOADS[op](tensors[at], *read)
    return getattr(tensors[at], op)(*read)


def as_function(made: Program, returned: list[int]) -> Callable[..., Any]:
    """Return a program as a function of PyTorch tensors."""

    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        tensors = list(inputs)
        for line in made:
            result = run_line(line, tensors)
            if line[0] != "write":
                tensors.append(result)
        return [tensors[k] for k in returned]

    return run


def functionalised(made: Program, returned: list[int]) -> tuple[list[Value], list[Value]]:
    """Run a program through the miniature; return its graph, and what the graph returns."""
    small = Functionaliser()
    tensors = [small.fresh(small.emit("input", shape=(4, 4))) for _ in range(INPUTS)]
    for kind, op, at, args in made:
        read = [tensors[arg] if isinstance(arg, Ref) else arg for arg in args]
        result = getattr(small, kind)(op, tensors[at], *read)
        if kind != "write":
            tensors.append(result)
    results = [small.read(tensors[k]) for k in returned]
    written_to = [t for t in tensors[:INPUTS] if t.base.generation]
    ends = [small.read(tensor) for tensor in written_to] + results
    return small.graph(ends), ends


def evaluate(values: list[Value], ends: list[Value], inputs: list[torch.Tensor]) -> list[Any]:
    """Run the miniature's graph."""
    found: dict[Value, Any] = {}
    given = iter(inputs)
    for value in values:
        args = [found[arg] if isinstance(arg, Value) else arg for arg in value.args]
        if value.op == "input":
            found[value] = next(given)
        elif value.op in OVERLOADS:
            found[value] = OVERLOADS[value.op](*args)
        else:
            found[value] = getattr(ATEN, value.op)(*args)
    return [found[end] for end in ends]


def same_graph(seed: int) -> dict[str, bool]:
    """Compare the miniature's graph of a random program with PyTorch's, and its results."""
    made, returned = program(seed)
    inputs = [torch.arange(16.0).view(4, 4) + k for k in range(INPUTS)]
    ours, ends = functionalised(made, returned)
    theirs = watch.watch(as_function(made, returned), *[each.clone() for each in inputs])
    changed = [each.clone() for each in inputs]
    results = as_function(made, returned)(*changed)
    touched = [new for new, old in zip(changed, inputs, strict=True) if not new.equal(old)]
    got = evaluate(ours, ends, inputs)
    return {
        "graph": watch.written_small(ours, ends) == watch.written(theirs.forward),
        "results": all(a.equal(b) for a, b in zip(got[-len(results) :], results, strict=True)),
        "inputs": all(any(a.equal(b) for b in got) for a in touched),
    }


def network_program(seed: int) -> Callable[..., Any]:
    """Return a random function of two matrices, to be differentiated."""
    pick = random.Random(seed)
    steps = [
        (pick.choice(["sin", "exp", "tanh", "sigmoid", "relu", "mul", "add", "mm", "mm", "rows",
                      "t", "amax", "dropout", "cos"]), pick.random(), pick.random())
        for _ in range(pick.randint(3, 10))
    ]  # fmt: skip

    def run(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        values = [x, w, x * w]
        for op, first, second in steps:
            # mostly the newest value, and any other
            a = values[-1] if first < 0.6 else values[int(first * len(values))]
            b = values[int(second * len(values))]
            if op in ("mul", "add", "mm"):
                values.append(getattr(torch, op)(a, b))
            elif op == "rows":
                values.append(a - a.mean(1, keepdim=True))
            elif op == "amax":
                values.append(a * a.amax(0, keepdim=True))
            elif op == "dropout":
                values.append(torch.dropout(a, 0.5, True))
            else:
                values.append(getattr(a, op)())
        return values[-1].sum()

    return run


def same_cut(seed: int) -> dict[str, bool]:
    """Compare what the miniature keeps, and both its graphs, with PyTorch's partitioner."""
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    w = torch.randn(8, 8, generator=torch.Generator().manual_seed(-seed - 1)).requires_grad_()
    seen = watch.watch(network_program(seed), x, w)
    if seen.joint is None or seen.backward is None:
        seen.result.backward()
    joint = watch.joint_of(seen)
    saved, forward, backward = split(joint, kept(joint))
    return {
        "kept": saved == sorted_as(watch.saved(seen), joint),
        "forward": forward == watch.calls(seen.forward),
        "backward": sorted(backward) == sorted(watch.calls(seen.backward)),
    }


def sorted_as(names: list[str], joint: Joint) -> list[str]:
    """Return names in the order of a joint graph."""
    return [node.name for node in joint.nodes if node.name in names]


def beside(made: Program, names: list[str]) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Return a program line by line, each with the calls that it adds to the graph.

    :param names: of the tensors, the inputs first; the last tensor is returned.
    """
    small = Functionaliser()
    tensors = [small.fresh(small.emit("input", shape=(4, 4)))]
    lines: list[tuple[str, list[Value]]] = []
    for kind, op, at, args in made:
        before = len(small.values)
        result = getattr(small, kind)(op, tensors[at], *args)
        inside = ", ".join(map(str, args))
        text = f"{names[at]}.{op}({inside})"
        if kind != "write":
            tensors.append(result)
            text = f"{names[len(tensors) - 1]} = {text}"
        lines.append((text, small.values[before:]))
    before = len(small.values)
    end = small.read(tensors[1])
    lines.append((f"return {names[1]}", small.values[before:]))
    stay = set(small.graph([end]))
    called = {value: f"v{place}" if place else names[0] for place, value in enumerate(small.values)}
    return [
        (text, [(f"{called[value]} = {spelled(value, called)}", value in stay) for value in values])
        for text, values in lines
    ]


def spelled(value: Value, called: dict[Value, str]) -> str:
    """Return a call as it would be written."""
    args = [called[arg] if isinstance(arg, Value) else str(arg) for arg in value.args]
    return f"{value.op}({', '.join(args)})"


def graph_for_sizes(function: Callable[..., Any], most: int) -> dict[tuple[int, int], int]:
    """Compile a function of two vectors, and return which graph runs for each pair of sizes."""
    from insidetorch import private

    made: list[int] = []
    ran: list[int] = []

    def backend(graph: Any, _: Any) -> Callable[..., Any]:
        made.append(len(made) + 1)
        number = made[-1]

        def run(*args: Any) -> Any:
            ran.append(number)
            return graph(*args)

        return run

    found: dict[tuple[int, int], int] = {}
    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend)
    with private.tracer_settings(recompile_limit=64):
        order = [(4, 6), (5, 7), (6, 3)]
        order += [(x, y) for x in range(2, most) for y in range(2, most)]
        order += [(x, y) for x in range(most) for y in range(most)]
        for x, y in order:
            compiled(torch.ones(x), torch.ones(y))
            found[x, y] = ran[-1]
    torch.compiler.reset()
    return found


def refusal(attempt: Callable[[], Any]) -> str:
    """Return what an attempt said when it failed: the error's class and first words, or nothing."""
    try:
        attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
