"""Random programs as data: the same steps, recorded by PyTorch and by the miniature."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from insidetorch.private.graph import input_metadata, saved_values, sequence_nr
from miniatures.autograd_graph.derivatives import overload
from miniatures.autograd_graph.tape import Value, plain, record


@dataclass(frozen=True)
class Step:
    """One call: the operator, the places of the values it takes, and its other arguments."""

    operator: str
    values: tuple[int, ...]
    others: tuple[Any, ...] = ()
    recorded: bool = True


@dataclass(frozen=True)
class Tape:
    """A program: inputs with whether each wants a gradient, steps, results, and their gradients."""

    inputs: list[tuple[Tensor, bool]]
    steps: list[Step]
    roots: list[int]
    grads: list[Tensor]


def random_tape(seed: int, size: int = 14) -> Tape:
    """Return a program of `size` calls: the same one for the same arguments.

    Its values have the shape (2, 3) or broadcast to it; some are float64, some are masks or
    indices. Some inputs want no gradient, some calls run with grad mode off, and some operators
    have several results.
    """
    rng, data = random.Random(seed), torch.Generator().manual_seed(seed)

    def fresh(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        return torch.randn(tuple(shape), generator=data, dtype=dtype)

    inputs = [
        (
            fresh(
                rng.choice([(2, 3), (1, 3), (3,)]),
                torch.float64 if rng.random() < 0.2 else torch.float32,
            ),
            place == 0 or rng.random() < 0.6,
        )
        for place in range(rng.randint(2, 4))
    ]
    values, steps = [tensor for tensor, _ in inputs], []
    for _ in range(size):
        numeric = [i for i, value in enumerate(values) if value.is_floating_point()]
        masks = [i for i, value in enumerate(values) if value.dtype == torch.bool]
        operator, count, others = rng.choice(_CALLS)
        takes = rng.choices(numeric, k=count)
        if operator == "where.self" and masks:
            takes[0] = rng.choice(masks)
        if not _allowed(operator, [values[i] for i in takes], others):
            continue
        recorded = rng.random() < 0.95 or operator == "unbind.int"  # no_grad keeps views' flag
        steps.append(Step(operator, tuple(takes), others, recorded))
        values += _as_list(_call(operator, *(values[i] for i in takes), *others))
    made = play(Tape(inputs, steps, [], []), _call, _as_leaf)
    rooted = [i for i, value in enumerate(made) if value.requires_grad]
    roots = [rooted[-1], *rng.choices(rooted, k=rng.randint(0, 2))]
    return Tape(inputs, steps, roots, [fresh(values[i].shape, values[i].dtype) for i in roots])


def play(tape: Tape, call: Callable[..., Any], leaf: Callable[[Tensor, bool], Any]) -> list[Any]:
    """Run the steps of `tape` by `call` on inputs made by `leaf`; return all values in order."""
    values = [leaf(tensor, wanted) for tensor, wanted in tape.inputs]
    for step in tape.steps:
        with torch.set_grad_enabled(step.recorded):
            made = call(step.operator, *(values[i] for i in step.values), *step.others)
        values += _as_list(made)
    return values


def by_pytorch(tape: Tape) -> list[Tensor]:
    """Return all values of `tape`, recorded by PyTorch."""
    return play(tape, _call, _as_leaf)


def by_miniature(tape: Tape) -> list[Value]:
    """Return all values of `tape`, recorded by the miniature."""
    return play(tape, record, Value)


def difference(mine: Value, theirs: Tensor, pairs: dict[Any, Any]) -> str:
    """Return where two graphs differ, in one line; nothing if they are the same graph.

    Nodes must pair up one to one, with equal names, edges, kinds of gradients, saved tensors, and
    the same order of sequence numbers.

    :param pairs: filled with the node of PyTorch for each node of the miniature; pass the same
        one for all roots of a program.
    """
    if mine.requires_grad != theirs.requires_grad:
        return f"requires_grad: {mine.requires_grad} and {theirs.requires_grad}"
    duck: Any = mine  # get_gradient_edge asks for what a Value has
    edges: list[tuple[Any, Any]] = [(get_gradient_edge(duck)[:2], get_gradient_edge(theirs)[:2])]
    while edges:
        (a, slot_a), (b, slot_b) = edges.pop()
        if (a is None) != (b is None) or slot_a != slot_b:
            return f"an edge to {a and a.name()}, {slot_a} and to {b and b.name()}, {slot_b}"
        if a is None or pairs.get(a) is b:
            continue
        if a in pairs or b in pairs.values():
            return f"{a.name()} is one node here and two there"
        pairs[a] = b
        unlike = _unlike(a, b)
        if unlike:
            return f"{a.name()}: {unlike}"
        edges += list(zip(a.next_functions, b.next_functions, strict=True))
    numbers = [(sequence_nr(a), sequence_nr(b)) for a, b in pairs.items()]
    made = sorted((a, b) for a, b in numbers if a is not None and b is not None)
    in_order = all(b < after for (_, b), (_, after) in pairwise(made))
    return "" if in_order else "the nodes were made in another order"


def _unlike(a: Any, b: Any) -> str:
    if a.name() != b.name():
        return f"its name is {b.name()}"
    if len(a.next_functions) != len(b.next_functions):
        return "the number of edges"
    kinds = [[(tuple(m.shape), m.dtype) for m in input_metadata(node)] for node in (a, b)]
    if kinds[0] != kinds[1]:
        return f"it takes {kinds[0]} here and {kinds[1]} there"
    if hasattr(a, "variable"):
        return "" if torch.equal(a.variable, b.variable) else "the leaf"
    kept = {name: plain(value) for name, value in a.saved.items()}
    saved = {name: value for name, value in kept.items() if isinstance(value, Tensor)}
    real = {n: value for n, value in saved_values(b).items() if isinstance(value, Tensor)}
    if saved.keys() != real.keys():
        return f"it saves {sorted(saved)} here and {sorted(real)} there"
    unequal = [name for name, value in saved.items() if not torch.equal(value, real[name])]
    return f"saved {unequal}" if unequal else ""


def _call(operator: str, *args: Any) -> Any:
    return overload(operator)(*args)


def _allowed(operator: str, values: Sequence[Tensor], others: Sequence[Any]) -> bool:
    if operator == "where.self":
        return values[0].dtype == torch.bool
    if operator == "lerp.Tensor":
        return len({value.dtype for value in values}) == 1
    return values[0].dim() == 2 or not others or operator == "gt.Scalar"


def _as_leaf(tensor: Tensor, wanted: bool) -> Tensor:
    return tensor.detach().requires_grad_(wanted)


def _as_list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple | list) else [made]


_CALLS: list[tuple[str, int, tuple[Any, ...]]] = [
    ("mul.Tensor", 2, ()),
    ("mul.Tensor", 2, ()),
    ("add.Tensor", 2, ()),
    ("sub.Tensor", 2, ()),
    ("maximum", 2, ()),
    ("lerp.Tensor", 3, ()),
    ("addcmul", 3, ()),
    ("sin", 1, ()),
    ("cos", 1, ()),
    ("tanh", 1, ()),
    ("sigmoid", 1, ()),
    ("relu", 1, ()),
    ("neg", 1, ()),
    ("clone", 1, ()),
    ("mean", 1, ()),
    ("gt.Scalar", 1, (0.0,)),
    ("where.self", 3, ()),
    ("sum.dim_IntList", 1, ([1], True)),
    ("sum.dim_IntList", 1, ([0],)),
    ("max.dim", 1, (1, True)),
    ("unbind.int", 1, (0,)),
    ("argmax", 1, ()),
]
