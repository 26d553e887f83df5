"""Showing the real stack, Python and C++, from a Python call down to a point inside PyTorch."""

from __future__ import annotations

import inspect
import json
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from insidetorch.display import Display, escape
from insidetorch.errors import BookError
from insidetorch.private.modes import dispatch_mode
from insidetorch.private.symbols import symbolize
from insidetorch.watch.frames import (
    Frame,
    fold_text,
    groups,
    interleave,
    native_frame,
    runs,
    sections,
)

SCRIPT = "<script>"
_BACKTRACE = re.compile(r"^frame #(\d+): (.*?) \+ 0x[0-9a-f]+ \(0x([0-9a-f]+) in (.*)\)$", re.M)
_PYTHON_LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_PROBE_FILES = ("torch/_compile.py", "torch/_dynamo/", "torch/utils/_python_dispatch.py")
_MEMBER = re.compile(r"\b[A-Z]\w*::[^:]+$")
_DEEP = 1000


@dataclass(frozen=True, repr=False)
class Stack(Display):
    """A stack, and how it is shown.

    :param frames: outermost first, folded ones included.
    """

    frames: tuple[Frame, ...] = ()

    @property
    def functions(self) -> list[str]:
        """Names of the frames that are shown, outermost first."""
        return [frame.function for frame in self.frames if frame.kind == "shown"]


def cpp_stack(
    fn: Callable[[], object] | str,
    *,
    at: Any = None,
    hit: int = 1,
    breakpoint: str | None = None,
    python: bool = True,
    timeout: float = 120,
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
        return _display(frames, f"the call down to {_point(at)}", note, python)
    if not isinstance(fn, str):
        raise BookError(
            "cpp_stack(…, breakpoint=…) runs a program of its own under gdb: "
            "give it the program's text instead of a function."
        )
    try:
        frames = _under_gdb(fn, breakpoint, hit, timeout)
    except _NoDebugger as problem:
        if at is None:
            raise BookError(str(problem)) from None
        frames, note = _in_process(fn, at, hit)
        note = " ".join(filter(None, [f"{problem} Shown instead: {_point(at)}.", note]))
        return _display(frames, f"the program down to {_point(at)}", note, python)
    return _display(frames, f"the program down to {breakpoint}", "", python)


class _NoDebugger(Exception):
    """gdb is missing or may not trace; the message is one sentence."""


# ── In this process ─────────────────────────────────────────────────────────────────────────────


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
    while stack and _label(stack[0].f_code.co_filename).startswith(_PROBE_FILES):
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
    where = f"{_label(code.co_filename)}:{frame.f_lineno}"
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


def _label(file: str) -> str:
    """Return how a Python file is named in a stack: short, and the same on every machine."""
    if file == SCRIPT:
        return "script"
    if "ipykernel_" in file or file.startswith("<ipython"):
        return "cell"
    _, found, below = file.replace(os.sep, "/").rpartition("/site-packages/")
    return below if found else Path(file).name


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
        *_merge(ours, python),
        Frame("", "", "Python", "probe", count=probe),
    )


def _merge(native: Sequence[Frame], python: Sequence[Sequence[Frame]]) -> tuple[Frame, ...]:
    """Interleave; where the groups do not fit the runs, all Python frames go to the first."""
    places = sum(inside for inside, _ in runs(native))
    if places != len(python):
        python = [[frame for group in python for frame in group]]
    return interleave(native, python)


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


# ── Under gdb ───────────────────────────────────────────────────────────────────────────────────


def _under_gdb(program: str, function: str, hit: int, timeout: float) -> tuple[Frame, ...]:
    gdb = shutil.which("gdb")
    if gdb is None:
        raise _NoDebugger(
            "Stopping in a C++ function takes gdb, which is not installed: "
            "install the system package gdb."
        )
    with tempfile.TemporaryDirectory(prefix="insidetorch-") as folder:
        script, out = Path(folder, "script.py"), Path(folder, "stack.json")
        script.write_text(program, encoding="utf-8")
        asked = {
            "INSIDETORCH_BREAK": function,
            "INSIDETORCH_HIT": str(hit),
            "INSIDETORCH_STACK": str(out),
        }
        commands = str(Path(__file__).with_name("gdb_script.py"))
        try:
            done = subprocess.run(
                [gdb, "-nx", "-q", "-batch", "-x", commands, "--args", sys.executable, str(script)],
                env={**os.environ, **asked},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BookError(
                f"The program did not reach {function} within {timeout:g} s under gdb: "
                "shorten it, or give cpp_stack a longer timeout=."
            ) from None
        told = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        said = done.stdout + done.stderr
        if "frames" not in told:
            raise _why_no_frames(told, said, function, hit)
        native = [native_frame(name, library) for name, library in reversed(told["frames"])]
        return _merge(native, [_dumped_frames(said, str(script), program)])


def _why_no_frames(told: dict[str, Any], said: str, function: str, hit: int) -> Exception:
    if told.get("exit"):
        lines = [line for line in said.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        reason = lines[-1] if lines else f"exit status {told['exit']}"
        return BookError(f"The program given to cpp_stack failed ({reason}): correct it.")
    if told.get("exit") == 0 and told.get("found"):
        return BookError(
            f"The program never called {function}"
            + (f" {hit} times" if hit > 1 else "")
            + ": check that it gets there."
        )
    if told.get("exit") == 0:
        return BookError(
            f"No library of the program has a function {function}: "
            "give its whole qualified name, without arguments."
        )
    refused = re.search(r".*(ptrace|Operation not permitted|not being run|Python script).*", said)
    lines = said.strip().splitlines()
    reason = refused[0].strip() if refused else (lines[-1].strip() if lines else "no reason given")
    return _NoDebugger(
        f"gdb could not trace the program ({reason.rstrip('.')}): "
        "allow ptrace, in a container with --cap-add=SYS_PTRACE."
    )


def _dumped_frames(said: str, script: str, program: str) -> list[Frame]:
    """Return the Python frames that the interpreter wrote for its current thread."""
    lines = iter(said.splitlines())
    for line in lines:
        if line.startswith("Current thread"):
            break
    frames = []
    source = program.splitlines()
    for line in lines:
        found = _PYTHON_LINE.match(line)
        if found is None:
            break
        file, number, name = found[1], int(found[2]), found[3]
        ours = file == script
        code = source[number - 1].strip() if ours else ""
        where = f"{_label(SCRIPT if ours else file)}:{number}"
        frames.append(Frame(name, where, "Python", code=code))
    return frames[::-1]


# ── Showing ─────────────────────────────────────────────────────────────────────────────────────


def _display(frames: Sequence[Frame], what: str, note: str, python: bool) -> Stack:
    kept = tuple(
        frame for frame in frames if python or frame.layer != "Python" or not frame.function
    )
    caption = f"Stack from {what}, outermost call first"
    lines: list[tuple[str, str, str]] = []
    rows: list[str] = []
    for shown, run in groups(kept):
        if not shown:
            text = fold_text(run)
            lines.append(("", text, ""))
            rows.append(f'<tr><td></td><td colspan="2">{_folded(text, run)}</td></tr>')
            continue
        previous = ""
        for frame in run:
            layer = frame.layer if frame.layer != previous else ""
            previous = frame.layer
            name = frame.code or frame.function
            lines.append((layer, name, frame.where))
            rows.append(
                f"<tr><td>{escape(layer)}</td><td>{_linked(name, link(frame))}</td>"
                f"<td>{_breakable(frame.where)}</td></tr>"
            )
    html = (
        '<div class="it it-stack it-scroll" tabindex="0" role="group" '
        f'aria-label="{escape(caption)}">'
        f'<table class="it-table"><caption>{escape(caption)}</caption><thead><tr>'
        '<th scope="col">layer</th><th scope="col">function</th><th scope="col">where</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + (f"<p>{escape(note)}</p>" if note else "")
        + "</div>"
    )
    record = {
        "kind": "stack",
        "frames": [
            {"layer": frame.layer, "function": frame.function}
            for frame in kept
            if frame.kind == "shown"
        ],
    }
    text = "\n".join([caption, *_columns(lines), *([note] if note else [])])
    return Stack(html, text, record, frames=kept)


def link(frame: Frame) -> str | None:
    """Return the address of a frame's function in PyTorch's source at the installed commit.

    A Python frame leads to its line; a C++ member function to its declaration in a header of the
    wheel. None where the release does not ship one.
    """
    from insidetorch.facts import torch_facts
    from insidetorch.locate.lookup import Absent, locate
    from insidetorch.locate.paths import permalink, upstream

    facts = torch_facts()
    if facts is None or not facts.commit:
        return None
    if frame.layer == "Python":
        file, _, line = frame.where.rpartition(":")
        path = upstream(file) if file.startswith("torch/") else None
        return permalink(path, facts.commit, int(line)) if path else None
    if not _MEMBER.search(frame.function) or "::generated::" in frame.function:
        return None
    try:
        found = locate(frame.function)
    except BookError:
        return None
    if isinstance(found, Absent):
        return None
    path = upstream(found[0].file)
    return permalink(path, facts.commit, found[0].first, found[0].last) if path else None


def _linked(name: str, address: str | None) -> str:
    code = f"<code>{_breakable(name)}</code>"
    return f'<a href="{escape(address)}">{code}</a>' if address else code


def _folded(text: str, run: Sequence[Frame]) -> str:
    named = [frame for frame in run if frame.function]
    if not named:
        return escape(text)
    items = "".join(
        f"<li><code>{_breakable(frame.function)}</code> {escape(frame.where)}</li>"
        for frame in named
    )
    return f"<details><summary>{escape(text)}</summary><ul>{items}</ul></details>"


def _breakable(name: str) -> str:
    return re.sub(r"(::|/|_(?=[a-z]))", r"\1<wbr>", escape(name))


def _columns(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    first = max((len(line[0]) for line in lines), default=0)
    second = max((len(line[1]) for line in lines if line[2]), default=0)
    return [f"{a.ljust(first)}  {b.ljust(second)}  {c}".rstrip() for a, b, c in lines]
