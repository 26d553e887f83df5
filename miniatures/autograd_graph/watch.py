"""What PyTorch records, seen from outside: a growing graph, who holds whom, uncounted writes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from insidetorch.private.graph import saved_values, sequence_nr, version
from miniatures.autograd_engine.watch import error_of, nodes_of, short


@dataclass(frozen=True)
class Kept:
    """A tensor that a node keeps.

    :param name: what the node calls it, such as ``self`` or ``result``.
    :param bytes: of its storage.
    :param owner: ``graph`` if the graph alone holds the storage, ``name`` if a name of the program
        does too, ``again`` if a node above keeps it already.
    """

    name: str
    bytes: int
    owner: str


@dataclass(frozen=True)
class Row:
    """A node: its number, what it points to, what it keeps, and whether that was freed."""

    node: str
    number: int
    to: tuple[int | str, ...]
    keeps: tuple[Kept, ...]
    freed: bool


@dataclass(frozen=True)
class Stage:
    """A line of a program, and the graph behind its tensors after that line."""

    line: str
    rows: tuple[Row, ...]

    @property
    def bytes(self) -> int:
        """Return what the graph keeps, each storage counted once."""
        return sum(k.bytes for row in self.rows for k in row.keeps if k.owner != "again")


def grow(lines: Sequence[str], values: dict[str, Any]) -> list[Stage]:
    """Run a program line by line and read the graph behind its tensors after each line.

    :param values: the program's variables; lines read and change them.
    """
    stages = []
    for line in lines:
        exec(line, {"torch": torch}, values)
        stages.append(Stage(line, _rows(values)))
    return stages


def _rows(values: Mapping[str, Any]) -> tuple[Row, ...]:
    named = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    places = {_place(value) for value in named.values()}
    roots = [value for value in named.values() if value.grad_fn is not None]
    inner = [node for node in nodes_of(*roots) if not hasattr(node, "variable")]
    rows, seen = [], set[int]()
    for node in sorted(inner, key=lambda node: sequence_nr(node) or 0):
        to: list[int | str] = []
        for after, _ in node.next_functions:
            if hasattr(after, "variable"):
                to += [name for name, value in named.items() if value is after.variable]
            elif after is not None:
                to.append(sequence_nr(after) or 0)
        keeps, freed = [], False
        try:
            found = saved_values(node)
        except RuntimeError:
            found, freed = {}, True
        for name, value in found.items():
            if isinstance(value, Tensor) and value.numel():
                place = _place(value)
                owner = "name" if place in places else "graph"
                size = value.untyped_storage().nbytes()
                keeps.append(Kept(name, size, "again" if place in seen else owner))
                seen.add(place)
        rows.append(Row(short(node), sequence_nr(node) or 0, tuple(to), tuple(keeps), freed))
    return tuple(rows)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def saved(result: Tensor) -> dict[str, Tensor]:
    """Return the tensors that the node of `result` keeps, by name."""
    values = saved_values(result.grad_fn)
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def saved_bytes(*results: Tensor) -> int:
    """Return the bytes of the storages that the nodes of `results` keep, each counted once."""
    stores = [v.untyped_storage() for result in results for v in saved(result).values()]
    return sum({store.data_ptr(): store.nbytes() for store in stores}.values())


def kept_of(result: Tensor, *inputs: Tensor) -> dict[str, float]:
    """Return the KiB that the node of `result` keeps: of the inputs, of the result, of others."""
    given = {_place(one) for one in inputs}
    sizes = dict.fromkeys(("an input", "the result", "something else"), 0.0)
    for place, value in {_place(value): value for value in saved(result).values()}.items():
        which = "the result" if place == _place(result) else "something else"
        sizes["an input" if place in given else which] += value.untyped_storage().nbytes() / 1024
    return sizes


def came_back(call: Callable[[Tensor], Tensor], leaf: Tensor) -> tuple[str, str, str]:
    """Return a call's node, what its gradient is at `leaf`, and the colour's role for that."""
    result = call(leaf)
    if not result.requires_grad:
        return "–", "nothing arrives", "ink"
    name = short(result.grad_fn).replace("Backward", "Backw.")
    try:
        (grad,) = torch.autograd.grad(result.abs().sum(), leaf)
    except RuntimeError:
        return name, "raises", "f"
    return (name, "a gradient", "c") if grad.any() else (name, "zeros", "e")


class _Same(torch.autograd.Function):
    """The identity: its node can be watched by a weak reference, which a node of C++ cannot."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def holds(x: Tensor) -> dict[tuple[str, str], bool]:
    """Tell who keeps whom alive: a pair for each arrow tried, with whether it was seen.

    :param x: a leaf that requires a gradient and is in no graph.
    """
    apply: Callable[[Tensor], Tensor] = _Same.apply

    def outlives(make: Callable[[], tuple[object, object]]) -> bool:
        holder, held = make()
        witness = weakref.ref(held)
        del held
        return witness() is not None and holder is not None

    def results() -> tuple[Tensor, Tensor]:
        before = apply(x)
        return before, apply(before)

    def leaf_node_and_leaf() -> tuple[object, object]:
        leaf = x.detach().requires_grad_()
        return get_gradient_edge(leaf).node, leaf

    def keeps_leaf_node(holder: Callable[[], object]) -> bool:
        held = holder()  # a mark tells whether the node is made anew
        before: Any = get_gradient_edge(x).node
        before.metadata["mark"] = held is not None
        del before
        after: Any = get_gradient_edge(x).node
        return "mark" in after.metadata

    return {
        ("result", "node"): outlives(lambda: (y := apply(x), y.grad_fn)),
        ("node", "result"): outlives(lambda: ((y := apply(x)).grad_fn, y)),
        ("node", "input"): outlives(lambda: ((two := results())[1].grad_fn, two[0])),
        ("node", "node before"): outlives(lambda: ((two := results())[1].grad_fn, two[0].grad_fn)),
        ("node", "leaf's node"): keeps_leaf_node(lambda: (x + 1).grad_fn),
        ("leaf", "leaf's node"): keeps_leaf_node(lambda: x),
        ("leaf's node", "leaf"): outlives(leaf_node_and_leaf),
    }


def _by_storage(result: Tensor) -> None:
    storage: Any = result.untyped_storage()
    storage.fill_(0)


def _by_dlpack(result: Tensor) -> None:
    other: Tensor = torch.utils.dlpack.from_dlpack(result.detach())
    other.zero_()


def _by_fused_step(result: Tensor) -> None:
    memory = result.detach()
    memory.grad = memory.clone()
    torch.optim.SGD([memory], lr=1.0, fused=True).step()


WRITES: dict[str, Callable[[Tensor], object]] = {
    "r.mul_(0)": lambda r: r.mul_(0),
    "r.detach().zero_()": lambda r: r.detach().zero_(),
    "r[:1].detach().zero_()": lambda r: r[:1].detach().zero_(),
    "r.data.zero_()": lambda r: r.data.zero_(),
    "r.detach().numpy()[:] = 0": lambda r: r.detach().numpy().fill(0),
    "from_dlpack(r.detach())": _by_dlpack,
    "untyped_storage().fill_(0)": _by_storage,
    "SGD(…, fused=True).step()": _by_fused_step,
}
"""Ways to write zeros into a result, as a reader would type them."""


@dataclass(frozen=True)
class Written:
    """What came of a write into a result that its node keeps: the count, and the backward pass."""

    before: int
    after: int
    error: str
    grad: list[float]


def written(write: Callable[[Tensor], object]) -> Written:
    """Write into the result of ``exp`` at 0 and 0, then ask for the gradient, which was 1 and 1."""
    leaf = torch.zeros(2, requires_grad=True)
    result = leaf.exp()
    before = version(result)
    total = result.sum()
    with torch.no_grad():
        write(result)
    after = version(result)
    error = error_of(total.backward)
    return Written(before, after, error, [] if leaf.grad is None else leaf.grad.tolist())


def curvature(function: Callable[[Tensor], Tensor], at: float) -> float:
    """Return the second derivative of ``function(x) + x**3`` that PyTorch computes."""
    point = torch.tensor(at, requires_grad=True)
    value = function(point) + point**3
    (slope,) = torch.autograd.grad(value, point, create_graph=True)
    (second,) = torch.autograd.grad(slope, point)
    return float(second.item())
