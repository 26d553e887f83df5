"""Watches PyTorch capture: which lines became nodes, how a list grew, what TorchScript runs."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from torch import fx

from miniatures.capture.draw import Line


def source_lines(function: Callable[..., Any]) -> list[str]:
    """Return the lines of a function, without decorators and comments."""
    lines = inspect.getsource(function).rstrip().splitlines()
    first = next(at for at, line in enumerate(lines) if line.lstrip().startswith("def "))
    return [line.partition("  #")[0] for line in lines[first:]]


def ir_lines(nodes: Any, indent: str = "") -> list[str]:
    """Return the nodes of a graph of TorchScript, short: `y = sin(x)`; constants stand in place."""
    shown = []
    for node in nodes:
        kind = node.kind().split("::")[1]
        if kind == "Constant":
            continue
        inputs = ", ".join(_short(value) for value in node.inputs())
        outputs = ", ".join(_short(value) for value in node.outputs())
        shown.append(f"{indent}{outputs} = {kind}({inputs})")
        for block in node.blocks():
            inside = ir_lines(block.nodes(), indent + "  ")
            ends = ", ".join(_short(value) for value in block.outputs())
            shown += [*inside, f"{indent}  -> {ends}"]
    return shown


def _short(value: Any) -> str:
    node = value.node()
    if node.kind() == "prim::Constant":
        made = value.toIValue()
        return str(made.item()) if hasattr(made, "item") else str(made)
    name = str(value.debugName())
    return f"%{name}" if name.isdigit() else name


def lines_with_nodes(function: Callable[..., Any], graph: Any) -> set[int]:
    """Return the lines of a function, counted from its `def`, that made nodes of a graph."""
    start = function.__code__.co_firstlineno
    skipped = inspect.getsource(function).splitlines()
    start += next(at for at, line in enumerate(skipped) if line.lstrip().startswith("def "))
    found = re.findall(r"\.py:(\d+):", "\n".join(
        line for line in str(graph).splitlines() if "prim::Constant" not in line))  # fmt: skip
    return {int(number) - start for number in found}


def marked(lines: list[str], recorded: set[int]) -> list[Line]:
    """Return lines of a function with roles: "a" for those that made nodes, "b" for the others."""
    return [
        (line, "soft" if at == 0 else "a" if at in recorded else "b")
        for at, line in enumerate(lines)
    ]


def steps(function: Callable[..., Any]) -> list[tuple[int, list[str], str]]:
    """Trace a function with FX; return for each node made the line, the list so far, and the error.

    Lines are counted from the `def`. The last state has the error, if tracing ended in one.
    """
    states: list[tuple[int, list[str], str]] = []
    start = function.__code__.co_firstlineno

    class Watched(fx.Tracer):
        def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
            node = super().create_node(*args, **kwargs)
            frame = sys._getframe()
            while frame.f_back and frame.f_code is not function.__code__:
                frame = frame.f_back
            inside = frame.f_code is function.__code__
            line = frame.f_lineno - start if inside else 0
            if node.op == "output":
                line = len(source_lines(function)) - 1
            states.append((line, [*(states[-1][1] if states else []), node_line(node)], ""))
            return node

    try:
        Watched().trace(function)
    except Exception as error:
        trace, line = error.__traceback__, 0
        while trace:
            if trace.tb_frame.f_code is function.__code__:
                line = trace.tb_lineno - start
            trace = trace.tb_next
        states.append((line, states[-1][1], f"{type(error).__name__}: {error}"))
    return states


def node_line(node: fx.Node) -> str:
    """Return a node of FX in one short line."""
    target = node.target if isinstance(node.target, str) else node.target.__name__
    if node.op in ("placeholder", "output", "get_attr"):
        rest = "" if node.op == "placeholder" else f" {node.args[0] if node.args else target}"
        return f"{node.name}: {node.op}{rest if node.op == 'output' else ''}"
    args = ", ".join(map(str, node.args))
    return f"{node.name}: {node.op} {target}({args})"


def run_lines(graph: Any) -> list[Line]:
    """Return the graph that TorchScript ran, short: watchers, checks and operators by role."""
    shown: list[Line] = []
    names: dict[str, str] = {}

    def name(value: Any) -> str:
        return names.get(value.debugName(), _short(value))

    def walk(nodes: Any, indent: str) -> None:
        for node in nodes:
            kind = node.kind().split("::")[1]
            outputs = list(node.outputs())
            if kind == "profile":
                if not outputs:
                    continue
                (value,) = node.inputs()
                names[outputs[0].debugName()] = name(value)
                seen = re.search(rf"%{outputs[0].debugName()} : .*?profiled_type=(\w+\(.*?\))",
                                 str(graph))  # fmt: skip
                said = re.sub(r"(, )?strides=\[[\d, ]*\](, )?", ", ", seen[1]) if seen else ""
                grad = ", needs grad" if "requires_grad=1" in said else ""
                size = re.search(r"\((\d[\d, ]*)", said)
                shown.append((f"watch {name(value)}: ({size[1].strip(', ') if size else ''})"
                              f"{grad}", "b"))  # fmt: skip
            elif kind == "RequiresGradCheck":
                inputs = [name(value) for value in node.inputs()]
                shown.append((f"check who needs grad: {', '.join(inputs)}", "d"))
            elif kind == "If":
                for block, said in zip(node.blocks(), ("as it was watched:", "otherwise:"),
                                       strict=True):  # fmt: skip
                    shown.append((said, "soft"))
                    walk(block.nodes(), "  ")
            elif kind.startswith("DifferentiableGraph"):
                shown.append((f"{indent}the graph, with its own backward", "c"))
            elif kind == "CallFunction":
                shown.append((f"{indent}the graph as it was compiled", "e"))
            elif kind not in ("Constant", "TupleUnpack"):
                given = ", ".join(name(value) for value in node.inputs())
                shown.append((f"{indent}{name(outputs[0])} = {kind}({given})", "ink"))

    walk(graph.nodes(), "")
    return shown
