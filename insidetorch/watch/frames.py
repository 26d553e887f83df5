"""Reading stack frames: short C++ names, the layer each belongs to, and what to fold away."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

Kind = Literal["shown", "interpreter", "plumbing", "probe"]

LAYERS = (
    (
        "Python binding",
        r"(torch::|autograd::)*(python::)?(THP|TypeError_to_)|torch::PythonArgParser",
    ),
    ("autograd engine", r"torch::autograd::(python::Python)?Engine::|torch::autograd::GraphTask"),
    ("autograd kernel", r"torch::autograd::VariableType::|torch::ADInplaceOrView::"),
    ("autograd hook", r"torch::autograd::(\w*Hooks?::|_?call_\w*hooks$)"),
    ("autograd node", r"torch::autograd::"),
    ("dispatcher", r"at::_ops::|c10::(Dispatcher|KernelFunction|BoxedKernel|impl::)"),
    ("autocast", r"at::autocast::"),
    ("functorch", r"at::functorch::"),
    ("distributed", r"c10d::|torch::distributed::"),
    ("TorchScript", r"torch::jit::"),
    ("ATen kernel", r"at::"),
    ("core library", r"c10::"),
    ("math library", r"mkl_|cblas_|dnnl|(s|d)gemm|__svml|Sleef"),
    ("libtorch", r"torch::"),
)
"""Layers and the qualified names that belong to them; the first that matches counts."""

_INTERPRETER_LIBRARY = re.compile(r"^(libpython.*|python[\d.]*)$")
_INTERPRETER = re.compile(
    r"_?Py[A-Z_]\w*$|_?Py_|_PyEval|cfunction_|method_vectorcall|vectorcall_|slot_(tp|nb|sq|mp)_"
    r"|type_call$|pymain_|(do_call_core|call_function|function_code_fastcall|builtin_exec)$"
    r"|(_start|main|__libc_start_\w+|start_thread|clone3?|run_\w+|context_run)$"
)
_PLUMBING = re.compile(
    r"std::|pybind11::|__gnu_cxx::|c10::function_ref|c10::detail::"
    r"|c10::impl::(wrap_kernel_functor|BoxedKernelWrapper|make_boxed|call_functor)"
    r"|c10::BoxedKernel::make_boxed_function|.*@plt$|.*::_FUN$|.*::_M_invoke$|void$|_dl_|__GI_"
)
_PROBE = re.compile(
    r"(torch::)?(THModule_getCppBacktrace|handle_torch_function_no_python_arg_parser"
    r"|detail::ConcretePyInterpreterVTable::dispatch|pythonFallback)$"
)
_OPERATORS = ("()", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">")

SCRIPT = "<script>"
"""The name under which the text of a program is compiled, so that its frames are known."""


@dataclass(frozen=True)
class Frame:
    """One frame of a stack.

    :param function: the qualified name without arguments; for Python, the qualified name.
    :param where: the shared library, or file and line of a Python frame.
    :param layer: the part of PyTorch it belongs to; ``Python`` for a Python frame.
    :param kind: whether it is shown, or why it is folded away.
    :param code: the Python expression that is being evaluated; empty for C++ and library code.
    :param count: how many frames it stands for; more than 1 only for unnamed ones.
    """

    function: str
    where: str
    layer: str
    kind: Kind = "shown"
    code: str = ""
    count: int = 1


def native_frame(name: str, library: str) -> Frame:
    """Return the frame of a C++ function.

    :param name: as a symbolizer or debugger gives it, demangled.
    :param library: path of the library it is in.
    """
    function = shorten(name)
    where = library.rpartition("/")[2]
    kind: Kind = "shown"
    if _PROBE.match(function):
        kind = "probe"
    elif _PLUMBING.match(function):
        kind = "plumbing"
    elif _INTERPRETER_LIBRARY.match(where) or _INTERPRETER.match(function):
        kind = "interpreter"
    return Frame(function, where, layer(function, where), kind)


def layer(function: str, library: str) -> str:
    """Return the part of PyTorch a C++ function belongs to; its library if it is none known."""
    for title, pattern in LAYERS:
        if re.match(pattern, function):
            return title
    return library.partition(".so")[0].partition(".cpython")[0] or "unknown"


def shorten(name: str) -> str:
    """Return a demangled C++ name without arguments, template arguments and return type.

    ``at::Tensor f<int>(at::Tensor const&) const`` is ``f``; anonymous namespaces vanish.
    """
    text = name.replace("(anonymous namespace)::", "")
    text = re.sub(r"\s*\[(clone|abi:)[^\]]*\]", "", text)
    for number, symbol in enumerate(_OPERATORS):
        text = text.replace(f"operator{symbol}", f"operator\0{number}\0")
    text = _without_brackets(text)
    text = re.sub(r"\{(lambda|unnamed type)[^{}]*\}", r"{\1}", text)
    text = re.sub(r"(\s(const|volatile|noexcept|&&?))+$", "", text.strip())
    conversion = re.search(r"\S*\boperator \S+$", text)
    text = conversion[0] if conversion else text.rpartition(" ")[2]
    return re.sub(r"operator\0(\d+)\0", lambda m: f"operator{_OPERATORS[int(m[1])]}", text)


def _without_brackets(text: str) -> str:
    kept: list[str] = []
    opened: list[str] = []
    for char in text:
        if char in "<(":
            opened.append(char)
        elif char == ")" and "(" in opened:
            while opened.pop() != "(":
                pass
        elif char == ">" and opened:
            if opened[-1] == "<":
                opened.pop()
        elif not opened:
            kept.append(char)
    return "".join(kept)


def runs(frames: Iterable[Frame]) -> list[tuple[bool, list[Frame]]]:
    """Return the runs of interpreter frames (True) and of all others (False), in order."""
    return [(inside, list(run)) for inside, run in groupby(frames, _is_interpreter)]


def _is_interpreter(frame: Frame) -> bool:
    return frame.kind == "interpreter"


def sections(frames: Iterable[Frame]) -> int:
    """Return how many runs of frames there are that are not the interpreter's."""
    return sum(not inside for inside, _ in runs(frames))


def interleave(
    native: Sequence[Frame], python: Sequence[Sequence[Frame]] | None
) -> tuple[Frame, ...]:
    """Return C++ frames with Python frames before the interpreter frames that evaluate them.

    :param native: frames, outermost first, beginning with a run of interpreter frames; each such
        run stands for Python code. The first run is dropped: it began before the code of interest.
    :param python: for each run, its Python frames, outermost first; None for none.
    """
    waiting = iter(python or ())
    merged: list[Frame] = []
    for number, (inside, frames) in enumerate(runs(native)):
        if inside:
            merged += next(waiting, ())
        if not inside or number:
            merged += frames
    return tuple(merged)


def groups(frames: Iterable[Frame]) -> Iterator[tuple[bool, list[Frame]]]:
    """Yield runs of frames to show one by one (True) and to fold into one line (False)."""
    for shown, run in groupby(frames, lambda f: f.kind == "shown"):
        yield shown, list(run)


def fold_text(frames: Sequence[Frame]) -> str:
    """Return the line that stands for folded frames: ``⋯ 9 interpreter frames``."""
    counts: dict[str, int] = {}
    for frame in frames:
        counts[frame.kind] = counts.get(frame.kind, 0) + frame.count
    parts = [f"{count} {kind}" for kind, count in counts.items()]
    total = sum(counts.values())
    return f"⋯ {' + '.join(parts)} frame{'s' * (total != 1)}"


def merge(native: Sequence[Frame], python: Sequence[Sequence[Frame]]) -> tuple[Frame, ...]:
    """Interleave; where the groups do not fit the runs, all Python frames go to the first."""
    places = sum(inside for inside, _ in runs(native))
    if places != len(python):
        python = [[frame for group in python for frame in group]]
    return interleave(native, python)


def label(file: str) -> str:
    """Return how a Python file is named in a stack: short, and the same on every machine."""
    if file == SCRIPT:
        return "script"
    if "ipykernel_" in file or file.startswith("<ipython"):
        return "cell"
    _, found, below = file.replace(os.sep, "/").rpartition("/site-packages/")
    return below if found else Path(file).name
