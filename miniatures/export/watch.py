"""Watching exports: which sizes a program takes, what it says when it refuses, what a file has."""

from __future__ import annotations

import contextlib
import importlib
import io
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

BY_OTHERS = (
    Path(__file__).with_name("linear-2.11.pt2"),
    Path(__file__).with_name("linear-2.15.pt2"),
)
"""Programs of one linear layer that two other releases saved."""

TRIED = (0, 1, 2, 3, 5, 6, 8, 9, 100)
"""Sizes of the first dimension that programs are called with."""


def optional(name: str) -> ModuleType | None:
    """Return a module that not every reader has, or say in one sentence that it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: cells that need it show nothing; `pip install {name}`.")
        return None


class Written(nn.Module):
    """A model whose forward is a function, so that a line suffices to write one."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        super().__init__()
        self.function = forward

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def exported(function: Callable[..., Any], x: torch.Tensor, **options: Any) -> ExportedProgram:
    """Export a function of one tensor."""
    return torch.export.export(Written(function), (x,), **options)


def calls(program: ExportedProgram) -> list[str]:
    """Return the operators that a program calls, in order."""
    return [
        getattr(node.target, "__name__", str(node.target))
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def refusal(work: Callable[[], Any]) -> str:
    """Run something and return what it said when it refused, or an empty string.

    What it wrote to stderr on the way, such as the part of a graph it had, is left out.
    """
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            work()
    except Exception as error:
        name = type(error).__name__
        return f"{name}: {error}" if str(error) else name
    return ""


def taken(
    asked: Any, function: Callable[..., Any] = lambda x: x * 2, example: int = 3
) -> list[int] | None:
    """Return which of `TRIED` a program takes for its first dimension, or None if none was made.

    :param asked: what dynamic_shapes says of the first dimension.
    """
    shapes = None if asked is None else ({0: asked},)
    try:
        model = exported(function, torch.randn(example, 4), dynamic_shapes=shapes).module()
    except Exception:
        return None
    return [size for size in TRIED if not refusal(partial(model, torch.randn(size, 4)))]


def shape(value: Any) -> str:
    """Return a shape as a reader would write it."""
    return "[" + ", ".join(str(size) for size in value.shape) + "]"


def parts(
    program: ExportedProgram,
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """Return the inputs of a program with kind and shape, and its calls with operator and shape."""
    kinds = {spec.arg.name: spec.kind.name for spec in program.graph_signature.input_specs}
    nodes = [node for node in program.graph.nodes if node.op in ("placeholder", "call_function")]
    holders = [
        (node.name, kinds[node.name], shape(node.meta["val"]))
        for node in nodes
        if node.op == "placeholder"
    ]
    called = [
        (node.name, str(node.target).removesuffix(".default"), shape(node.meta["val"]))
        for node in nodes
        if node.op == "call_function"
    ]
    return holders, called


def uses(path: str | Path) -> dict[str, int]:
    """Return the bytes of a `.pt2` file by what they are for."""
    found: dict[str, int] = {}
    for entry in zipfile.ZipFile(path).infolist():
        name = entry.filename
        if name.endswith(".so"):
            use = "machine code"
        elif name.endswith(".cpp"):
            use = "C++ source"
        elif "weights/weight" in name or "constants/tensor" in name:
            use = "tensors"
        elif "sample_inputs" in name:
            use = "example inputs"
        elif name.endswith("models/model.json"):
            use = "graph"
        else:
            use = "bookkeeping"
        found[use] = found.get(use, 0) + entry.file_size
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference between two outputs."""
    return float((one.detach() - other.detach()).abs().max())


def several(values: Sequence[float]) -> str:
    """Return numbers as a C++ program reads and prints them."""
    return " ".join(f"{value:.9g}" for value in values)
