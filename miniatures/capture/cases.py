"""Cases: five ways to capture, programs to capture, and what becomes of each program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from miniatures.capture import cases_programs as programs

Function = Callable[..., Any]


@contextmanager
def quietly() -> Iterator[list[warnings.WarningMessage]]:
    """Keep the warnings of the block in a list, without showing them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


def _trace(module: nn.Module, x: torch.Tensor) -> Function:
    jit: Any = torch.jit  # without types in torch
    traced: Function = jit.trace(module, x, check_trace=False)
    return traced


def _script(module: nn.Module, x: torch.Tensor) -> Function:
    return torch.jit.script(module)


def _symbolic(module: nn.Module, x: torch.Tensor) -> Function:
    return fx.symbolic_trace(module)


def _make(module: nn.Module, x: torch.Tensor) -> Function:
    return make_fx(module)(x)


graphs: list[fx.GraphModule] = []
"""What Dynamo compiled since the last `capture`."""


def _dynamo(module: nn.Module, x: torch.Tensor) -> Function:
    torch.compiler.reset()
    graphs.clear()

    def keep(graph: fx.GraphModule, _: object) -> Function:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(module, backend=keep)
    compiled(x.clone())
    return compiled


WAYS: dict[str, Callable[[nn.Module, torch.Tensor], Function]] = {
    "jit.trace": _trace,
    "jit.script": _script,
    "symbolic_trace": _symbolic,
    "make_fx": _make,
    "Dynamo": _dynamo,
}


@dataclass(frozen=True)
class Program:
    """A program, the input it is captured with, and the one it is then called with.

    :param change: what is done to a module between the two, if anything.
    :param kind: the type of the second input.
    :param grad: whether the gradient is compared too.
    """

    make: type[nn.Module]
    first: tuple[float, ...] = (1.0, 2.0, 3.0)
    second: tuple[float, ...] = (-1.0, -2.0, -3.0)
    change: Callable[[Any], object] = lambda module: None
    kind: torch.dtype = torch.float32
    grad: bool = False


def _rescale(module: Any) -> None:
    module.scale = 3.0


PROGRAMS = {
    "a list in Python": Program(programs.PythonList),
    "x += 1": Program(programs.InPlace),
    "a size in arithmetic": Program(programs.SizeInArithmetic, second=(4.0, 5.0)),
    "a new tensor of that size": Program(programs.NewTensor, second=(4.0, 5.0)),
    "random numbers": Program(programs.RandomNumbers),
    "the type of the input": Program(programs.TypeOfInput, kind=torch.float64),
    "no_grad() inside": Program(programs.WithoutGradient, grad=True),
    "isinstance(x, Tensor)": Program(programs.IsTensor),
    "train() or eval()": Program(programs.TrainOrEval, change=lambda module: module.eval()),
    "an attribute, changed": Program(programs.Attribute, change=_rescale),
    "a side effect": Program(programs.SideEffect),
    "if, on a size": Program(programs.BranchOnSize, second=(4.0, 5.0)),
    "for, over a size": Program(programs.LoopOverSize, second=(4.0, 5.0)),
    "if, on values": Program(programs.BranchOnValues),
    "item()": Program(programs.NumberReadOut),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a program.

    :param word: "follows", "differs", "refused" or "raises".
    :param detail: how many graphs, whether there was a warning, or the first line of an error.
    """

    word: str
    detail: str = ""


def _run(function: Function, x: torch.Tensor, grad: bool) -> list[torch.Tensor]:
    """Return the result, the input afterwards, its gradient, and how often a list was written."""
    x = x.clone().requires_grad_(grad)
    programs.SEEN.clear()
    torch.manual_seed(0)
    found = [function(x), x, torch.tensor(len(programs.SEEN))]
    if grad:
        found[0].sum().backward()
        assert x.grad is not None
        found.append(x.grad)
    return found


def outcome(way: str, name: str, again: bool = False) -> Outcome:
    """Capture a program in one way, call what was captured with another input, compare.

    :param again: call it with the input of the capture, and change nothing in between.
    """
    program = PROGRAMS[name]
    if again:
        program = Program(program.make, program.first, program.first, grad=program.grad)
    module = program.make()
    first = torch.tensor(program.first)
    second = torch.tensor(program.second, dtype=program.kind)
    with quietly() as said:
        try:
            captured = WAYS[way](module, first.clone().requires_grad_(program.grad))
        except Exception as error:
            return Outcome("refused", _first_line(error))
        made = len(graphs) if way == "Dynamo" else 0
        for one in (module, captured):
            if (isinstance(one, nn.Module) and program.change is not _rescale) or one is module:
                program.change(one)
        expected = _run(module, second, program.grad)
        try:
            found = _run(captured, second, program.grad)
        except Exception as error:
            return Outcome("raises", _first_line(error))
    same = all(
        one.dtype == other.dtype and torch.equal(one, other)
        for one, other in zip(found, expected, strict=True)
    )
    if way == "Dynamo":
        return Outcome("follows" if same else "differs", f"{made}, {len(graphs)}")
    jit: Any = torch.jit
    warned = any(issubclass(one.category, jit.TracerWarning) for one in said)
    return Outcome("follows" if same else "differs", "warned" if warned else "")


def said(function: Callable[[], object]) -> str:
    """Return what a call raises, its first line of text; empty if it raises nothing."""
    with quietly():
        try:
            function()
        except Exception as error:
            return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
