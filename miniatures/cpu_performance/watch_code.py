"""The machine code of vector loops: what a compiler makes of them, and which are installed."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import torch

from insidetorch.errors import BookError
from insidetorch.facts import tool

LOOP = """#include <ATen/cpu/vec/vec.h>
using V = at::vec::Vectorized<float>;
extern "C" void twice_plus_one(float* y, const float* x, int64_t n) {
  const V two(2.0f), one(1.0f);
  for (int64_t i = 0; i < n; i += V::size())
    at::vec::fmadd(V::loadu(x + i), two, one).store(y + i);
}
"""
"""A loop as PyTorch's kernels have it inside; the same source for all capabilities."""


REDUCE = """auto larger = [](V& a, V& b) { return at::vec::maximum(a, b); };
extern "C" float general(const float* x) {
  return at::vec::vec_reduce_all<float>(larger, V::loadu(x), V::size());
}
extern "C" float for_float(const float* x) {
  return at::vec::vec_reduce_all<float>(larger, V::loadu(x));
}
"""
"""The greatest number in one register, by the two functions of ``functional_base.h``."""


_FLAGS: dict[str, list[str]] = {
    "DEFAULT": [],
    "AVX2": ["-mavx2", "-mfma", "-mf16c"],
    "AVX512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c"],
}


def vector_loop(capability: str, function: str = "twice_plus_one") -> list[str]:
    """Return the assembly of the loop in a function of `LOOP` or `REDUCE`; empty without a loop.

    :param capability: ``"DEFAULT"``, ``"AVX2"`` or ``"AVX512"``.
    """
    rows = _assembly(capability)[function]
    for place, text in rows:
        jump = re.match(r"j\w+ ([0-9a-f]+)", text)
        if jump and int(jump[1], 16) < place:
            return [line for where, line in rows if int(jump[1], 16) <= where <= place]
    return []


def vector_code(capability: str, function: str) -> list[str]:
    """Return the assembly of a whole function of `LOOP` or `REDUCE`, without padding."""
    return [text for _, text in _assembly(capability)[function] if "nop" not in text]


@cache
def _assembly(capability: str) -> dict[str, list[tuple[int, str]]]:
    """Compile `LOOP` and `REDUCE` with the flags PyTorch gives to kernels of a capability."""
    compiler, lister = tool("g++", "c++", "clang++"), tool("objdump")
    if compiler is None or lister is None:
        raise BookError("This cell reads assembly: install g++ and binutils.")
    command = [compiler, "-O2", "-std=c++20", f"-DCPU_CAPABILITY_{capability}"]
    command += [f"-DCPU_CAPABILITY={capability}", *_FLAGS[capability]]
    command += ["-isystem", str(Path(torch.__file__).parent / "include")]
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "loop.cpp"), Path(folder, "loop.o")
        text = f"#include <ATen/cpu/vec/functional.h>\n{LOOP}{REDUCE}"
        source.write_text(text, encoding="utf-8")
        compiled = [*command, "-c", str(source), "-o", str(binary)]
        subprocess.run(compiled, check=True, capture_output=True)
        listing = [lister, "-d", "--no-show-raw-insn", str(binary)]
        said = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    found = {}
    for name, body in re.findall(r"<(\w+)>:\n(.*?)(?:\n\n|\Z)", said, re.DOTALL):
        rows = re.findall(r"^\s*([0-9a-f]+):\s+([^#\n]*)", body, re.MULTILINE)
        found[name] = [(int(place, 16), " ".join(text.split())) for place, text in rows]
    return found


def versions(kernel: str) -> Counter[str]:
    """Return how many functions of libtorch_cpu with `kernel` in the name each capability has."""
    found: Counter[str] = Counter()
    for line in _nm():
        if kernel in line:
            part = re.search(r"(?<=[0-9])(DEFAULT|AVX2|AVX512)(?![0-9A-Z]*_)", line)
            found.update([part[1]] if part else [])
    return found


@cache
def _nm() -> tuple[str, ...]:
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    done = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=True)
    return tuple(line for line in done.stdout.splitlines() if "native" in line)
