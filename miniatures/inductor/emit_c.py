"""The C of `miniatures.inductor.fuser`: a function for each nest, compiled once and kept."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor

from miniatures.inductor.fuser import REDUCTIONS, Code, Nest, Value, lower
from miniatures.inductor.schedule import Scheduler

Statement = tuple[str, Value, Code]


def emit(nests: Sequence[Nest], prefix: str = "kernel") -> str:
    """Return C: a function for each nest."""
    lines = []
    for number, nest in enumerate(nests):
        args = "".join(f", float *{buffer}" for buffer in buffers_of(nest))
        lines.append(f"void {prefix}{number}(long R, long C{args}) {{")
        lines.append("  for (long i = 0; i < R; i++) {")
        for part in nest.parts or [nest]:
            for inner, run in groupby(part.body, key=walks_columns):
                lines += ["    " + line for line in (columns if inner else plain)([*run])]
        lines += ["  }", "}"]
    text = "\n".join(lines)
    return text.replace("[full]", "[i*C + j]").replace("[row]", "[i]") + "\n"


def buffers_of(nest: Nest) -> list[str]:
    """Return the buffers that a nest touches: its arguments."""
    return sorted({buffer for buffer, _ in nest.reads | nest.writes})


def walks_columns(one: Statement) -> bool:
    """Tell whether a statement runs for each column."""
    return any(form == "full" for _, form in one[2].loads)


def plain(run: list[Statement]) -> list[str]:
    """Return one line for each statement."""
    return [f"{name}[{value.form}] = {made.text};" for name, value, made in run]


def columns(run: list[Statement]) -> list[str]:
    """Return a loop over columns; a reduction has its accumulator around it."""
    sums = [(name, value) for name, value, _ in run if value.op in REDUCTIONS]
    lines = [f"float acc_{name} = {REDUCTIONS[value.op][0]};" for name, value in sums]
    lines.append("for (long j = 0; j < C; j++) {")
    for name, value, made in run:
        step = f"acc_{name} = {made.text};".replace("acc,", f"acc_{name},")
        reduces = value.op in REDUCTIONS
        line = (
            step.replace("acc +", f"acc_{name} +") if reduces else plain([(name, value, made)])[0]
        )
        lines.append("  " + line)
    return [*lines, "}", *(f"{name}[row] = acc_{name};" for name, _ in sums)]


def build(source: str, folder: Path) -> ctypes.CDLL:
    """Compile C into a library; one that `folder` holds already is loaded again."""
    file = folder / hashlib.sha256(source.encode()).hexdigest()
    if not file.exists():
        command = ["gcc", "-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run(
            [*command, "-x", "c", "-include", "math.h", "-", "-o", str(file), "-lm"],
            input=source, text=True, check=True, capture_output=True,
        )  # fmt: skip
    return ctypes.CDLL(str(file))


class Fused:
    """A function of matrices and rows, traced, fused and compiled for the shapes it is given."""

    def __init__(self, function: Callable[..., Sequence[Value]], *inputs: Tensor) -> None:
        self.rows, self.columns = max(x.shape[0] for x in inputs), max(x.shape[1] for x in inputs)
        graph: list[Value] = []
        forms = ["full" if x.shape[1] == self.columns else "row" for x in inputs]
        values = [Value(graph, f"in{n}", [], form) for n, form in enumerate(forms)]
        outputs = function(*values)
        stored = lower(graph, outputs)
        self.stored = {name: value for nest in stored for name, value, _ in nest.body}
        self.names = [next(n for n, v in self.stored.items() if v is out) for out in outputs]
        self.nests = Scheduler(stored, self.columns).nests

    def groups(self) -> list[list[int]]:
        """Return the numbers of the buffers that are computed together, in order."""
        return sorted(sorted(int(name[3:]) for name in nest.names) for nest in self.nests)

    def run(
        self, library: ctypes.CDLL, inputs: Sequence[Tensor], prefix: str = "kernel"
    ) -> list[Tensor]:
        """Call the kernels one after the other, and return the outputs."""
        width = {"full": self.columns, "row": 1}
        memory = {f"in{n}": x.contiguous() for n, x in enumerate(inputs)}
        for name, value in self.stored.items():
            memory[name] = torch.empty(self.rows, width[value.form])
        for number, nest in enumerate(self.nests):
            pointers = [ctypes.c_void_p(memory[b].data_ptr()) for b in buffers_of(nest)]
            kernel = getattr(library, f"{prefix}{number}")
            kernel(ctypes.c_long(self.rows), ctypes.c_long(self.columns), *pointers)
        return [memory[name] for name in self.names]
