"""Listing the ATen operators that a piece of Python runs, forward and backward, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from insidetorch.display import Display, escape, table
from insidetorch.private.engine import current_node, graph_task_id
from insidetorch.watch.modes import each_call

_DTYPES = {
    "float": "f",
    "bfloat": "bf",
    "int": "i",
    "uint": "u",
    "complex": "c",
}
_ITEMS = 6


@dataclass(frozen=True)
class Op:
    """One call.

    :param name: the operator with its overload, ``aten::mul.Tensor``, or a Python function.
    :param inputs: the arguments as text; a tensor as ``f32[3, 4]``.
    :param outputs: what it returned, in the same form.
    :param node: the autograd node that called it; empty in the forward pass.
    :param depth: how many of the listed calls it runs inside of.
    """

    name: str
    inputs: str
    outputs: str
    node: str
    depth: int


def trace_ops(fn: Callable[[], object], *, python: bool = False) -> Display:
    """Run `fn` and list the operators that reach the backend, with shapes and dtypes, in order.

    Seen from a `TorchDispatchMode`, below autograd: an operator made of others shows as those. In
    a backward pass the column *node* says which autograd node called.

    :param fn: called once, without arguments.
    :param python: list the torch functions called from Python too, the operators inside them
        indented.
    """
    ops = record(fn, python=python)
    rows = [
        [i, _code(op.name, op.depth), _code(f"({op.inputs}) → {op.outputs}"), op.node or "–"]
        for i, op in enumerate(ops, start=1)
    ]
    kept = [
        {"name": op.name, "inputs": op.inputs, "outputs": op.outputs, "node": op.node} for op in ops
    ]
    return table(
        ["#", "operator", "inputs → outputs", "node"],
        rows,
        caption=f"{len(ops)} call{'s' * (len(ops) != 1)} in order",
        numeric=[0],
        record={"kind": "ops", "ops": kept},
    )


def _code(text: str, depth: int = 0) -> Display:
    indent = f' style="margin-left: {1.2 * depth:g}em"' if depth else ""
    return Display(f"<code{indent}>{escape(text)}</code>", "  " * depth + text)


def record(fn: Callable[[], object], *, python: bool = False) -> list[Op]:
    """Run `fn` and return the calls in the order they began. Parameters: `trace_ops`."""
    calls: list[Op | None] = []
    depth = [0]

    def run(
        name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        inputs = ", ".join(
            [describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()]
        )
        place, level, node = len(calls), depth[0], _node_name()
        calls.append(None)
        depth[0] += 1
        try:
            result = func(*args, **kwargs)
            calls[place] = Op(name, inputs, describe(result), node, level)
        except BaseException:
            calls[place] = Op(name, inputs, "raised", node, level)
            raise
        finally:
            depth[0] -= 1
        return result

    with ExitStack() as modes:
        if python:
            modes.enter_context(_function_mode(run))
        modes.enter_context(_dispatch_mode(run))
        fn()
    return [op for op in calls if op is not None]


def _dispatch_mode(run: Callable[..., Any]) -> Any:
    return each_call(
        lambda func, args, kwargs: run(f"{func.namespace}::{func.__name__}", func, args, kwargs)
    )


def _function_mode(run: Callable[..., Any]) -> Any:
    from torch.overrides import TorchFunctionMode, resolve_name

    class Recorder(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = resolve_name(func) or getattr(func, "__qualname__", repr(func))
            return run(name, func, args, kwargs or {})

    return Recorder()


def _node_name() -> str:
    if graph_task_id() < 0:
        return ""
    node = current_node()
    return "" if node is None else str(node.name()).rsplit("::", 1)[-1]


def describe(value: Any) -> str:
    """Return a value as text, each tensor as dtype and shape: ``f32[3, 4]``."""
    import torch

    if isinstance(value, torch.Tensor):
        device = "" if value.device.type == "cpu" else f"@{value.device.type}"
        return f"{_dtype(value.dtype)}[{', '.join(map(str, value.shape))}]{device}"
    if isinstance(value, (list, tuple)):
        shown = [describe(item) for item in value[:_ITEMS]]
        inner = ", ".join([*shown, f"… {len(value)} items"] if len(value) > _ITEMS else shown)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:g}"
    text = " ".join(repr(value).split()).removeprefix("torch.")
    return text if len(text) <= 40 else f"{type(value).__name__} object"


def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    word = name.rstrip("0123456789")
    return f"{_DTYPES[word]}{name[len(word) :]}" if word in _DTYPES else name
