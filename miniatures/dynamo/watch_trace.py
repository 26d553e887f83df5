"""The path of one frame through Dynamo, instruction by instruction: stack, graph and guards."""

from __future__ import annotations

import dis
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo as dynamo
import torch._dynamo.guards
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._logging._internal import set_logs

TRACER = "torch._dynamo.symbolic_convert"
QUIET = ("CACHE", "PRECALL", "RESUME", "NOP", "PUSH_NULL", "COPY_FREE_VARS", "MAKE_CELL")
KINDS = {
    "TENSOR_MATCH": "tensor",
    "CONSTANT_MATCH": "value",
    "EQUALS_MATCH": "value",
    "TYPE_MATCH": "type",
    "ID_MATCH": "identity",
    "FUNCTION_MATCH": "identity",
    "CLOSURE_MATCH": "identity",
    "BUILTIN_MATCH": "identity",
    "MODULE_MATCH": "identity",
    "SEQUENCE_LENGTH": "length",
    "LIST_LENGTH": "length",
    "DICT_KEYS": "keys",
    "DICT_CONTAINS": "keys",
    "HASATTR": "attribute",
}
"""What kinds of guards compare, in a word; others are about the thread or the process."""


@dataclass(frozen=True)
class Moment:
    """What Dynamo has in hand before one instruction.

    :param attempt: how often it began at the top, from 1.
    :param at: the offset of the instruction in the function's bytecode.
    :param stack: what is on its stack, the top last.
    :param graph: the calls and inputs of the graph so far, as lines.
    :param guards: the facts about values it relies on so far.
    """

    attempt: int
    at: int
    stack: tuple[str, ...]
    graph: tuple[str, ...]
    guards: tuple[str, ...]


def instructions(function: Callable[..., Any]) -> dict[int, str]:
    """Return a function's instructions by offset, without those that do nothing here."""
    return {
        i.offset: f"{i.opname} {i.argrepr or ('' if i.arg is None else i.arg)}".strip()
        for i in dis.get_instructions(function)
        if i.opname not in QUIET
    }


def traced(function: Callable[..., Any], args: Sequence[Any]) -> list[Moment]:
    """Compile a function, call it once, and return the moments of its own frame.

    Dynamo logs each instruction before it interprets it; this looks at its state then.
    """
    moments: list[Moment] = []
    attempts: list[Any] = []

    class Look(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            try:
                tracer = InstructionTranslator.current_tx()
            except Exception:
                return
            same = tracer.f_code is function.__code__ and type(tracer) is InstructionTranslator
            if not same or not text.startswith("TRACE ") or "starts_line" in text:
                return
            if not any(tracer is known for known in attempts):
                attempts.append(tracer)
            place = tracer.current_instruction.offset
            moments.append(
                Moment(
                    len(attempts),
                    -1 if place is None else place,
                    tuple(short(value) for value in tracer.stack),
                    tuple(lines(tracer.output.graph)),
                    tuple(facts(tracer.output.guards)),
                )
            )

    look, logger = Look(level=logging.DEBUG), logging.getLogger(TRACER)
    dynamo.reset()
    set_logs(trace_bytecode=True)
    artifact = logging.getLogger(f"{TRACER}.__trace_bytecode")
    kept = [(each, each.handlers, each.propagate) for each in (logger, artifact)]
    for each in (logger, artifact):
        each.handlers, each.propagate = [], False
    artifact.handlers = [look]
    quick = patch.object(torch._dynamo.guards, "profile_guard_manager", lambda *_: 0.0)
    try:
        with quick:
            torch.compile(function, backend="eager")(*args)
    finally:
        for each, handlers, propagate in kept:
            each.handlers, each.propagate = handlers, propagate
        set_logs()
        dynamo.reset()
    return [moment for moment in moments if moment.at in instructions(function)]


def short(value: Any) -> str:
    """Say what a variable tracker stands for, without making Dynamo look at it."""
    kind = type(value).__name__.removesuffix("Tracker").removesuffix("Variable")
    if kind.startswith("Lazy"):
        if not value.is_realized():
            return f"{value.original_source().name}, not looked at"
        return short(value.realize())
    if kind == "GetAttr":
        return f"method {value.name}"
    if kind == "Constant":
        return f"constant {value.value!r}"
    proxy = vars(value).get("proxy")
    return kind if proxy is None else f"tensor {proxy.node.name}"


def lines(graph: Any) -> list[str]:
    """Write a graph down, a line for each node that is an input or a call."""
    found = []
    for node in graph.nodes:
        if node.op == "placeholder":
            found.append(f"{node.name} = input")
        elif node.op.startswith("call"):
            target = getattr(node.target, "__name__", node.target)
            args = ", ".join(str(arg) for arg in node.args)
            found.append(f"{node.name} = {target}({args})")
    return found


def facts(guards: Any) -> list[str]:
    """Say which values guards speak of, and what each compares."""
    found = dict[str, None]()
    for guard in guards:
        name, kind = guard.name, guard.create_fn_name()
        if re.match(r"[LG]\[", name) and kind in KINDS:
            found[f"{name}: {KINDS[kind]}"] = None
    return sorted(found)
