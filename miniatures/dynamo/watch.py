"""What a chapter asks Dynamo: graphs, cache entries, guards, bytecode, resumptions, logs."""

from __future__ import annotations

import ctypes
import dis
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo as dynamo
import torch._dynamo.guards
from torch import fx
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_fn
from torch._logging._internal import set_logs

LOGGERS = ("torch", "torch._dynamo")

error_on_graph_break = dynamo.error_on_graph_break  # a `with` for a part of a compiled function
settings = dynamo.config.patch  # a `with` that sets options of Dynamo
mark_dynamic = dynamo.mark_dynamic  # says of a tensor that a size will change
frozen = dynamo.run  # uses what is compiled and compiles nothing


def setting(name: str) -> Any:
    """Return an option of Dynamo."""
    return getattr(dynamo.config, name)


def known_contexts() -> list[str]:
    """Return the classes whose `with` Dynamo can enter again behind a break."""
    from torch._dynamo.variables.torch import supported_ctx_manager_classes

    known = {getattr(kind, "__qualname__", str(kind)) for kind in supported_ctx_manager_classes}
    return sorted(known)


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """Collect what PyTorch's loggers say, without time, place and process."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.extend(tidy(record.getMessage()).splitlines())

    keep, loggers = Keep(), [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [keep], False
    try:
        yield said
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate


def tidy(text: str) -> str:
    """Take out what differs from run to run: addresses, file names, generated names' tails."""
    text = re.sub(r"(__compiled_fn_\d+)_[0-9a-f_]{20,}", r"\1", text)
    text = re.sub(r"(?:/[\w.+-]+)*/?\b(?:ipykernel_\d+|tmp\w*)/\d+\.py", "cell", text)
    text = re.sub(r"<ipython-input-[\w-]+>|\b\d{6,}\.py", "cell", text)
    text = re.sub(r"(?:/[\w.+-]+)+/((?:torch|miniatures)/)", r"\1", text)
    return re.sub(r"\b0x[0-9a-f]+|(?<=, )\d{12,}(?=\))", "0x…", text)


@dataclass
class Seen:
    """What one compiled function did: after each call the number of graphs, or the error."""

    counts: list[int | str] = field(default_factory=list)
    graphs: list[fx.GraphModule] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def compiled(
    function: Callable[..., Any], calls: Sequence[Sequence[Any]], logs: str = "", **options: Any
) -> Seen:
    """Compile a function from scratch, with a backend that keeps the graphs; call it.

    :param calls: the arguments of each call.
    :param logs: artifacts of PyTorch's logs to switch on, as in ``TORCH_LOGS``.
    """
    seen = Seen()

    def backend(graph: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        seen.graphs.append(graph)
        return graph.forward

    dynamo.reset()
    run = torch.compile(function, backend=backend, **options)
    chosen: dict[str, Any] = dict.fromkeys(logs.split(), True)
    if chosen:
        set_logs(**chosen)
    try:
        # Dynamo empties the processor's caches to time each guard tree it makes; not here.
        quick = patch.object(torch._dynamo.guards, "profile_guard_manager", lambda *_: 0.0)
        with log_lines() as said, quick:
            for args in calls:
                try:
                    seen.results.append(run(*args))
                    seen.counts.append(len(seen.graphs))
                except Exception as error:
                    seen.counts.append(type(error).__name__)
                    seen.results.append(error)
        seen.said = [line for line in said if line.strip()]
    finally:
        if chosen:
            set_logs()
    return seen


def graph_lines(graph: fx.GraphModule) -> list[str]:
    """Write a graph down without names: operation, target, numbers of the nodes that it takes."""
    nodes = [n for n in graph.graph.nodes if n.op != "placeholder" or n.users]
    number = {node: f"%{i}" for i, node in enumerate(nodes)}

    def told(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(told, value))}]"
        if isinstance(value, slice):
            return ":".join(map(told, (value.start, value.stop, value.step)))
        return number[value] if isinstance(value, fx.Node) else repr(value)

    def line(node: fx.Node) -> str:
        if node.op == "placeholder":
            return "input"
        what = getattr(node.target, "__name__", node.target)
        named = [f"{key}={told(value)}" for key, value in node.kwargs.items()]
        return f"{what}({', '.join([*map(told, node.args), *named])})"

    return [f"{number[node]} = {line(node)}" for node in nodes]


def code_lines(graph: fx.GraphModule) -> list[str]:
    """Return the Python text of a graph, without what frees values."""
    lines = re.sub(r";  .*= None", "", graph.code).splitlines()
    return [line for line in lines if line.strip()]


def hook_is_own() -> bool:
    """Tell whether CPython evaluates the next frame with a function of its own."""
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    get = api._PyInterpreterState_GetEvalFrameFunc
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    own = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    return bool(get(api.PyInterpreterState_Get()) == own)


def entries(function: Any) -> list[Any]:
    """Return the cache entries on a function's code, in the order in which they are tried."""
    function = innermost_fn(function)
    return list(_debug_get_cache_entry_list(getattr(function, "__code__", function)))


def guards(entry: Any) -> list[tuple[int, str, str]]:
    """Read an entry's guard tree: depth, kind, and text of each node and guard."""
    rows = []
    for line in str(entry.guard_manager).splitlines():
        match = re.match(r"([| ]*)\+- (\w+)(?:: (.*))?$", line)
        if match:
            text = re.sub(r"\s{2,}#.*|, accessed_by=.*", "", match[3] or "")
            rows.append((len(match[1]) // 2, match[2], tidy(text)))
    return rows


def holds(entry: Any, scope: dict[str, Any]) -> bool:
    """Ask an entry's guards about local variables."""
    return bool(entry.guard_manager.check(scope))


def guards_run(entry: Any, scope: dict[str, Any]) -> int:
    """Count the guards of an entry that are evaluated for local variables, up to the first no."""
    return int(entry.guard_manager.check_verbose(scope).num_guards_executed)


def python_called(entry: Any, scope: dict[str, Any]) -> list[str]:
    """Name the Python functions that run while an entry's guards are checked."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        entry.guard_manager.root.check(scope)
    finally:
        sys.setprofile(before)
    return names


def guard_failure(entry: Any, scope: dict[str, Any]) -> str:
    """Ask an entry's guards about local variables; return the first that fails, or nothing."""
    said = entry.guard_manager.check_verbose(scope)
    text = "" if said.result else str(said.verbose_code_parts[0])
    return re.sub(r"\d{9,}", "…", tidy(text.split("#")[0])).strip(" ,")


def bytecode(code: CodeType, only: str = "") -> list[str]:
    """List instructions and their arguments.

    :param only: an expression that the instruction's name must match from its beginning.
    """
    return [
        f"{i.opname} {tidy(i.argrepr) or ('' if i.arg is None else i.arg)}".strip()
        for i in dis.get_instructions(code)
        if i.opname not in ("CACHE", "PRECALL", "RESUME", "NOP") and re.match(only, i.opname)
    ]


def resumptions(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return the functions that Dynamo made to resume this one, in the order of its calls."""
    found = {}
    for entry in entries(function):
        for name in entry.code.co_names:
            if name.startswith("__resume_at"):
                found[name] = function.__globals__[name]
    return found


def explained(function: Callable[..., Any], *args: Any, old: bool = False) -> Any:
    """Return what `torch._dynamo.explain` finds; `old` passes the arguments as one did in 2.0."""
    dynamo.reset()
    with log_lines():
        return dynamo.explain(function, *args) if old else dynamo.explain(function)(*args)
