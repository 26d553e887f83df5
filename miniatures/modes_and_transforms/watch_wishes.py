"""Which hook for which wish: each is run, and says what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from miniatures.modes_and_transforms.watch import Tagged, functions_under, operators_under
from miniatures.modes_and_transforms.watch_compiled import Scaled


@dataclass(frozen=True)
class Wish:
    """A wish, and the hook that grants it.

    :param about: where to step in: the branch of the picture.
    :param wish: in words.
    :param hook: what to use.
    :param showed: what the run showed.
    :param granted: the run did what the wish says.
    """

    about: str
    wish: str
    hook: str
    showed: str
    granted: bool


BLOCK, TENSOR, FUNCTION, PLACE = (
    "all calls in a block of code", "wherever a certain tensor goes", "a function that you call",
    "one place of a model",
)  # fmt: skip


class Duck:
    """No tensor, and torch functions take it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__


class Sign(torch.autograd.Function):
    """The sign of a number, with a gradient of one."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.sign(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def wishes() -> list[Wish]:
    """Run each hook and return what it showed."""
    x, layer = torch.arange(6.0).reshape(3, 2), torch.nn.Linear(2, 1)

    def step() -> None:
        torch.autograd.backward(layer(x).sum())

    functions, operators = functions_under(step), operators_under(step)
    seen: list[tuple[int, ...]] = []
    handle = layer.register_forward_hook(lambda module, args, out: seen.append(tuple(out.shape)))
    layer(x)
    handle.remove()
    gradients: list[list[float]] = []
    leaf = torch.tensor([-2.0, 3.0], requires_grad=True)
    middle = leaf * 2
    hook: Any = middle.register_hook
    hook(lambda g: gradients.append(g.tolist()))
    torch.autograd.backward((middle * middle).sum())
    own = torch.tensor([-2.0, 3.0], requires_grad=True)
    signs: Any = Sign.apply(own)  # type: ignore[no-untyped-call]
    signs.sum().backward()
    twice = torch.library.custom_op(
        "chapter_modes::twice", lambda t: t * 2, mutates_args=(), schema="(Tensor t) -> Tensor"
    )
    with torch.device("meta"):
        empty = torch.ones(1 << 20, 1 << 20)
    tagged, scaled = x.as_subclass(Tagged) + 1, Scaled(x, 3.0)
    rows = vmap(grad(lambda t: (t * t).sum()))(x)
    return [
        Wish(BLOCK, "the functions, as they are written", "TorchFunctionMode",
             functions[0], functions[0] == "torch.nn.functional.linear"),
        Wish(BLOCK, "the operators, of backward too", "TorchDispatchMode",
             ", ".join(operators[1:3]), "aten.addmm" in operators and "aten.mm" in operators),
        Wish(BLOCK, "new tensors with shapes and no numbers", 'torch.device("meta")',
             f"{empty.numel():,} elements, no memory", empty.is_meta),
        Wish(TENSOR, "results of the same class", "a subclass of torch.Tensor",
             f"tagged + 1 is a {type(tagged).__name__}", type(tagged) is Tagged),
        Wish(TENSOR, "numbers stored in another way", "a wrapper, __torch_dispatch__",
             f"sum: {(scaled.sum()).item():g}", scaled.sum().item() == 45),
        Wish(TENSOR, "an object that is no tensor", "__torch_function__ on a class",
             f"torch.add(duck, x): {torch.add(Duck(), x)!r}",  # type: ignore[call-overload]
             torch.add(Duck(), x) == "add"),  # type: ignore[call-overload]
        Wish(FUNCTION, "its derivative, or for a batch", "torch.func",
             f"vmap(grad(f)): {tuple(rows.shape)}", torch.equal(rows, 2 * x)),
        Wish(FUNCTION, "another gradient", "torch.autograd.Function",
             f"{own.grad.tolist() if own.grad is not None else None}",
             own.grad is not None and own.grad.tolist() == [1, 1]),
        Wish(FUNCTION, "a kernel of your own", "torch.library.custom_op",
             f"{twice(x).sum().item():g}", twice(x).sum().item() == 30),
        Wish(PLACE, "what a module returns", "register_forward_hook",
             f"{seen[0]}", seen == [(3, 1)]),
        Wish(PLACE, "one gradient", "Tensor.register_hook",
             f"{gradients[0]}", gradients == [[-8.0, 12.0]]),
    ]  # fmt: skip
