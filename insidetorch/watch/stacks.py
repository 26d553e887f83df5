"""Showing the real stack, Python and C++, from a Python call down to a point inside PyTorch."""

from __future__ import annotations

import inspect
import linecache
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from insidetorch.errors import BookError
from insidetorch.private.modes import dispatch_mode
from insidetorch.private.symbols import symbolize
from insidetorch.watch.frames import (
    SCRIPT,
    Frame,
    label,
    merge,
    native_frame,
    runs,
    sections,
)
from insidetorch.watch.stack_display import Stack, display_stack
from insidetorch.watch.stack_under_gdb import NoDebugger, under_gdb

_BACKTRACE = re.compile(r"^frame #(\d+): (.*?) \+ 0x[0-9a-f]+ \(0x([0-9a-f]+) in (.*)\)$", re.M)
_PROBE_FILES = ("torch/_compile.py", "torch/_dynamo/", "torch/utils/_python_dispatch.py")
_DEEP = 1000


def cpp_stack(
    fn: Callable[[], object] | str,
    *,
    at: Any = None,
    hit: int = 1,
    breakpoint: str | None = None,
    python: bool = True,
    timeout: float = 600,
) -> Stack:
    """Run `fn` and show the Python and C++ frames between it and a point inside PyTorch.

    Without `breakpoint` the stack is taken in this process, by a probe at `at`. Operators are
    seen where they leave for the backend, so kernels are below the last frame. With `breakpoint`
    the program runs in a process of its own under gdb, which stops in any function. Functions the
    compiler inlined have no frame in either.

    :param fn: a function called without arguments, or the text of a Python program.
    :param at: an operator, ``"aten::mul"`` or ``"aten::mul.Tensor"``; an autograd node, just
        before it runs; a tensor, when its gradient is there; None for the first operator.
    :param hit: which call of that operator or function.
    :param breakpoint: the C++ function to stop in, such as
        ``"torch::autograd::generated::MulBackward0::apply"``; `fn` must be a program's text. If
        `at` is given too, it is used where gdb is missing or not allowed to trace.
    :param python: show Python frames.
    :param timeout: seconds the program may take under gdb.
    :raises BookError: if the point is not reached, or gdb cannot be used and `at` is not given.
    """
    if hit < 1:
        raise BookError(f"cpp_stack(…, hit={hit}) counts from 1: hit=1 is the first call.")
    if breakpoint is None:
        frames, note = _in_process(fn, at, hit)
        return display_stack(frames, f"the call down to {_point(at)}", note, python)
    if not isinstance(fn, str):
        raise BookError(
            "cpp_stack(…, breakpoint=…) runs a program of its own under gdb: "
            "give it the program's text instead of a function."
        )
    try:
        frames = under_gdb(fn, breakpoint, hit, timeout)
    except NoDebugger as problem:
        if at is None:
            raise BookError(str(problem)) from None
        frames, note = _in_process(fn, at, hit)
        note = " ".join(filter(None, [f"{problem} Shown instead: {_point(at)}.", note]))
        return display_stack(frames, f"the program down to {_point(at)}", note, python)
    return display_stack(frames, f"the program down to {breakpoint}", "", python)


@dataclass
class _Catch:
    """What a probe caught: the C++ stack as text, and the Python frames cut where C++ begins."""

    text: str = ""
    python: tuple[tuple[Frame, ...], ...] = ()

    def take(self, pending: Sequence[tuple[FrameType, object]]) -> None:
        """Keep the stack of the caller; `pending` are the calls of C functions under way."""
        self.text = _backtrace()
        self.python = _python_segments(inspect.currentframe(), pending)


def _in_process(fn: Callable[[], object] | str, at: Any, hit: int) -> tuple[tuple[Frame, ...], str]:
    run = _program(fn) if isinstance(fn, str) else fn
    before = _backtrace()
    catch = _Catch()
    with _calls_under_way() as pending, _probe(at, hit, lambda: catch.take(pending)) as seen:
        _run(run)
    if not catch.text:
        raise BookError(_not_reached(at, hit, seen))
    outer, inner = _symbolize([before, catch.text])
    note = (
        ""
        if shutil.which("addr2line")
        else "Functions that a library does not export are unnamed: install binutils, "
        "which brings the command addr2line."
    )
    return _assemble(inner, sections(outer), catch.python), note


def _run(run: Callable[[], object]) -> None:
    run()


def _program(text: str) -> Callable[[], object]:
    code = compile(text, SCRIPT, "exec")
    linecache.cache[SCRIPT] = (len(text), None, text.splitlines(keepends=True), SCRIPT)
    return lambda: exec(code, {"__name__": "__main__"})


def _backtrace() -> str:
    from torch.utils.cpp_backtrace import get_cpp_backtrace

    text: str = get_cpp_backtrace(0, _DEEP)
    return text


@contextmanager
def _calls_under_way() -> Iterator[list[tuple[FrameType, object]]]:
    """Keep a list of the calls of C functions that have not returned, with their callers."""
    pending: list[tuple[FrameType, object]] = []

    def watch(frame: FrameType, event: str, function: object) -> None:
        if event == "c_call":
            pending.append((frame, function))
        elif event in ("c_return", "c_exception") and pending:
            pending.pop()

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield pending
    finally:
        sys.setprofile(before)


@contextmanager
def _probe(at: Any, hit: int, take: Callable[[], None]) -> Iterator[list[str]]:
    """Have `take` called at a point. Yields a list that fills with the operators seen."""
    import torch

    seen: list[str] = []
    if at is None or isinstance(at, str):
        with _operator_probe(at, hit, take, seen):
            yield seen
        return
    calls = iter([*[False] * (hit - 1), True])

    def hook(*_: object) -> None:
        if next(calls, False):
            take()

    if isinstance(at, torch.Tensor) and at.requires_grad:
        register: Callable[..., Any] = at.register_hook
        handle = register(hook)
    elif hasattr(at, "register_prehook"):
        handle = at.register_prehook(hook)
    else:
        raise BookError(
            f"cpp_stack(…, at={at!r:.60}) is no point to stop at: give an operator's name, "
            "an autograd node, or a tensor that requires grad."
        )
    try:
        yield seen
    finally:
        handle.remove()


def _operator_probe(at: str | None, hit: int, take: Callable[[], None], seen: list[str]) -> Any:
    class Probe(dispatch_mode()):  # type: ignore[misc]
        left = hit

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            packet = f"{func.namespace}::{func.overloadpacket.__name__}"
            seen.append(packet)
            if at in (None, packet, f"{func.namespace}::{func.__name__}"):
                self.left -= 1
                if self.left == 0:
                    take()
            return func(*args, **(kwargs or {}))

    return Probe()


def _python_segments(
    innermost: FrameType | None, pending: Sequence[tuple[FrameType, object]]
) -> tuple[tuple[Frame, ...], ...]:
    """Return the Python frames of the code under way, outermost first, cut at calls into C++.

    The probe's own frames are left out. The cut before them is always there; the others are where
    a C function of PyTorch was called that has not returned.
    """
    stack: list[FrameType] = []
    frame = innermost
    while frame is not None and frame.f_code is not _run.__code__:
        if frame.f_code.co_filename != __file__:
            stack.append(frame)
        frame = frame.f_back
    while stack and label(stack[0].f_code.co_filename).startswith(_PROBE_FILES):
        stack.pop(0)
    callers = {id(caller) for caller, function in pending if _is_torch(function)}
    segments: list[list[Frame]] = [[]]
    for number, frame in enumerate(reversed(stack)):
        segments[-1].append(_python_frame(frame))
        if id(frame) in callers and number < len(stack) - 1:
            segments.append([])
    return tuple(tuple(segment) for segment in segments)


def _is_torch(function: object) -> bool:
    owner = getattr(function, "__self__", None)
    kind = owner if isinstance(owner, type) else type(owner)
    homes = [getattr(function, "__module__", None), *(base.__module__ for base in kind.__mro__)]
    return any(str(home).partition(".")[0] == "torch" for home in homes)


def _python_frame(frame: FrameType) -> Frame:
    code = frame.f_code
    where = f"{label(code.co_filename)}:{frame.f_lineno}"
    return Frame(code.co_qualname, where, "Python", code=_expression(frame))


def _expression(frame: FrameType) -> str:
    """Return the source of what `frame` is evaluating; empty for the code of a library."""
    code = frame.f_code
    if "site-packages" in code.co_filename or frame.f_lasti < 0:
        return ""
    first, last, begin, end = list(code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None or begin is None:
        return linecache.getline(code.co_filename, frame.f_lineno).strip()
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return " ".join(b" ".join(lines).decode(errors="replace").split())


def _symbolize(texts: Sequence[str]) -> list[list[Frame]]:
    """Return the frames of texts by `get_cpp_backtrace`, outermost first, C++ functions named."""
    found = [_BACKTRACE.findall(text) for text in texts]
    addresses = sorted({int(address, 16) - 1 for rows in found for _, _, address, _ in rows})
    names: dict[int, str] = {}
    if shutil.which("addr2line"):
        symbols = symbolize(addresses)
        names = {a: name for a, (_, _, name) in zip(addresses, symbols, strict=True)}
    stacks = []
    for rows in found:
        stack: list[Frame] = []
        expected = 0
        for number, exported, address, library in rows:
            if int(number) > expected:
                gap = int(number) - expected
                stack.append(Frame("", "python", "Python", "interpreter", count=gap))
            expected = int(number) + 1
            name = names.get(int(address, 16) - 1, exported)
            stack.append(native_frame("??" if "unknown function" in name else name, library))
        stacks.append(stack[::-1])
    return stacks


def _assemble(
    native: Sequence[Frame], outside: int, python: Sequence[Sequence[Frame]]
) -> tuple[Frame, ...]:
    """Return the frames from the code under way to the probe, outermost first.

    :param native: outermost first, from the start of the process into the probe.
    :param outside: how many C++ sections there were before the code of interest ran, counting the
        probe's own.
    :param python: the Python frames, one group for each run of interpreter frames.
    """
    cut = runs(native)
    found = 0
    start = 0
    for i, (inside, _) in enumerate(cut):
        if found == outside - 1:
            start = i
            break
        found += not inside
    # The last two runs are the probe's: its Python code, and the function that takes the stack.
    ours = [frame for _, run in cut[start:-2] for frame in run]
    probe = sum(frame.count for _, run in cut[-2:] for frame in run)
    return (
        *merge(ours, python),
        Frame("", "", "Python", "probe", count=probe),
    )


def _point(at: Any) -> str:
    if at is None:
        return "the first operator"
    if isinstance(at, str):
        return at
    if hasattr(at, "register_prehook"):
        return f"the hook before {str(at.name()).rsplit('::', 1)[-1]}"
    return "the hook of a tensor"


def _not_reached(at: Any, hit: int, seen: Sequence[str]) -> str:
    said = f"cpp_stack never reached {_point(at)}" + (f", call {hit}" if hit > 1 else "")
    if isinstance(at, str) and seen:
        ran = ", ".join(dict.fromkeys(seen))
        return f"{said}: the operators that ran are {ran}; give one of these in at=."
    return f"{said}: check that the code given to it gets there."
