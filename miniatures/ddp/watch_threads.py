"""Programs that people asked about, as small as they go on two CPU ranks; each names its thread.

Every function runs on one rank and returns what the thread is about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from miniatures.ddp.watch import chain, error_of


class Heads(nn.Module):
    """Three layers of one weight, a method for each (icefall issue 226)."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> Any:
        """Apply the first head."""
        return self.heads[0](x)

    def other(self, x: torch.Tensor, head: int) -> Any:
        """Apply another head, without the wrapper's knowledge."""
        return self.heads[head](x)


def methods(rank: int, wrapper: bool) -> list[float | None]:
    """Back-propagate through methods of `model.module`; return the weights' gradients.

    :param wrapper: call the wrapper in the same step, as the first program of icefall 226 does;
        else only one method, as in its comment of February 2022.
    """
    model, loss = DDP(Heads()), torch.zeros(1)
    if wrapper:
        loss = model(torch.tensor([rank + 0.0])) + model.module.other(
            torch.tensor([rank + 100.0]), 1
        )
    (loss + model.module.other(torch.tensor([rank + 1000.0]), 2)).sum().backward()
    grads = [head.weight.grad for head in model.module.heads]
    return [None if grad is None else grad.item() for grad in grads]


def declared_only(rank: int) -> tuple[float, float]:
    """Use one of two declared layers (pytorch issue 112152): gradient and weight after a step."""
    torch.manual_seed(0)
    net = nn.ModuleDict({"unused": nn.Linear(10, 10), "used": nn.Linear(10, 5)})

    class Toy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = net

        def forward(self, x: torch.Tensor) -> Any:
            return self.parts["used"](x)

    model = DDP(Toy())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.full((20, 10), rank + 1.0)).sum().backward()
    weight: Any = net["used"].weight
    grad = weight.grad[0, 0].item()
    optimizer.step()
    return grad, weight[0, 0].item()


def discriminator(rank: int) -> str:
    """Forward on fakes, forward on real ones, one backward (issue 175024); return the error."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 4, 2, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 1, 4, 2, 1))
    model, images = DDP(net), torch.randn(2, 2, 3, 16, 16)
    model(images[0]).mean().backward()
    return error_of(lambda: (model(images[0]).mean() - model(images[1]).mean()).backward())


def scaled_by_buffer(rank: int) -> str:
    """Multiply by a buffer, call twice, one backward (issue 22095); return the error."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(256, 32)
            self.register_buffer("buf", torch.zeros(1, 32))

        def forward(self, x: torch.Tensor) -> Any:
            return (self.lin(x) * self.buf).sum()

    model, x = DDP(Scaled()), torch.rand(1, 256)
    return error_of(lambda: (model(x) + model(x)).backward())


def batch_norm_in_eval(rank: int) -> str:
    """Ask for a gradient after another forward in evaluation mode (issue 65907); the error."""

    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bn = nn.BatchNorm2d(2)

        def forward(self, x: torch.Tensor) -> Any:
            return self.bn(x).sum()

    model = DDP(Norm()).eval()
    x = torch.zeros(1, 2, 3, 4, requires_grad=True)
    first = model(x)
    model(x)
    return error_of(lambda: torch.autograd.grad(first, x))


def three_forwards(rank: int) -> list[float]:
    """Three forwards, then a backward for each (issue 47260): a gradient after each."""
    model, x, found = DDP(chain(1)), torch.full((2, 8), rank + 1.0), []
    losses = [model(x).sum() for _ in range(3)]
    for loss in losses:
        loss.backward(retain_graph=True)
        found.append(_weight(model).grad[0, 0].item())
    return found


def one_weight_each(rank: int) -> str:
    """Three forwards that use a weight each, with unused ones sought (issue 105723): the error."""

    class Orders(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.ParameterList(torch.ones(()) for _ in range(3))

        def forward(self, x: float, order: int) -> Any:
            return self.w[order] * x

    model = DDP(Orders(), find_unused_parameters=True)
    return error_of(lambda: sum(model(1.0, order) for order in range(3)).backward())


def other_output(rank: int) -> tuple[list[bool], str]:
    """Leave one of two outputs out of the loss, in a static graph (issue 97030).

    :returns: after each backward, whether the unused layer has no gradient; and the error.
    """

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(10, 10), nn.Linear(10, 10)

        def forward(self, x: torch.Tensor) -> Any:
            return self.a(x), self.b(x)

    model, none = DDP(Two(), static_graph=True), list[bool]()

    def steps() -> None:
        for _ in range(6):
            model(torch.ones(1, 10))[0].sum().backward()
            none.append(model.module.b.weight.grad is None)

    return none, error_of(steps)


def static_and_accumulating(rank: int, first_inside: bool) -> tuple[str, list[float]]:
    """Accumulate with `no_sync` in a static graph (issue 143580, accelerate issue 3679).

    :param first_inside: the very first pass is inside `no_sync`.
    :returns: the error, and a gradient after each window of two passes.
    """
    model, x, found = DDP(chain(1), static_graph=True), torch.full((2, 8), rank + 1.0), []

    def windows() -> None:
        if not first_inside:
            model(x).sum().backward()
        for _ in range(3):
            model.zero_grad()
            with model.no_sync():
                model(x).sum().backward()
            model(x).sum().backward()
            found.append(_weight(model).grad[0, 0].item())

    return error_of(windows), found


def sparse_tables(rank: int, unused: bool) -> tuple[str, str]:
    """Look up in a sparse table beside another (issue 80496).

    :param unused: leave the other table out, and have unused parameters sought.
    :returns: the error, and the layout of the gradient.
    """

    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.Embedding(10, 4, sparse=True) for _ in range(2))

        def forward(self, x: torch.Tensor) -> Any:
            return self.a(x) if unused else self.a(x) + self.b(x)

    model = DDP(Tables(), find_unused_parameters=unused)
    said = error_of(lambda: model(torch.tensor([rank])).sum().backward())
    return said, str(model.module.a.weight.grad.layout)


def _weight(model: nn.Module) -> Any:
    return model.module[0].weight  # type: ignore[index,union-attr]


PROGRAMS: tuple[Callable[..., Any], ...] = (discriminator, scaled_by_buffer, batch_norm_in_eval)
"""The three that raised up to 2.11 because a broadcast changed the version of a buffer."""
