"""What the installed headers and a pretended GPU tell of waits; which lines look at values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from insidetorch import private
from miniatures.cuda_from_the_host.order import before
from miniatures.cuda_from_the_host.streams import CPU, MAIN, Program

_WAIT = re.compile(r"\bcuda(?:Device|Stream|Event)Synchronize(?=\()")
_FUNCTION = re.compile(r"(\w+)\([^;{}()]*\)\s*(?:const\s*)?(?:noexcept\s*)?(?:override\s*)?\{")
_NO_FUNCTION = ("if", "for", "while", "switch", "C10_UNLIKELY")


def waits_in_headers() -> list[tuple[str, str, str, bool]]:
    """Return each place in PyTorch's CUDA headers where the CPU waits for a GPU.

    :return: the file, the function, CUDA's function, and whether the debug mode is asked before.
    """
    include, found = Path(torch.__file__).parent / "include", []
    for folder in ("c10/cuda", "ATen/cuda"):
        for file in sorted((include / folder).rglob("*.*h")):
            code = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
            for wait in _WAIT.finditer(code):
                heads = _FUNCTION.finditer(code, 0, wait.start())
                inside = [head for head in heads if head[1] not in _NO_FUNCTION]
                body = code[inside[-1].start() : wait.start()]
                found.append((file.name, inside[-1][1], wait[0], "warn_or_error_on_sync" in body))
    return found


_ASKS: Mapping[str, Callable[[Program], None]] = {
    "y + 1": partial(Program.kernel, name="y + 1", takes=1),
    "x.item(), x.cpu()": partial(Program.item, tensor="x"),
    "stream.synchronize()": partial(Program.synchronize, stream=MAIN),
    "torch.cuda.synchronize()": Program.synchronize,
    "event.record()": partial(Program.record, event="new"),
    "event.synchronize()": partial(Program.synchronize, event="e"),
    "side.wait_event(event)": partial(Program.wait, stream="side", event="e"),
    "side.wait_stream(main)": partial(Program.wait_stream, stream="side", other=MAIN),
}


def who_waits() -> dict[str, list[str]]:
    """Return for some calls who waits for whom, found by asking the miniature.

    Before the call there is a kernel on each of two streams, then a mark `e` on ``main``, then one
    more kernel there. After it the CPU and both streams get something to do.
    """
    found = {}
    for name, call in _ASKS.items():
        program = Program()
        program.kernel("early", 9, MAIN)
        program.record("e", MAIN)
        program.kernel("late", 9, MAIN)
        program.kernel("beside", 9, "side")
        call(program)
        program.host("cpu", 1)
        asked = len(program.steps) - 1
        program.kernel("next", 9, "side")
        certain = before(program.steps)
        known = {s.name: s.number for s in program.steps if s.lane != CPU}
        after_cpu, after_side = certain[asked], certain[known["next"]]
        found[name] = [
            *(["CPU: mark"] if known["early"] in after_cpu else []),
            *(["CPU: main"] if known["late"] in after_cpu else []),
            *(["CPU: side"] if known["beside"] in after_cpu else []),
            *(["side: mark"] if known["early"] in after_side - after_cpu else []),
            *(["side: main"] if known["late"] in after_side - after_cpu else []),
        ]
    return found


LOOKS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "embedding": lambda index, table: F.embedding(index, table),
    "index_select": lambda index, table: table.index_select(0, index),
    "take": lambda index, table: table.take(index + 100),
    "cross_entropy": lambda index, table: F.cross_entropy(table.new_ones(1, 10), index),
    "one_hot": lambda index, table: F.one_hot(index, 5),
    "binary_cross_entropy": lambda index, table: F.binary_cross_entropy(table - 3, table),
    "multinomial": lambda index, table: torch.multinomial(table - 2, 1),
}
"""Lines that are wrong because of the numbers in their tensors, such as an index of 11 among 10."""


def said(name: str, device: str) -> str:
    """Return the error of a line of `LOOKS`, or an empty text; ``cuda`` is a pretended GPU."""
    with private.fake_tensor_mode() if device == "cuda" else torch.no_grad():
        index, table = torch.tensor([11], device=device), torch.ones(10, 10, device=device)
        try:
            LOOKS[name](index, table)
        except (RuntimeError, IndexError) as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""
