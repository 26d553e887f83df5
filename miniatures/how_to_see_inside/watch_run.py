"""One run as each instrument lists it, and slow tools that work beside the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from insidetorch.private.modes import debug_mode
from insidetorch.private.tables import dispatch_table
from insidetorch.watch.stacks import cpp_stack
from miniatures.how_to_see_inside.watch import Calls, Operators, Seen, script

_ONE = ThreadPoolExecutor(max_workers=1)


def beside(function: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
    """Call a function while the page goes on, after those given before; `result()` waits for it."""
    return _ONE.submit(function, *args, **options)


@dataclass(frozen=True)
class Row:
    """Something that happened in a run: a function of Python, or an operator inside it."""

    depth: int
    name: str
    kind: str


@dataclass(frozen=True)
class Look:
    """A run as one instrument lists it.

    :param title: the instrument.
    :param rows: all that happened, in order.
    :param listed: the rows in its list.
    :param beside: what it says besides, by row.
    :param says: a sentence.
    """

    title: str
    rows: list[Row]
    listed: set[int]
    says: str
    beside: dict[int, str] = field(default_factory=dict)


def happened(run: Callable[[], object]) -> list[Row]:
    """Return what a run does: its functions, and below each one the operators that profiling lists.

    Each function must begin one operator, as `relu` does.
    """
    run()  # what is loaded at the first call is no part of it
    with Calls() as calls:
        run()
    with torch.profiler.profile() as profile:
        run()
    events = [event for event in profile.events() if event.name.startswith("aten::")]
    rows: list[Row] = []

    def add(event: Any, depth: int) -> None:
        rows.append(Row(depth, event.name, "operator"))
        for child in sorted(event.cpu_children, key=lambda each: each.time_range.start):
            add(child, depth + 1)

    roots = [event for event in events if event.cpu_parent is None]
    for function, root in zip(calls.seen, roots, strict=True):
        rows.append(Row(0, function.removeprefix("torch.nn.functional."), "function"))
        add(root, 1)
    return rows


def places(rows: Sequence[Row], names: Iterable[str]) -> set[int]:
    """Return the rows that a list names, taken in order; a name that is in no row is left out."""
    found: set[int] = set()
    for name in names:
        after = range(max(found, default=-1) + 1, len(rows))
        found.update([at for at in after if rows[at].name == name][:1])
    return found


def looks(run: Callable[[], object]) -> list[Look]:
    """Look at a run with one instrument after the other."""
    rows = happened(run)
    functions = {at for at, row in enumerate(rows) if row.kind == "function"}
    everything = set(range(len(rows)))
    with Operators() as mode:
        run()
    with debug_mode(record_torchfunction=True) as debug:
        run()
    listed = places(rows, mode.seen)
    own = [name for name in mode.seen if name not in {row.name for row in rows}]
    with_own = [*rows, *(Row(1, name, "observer") for name in own)]
    debugged = places(rows, re.findall(r"aten::\w+", debug.debug_string()))
    relu = next(at for at, row in enumerate(rows) if row.name == "aten::relu")
    table = dispatch_table("aten::relu")
    where = [table[key].partition("registered at ")[2] for key in ("AutogradCPU", "CPU")]
    files = " → ".join(place.split("/")[-1].partition(".")[0] for place in where)
    stack = "\n".join(cpp_stack(run, at="aten::mm").functions)
    first = next(at for at, row in enumerate(rows) if row.name == "aten::mm")
    named = {0, *(
        at for at, row in enumerate(rows[: first + 1])
        if row.kind == "operator" and f"_ops::{row.name.removeprefix('aten::')}::" in stack
    )}  # fmt: skip
    return [
        Look("all that happened", rows, everything, "Two functions of Python and the operators "
             "below them: the union of what the instruments list."),
        Look("TorchFunctionMode", rows, functions, "The two calls of Python. Nothing below them."),
        Look("TorchDispatchMode", with_own, listed | set(range(len(rows), len(with_own))),
             "What reaches the backend: the parts of `linear`, not `linear`. The last row happens "
             "only because the mode looks."),
        Look("DebugMode", rows, functions | debugged, "Both lists in one, indented."),
        Look("dispatch dump", rows, set(), "Nothing of the run. It says which kernels `relu` has.",
             {relu: files}),
        Look("C++ stack at aten::mm", rows, named, "One moment: who called whom, down to the "
             "product. What has returned is gone."),
        Look("profiler", rows, everything - functions, "The operators, composite ones and those "
             "that kernels call too. No function of Python."),
    ]  # fmt: skip


def alive(steps: Sequence[int]) -> list[int]:
    """Return how many bytes are held after each allocation (> 0) or release (< 0)."""
    held, total = [0], 0
    for step in steps:
        total += step
        held.append(total)
    return held


def traced(program: str, **environment: str) -> tuple[Seen, list[str]]:
    """Run a program with `TORCH_TRACE`; return its output, and the kinds of records written."""
    with TemporaryDirectory(prefix="insidetorch-") as folder:
        seen = script(program, **environment, TORCH_TRACE=folder)
        files = sorted(Path(folder).glob("*.log"))
        kinds = kinds_of_records("".join(file.read_text(encoding="utf-8") for file in files))
    return replace(seen, title=seen.title.replace(folder, "folder")), kinds


def kinds_of_records(log: str) -> list[str]:
    """Return the kinds of records in a file that `TORCH_TRACE` wrote, in order, each once."""
    found = re.findall(r'^\S.*?\] \{"(\w+)"', log, re.MULTILINE)
    return list(dict.fromkeys(found))
