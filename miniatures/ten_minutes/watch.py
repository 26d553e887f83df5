"""One training step, watched: what is in memory after each operation, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from insidetorch.private.graph import saved_values

Numbers = tuple[float, ...]
FREED = "freed"


@dataclass(frozen=True)
class State:
    """What there is at one moment of a step.

    :param line: the part of the program that has just run, empty before it.
    :param values: the numbers of each tensor that there is, by its name.
    :param gradients: the gradient that has just arrived, and those that leaves keep, by the name
        of their tensor.
    :param nodes: for each tensor that an operation made, its node and how many tensors that
        keeps, or that it has let go of them.
    :param changed: names of what is new: of a tensor, or of a gradient with ``.grad``.
    """

    line: str
    values: dict[str, Numbers]
    gradients: dict[str, Numbers]
    nodes: dict[str, tuple[str, int | str]]
    changed: frozenset[str]


def watched_step(
    model: torch.nn.Linear, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> list[State]:
    """Run lines 3 to 5 of the book's program, and return the states on the way.

    The states of the backward pass are taken by hooks, when a gradient arrives.
    """
    tensors = {"x": x, "y": y, "weight": model.weight, "bias": model.bias}
    leaves = [name for name, tensor in tensors.items() if tensor.requires_grad]
    gradients: dict[str, Numbers] = {}
    states: list[State] = []

    def note(line: str, *changed: str) -> None:
        values = {name: numbers(tensor) for name, tensor in tensors.items()}
        nodes = {name: _node(t) for name, t in tensors.items() if t.grad_fn is not None}
        states.append(State(line, values, dict(gradients), nodes, frozenset(changed)))

    def arrived(name: str, gradient: Tensor) -> None:
        gradients[name] = numbers(gradient)
        note("loss.backward()", f"{name}.grad")
        if not tensors[name].is_leaf:
            del gradients[name]  # handed on; only a leaf keeps it

    def made(line: str, name: str, operation: Callable[[], Tensor]) -> None:
        tensors[name] = operation()
        tensors[name].register_hook(partial(arrived, name))  # type: ignore[no-untyped-call]
        note(line, name)

    note("")
    made("model(x)", "output", lambda: model(x))
    made("(model(x) - y)", "error", lambda: tensors["output"] - y)
    made("(model(x) - y).square()", "squares", lambda: tensors["error"].square())
    made("loss = (model(x) - y).square().mean()", "loss", lambda: tensors["squares"].mean())
    hooks = [
        tensors[name].register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
            lambda leaf, name=name: arrived(name, leaf.grad)
        )
        for name in leaves
    ]
    tensors["loss"].backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    note("optimizer.step()", *leaves)
    for hook in hooks:
        hook.remove()
    return states


def numbers(tensor: Tensor) -> Numbers:
    """Return the numbers of a tensor in the order of its indices."""
    return tuple(tensor.detach().flatten().tolist())


def _node(tensor: Tensor) -> tuple[str, int | str]:
    node = tensor.grad_fn
    assert node is not None
    name = node.name()
    try:
        kept = saved_values(node).values()
    except RuntimeError:
        return name, FREED
    return name, sum(isinstance(value, Tensor) for value in kept)
