"""CUDA without a GPU: the code that compilers write for one.

Nothing here runs on a device, and everything shown says so.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from insidetorch.display import Display, escape, table
from insidetorch.errors import BookError
from insidetorch.facts import tool
from insidetorch.processes import environment, last_line, run
from insidetorch.show.listings import listing

_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''(.*?)'''", re.DOTALL)
_INSTRUCTION = re.compile(r"^\s*(?:@!?%?\w+\s+)?([A-Za-z][\w.]*)")
_ARCH = re.compile(r"sm_\d+[af]?")

_MEANINGS = {
    "ld.param": "read an argument of the kernel",
    "ld.global": "read global memory into a register",
    "st.global": "write a register to global memory",
    "ld.shared": "read the block's shared memory",
    "st.shared": "write the block's shared memory",
    "mov": "copy a register; also reads thread and block indices",
    "mad": "integer multiply and add, here usually an index",
    "fma": "multiply and add with one rounding",
    "mul.wide": "multiply to twice the width: an index to a byte offset",
    "mul": "multiply",
    "add": "add",
    "sub": "subtract",
    "shl": "shift left: an index to a byte offset",
    "setp": "compare, and keep the answer in a predicate",
    "selp": "choose one of two values by a predicate",
    "bra": "jump; with a predicate in front, only if it holds",
    "bar.sync": "wait for all threads of the block",
    "shfl": "exchange a register with another thread of the warp",
    "cvta": "turn a generic address into one of a memory space",
    "cvt": "convert between types",
    "atom": "read, change and write memory as one step",
    "red": "change memory as one step, without reading it back",
    "ret": "the thread is done",
}


def triton_code(
    function: Callable[..., Any], *shapes: Sequence[int], dtype: str = "float32"
) -> Display:
    """Return the Triton kernels that Inductor writes for a function, for an H100 that is not there.

    It takes some ten seconds, in a process of its own. Triton need not be installed.

    :param function: a function defined with ``def`` that uses `torch` and its arguments alone.
    :param shapes: of its arguments, tensors on the GPU.
    :param dtype: name of their type.
    :raises BookError: the source of the function is not to be had, or Inductor refuses it.
    """
    name, source = _source(function)
    job = {"name": name, "source": source, "shapes": [list(s) for s in shapes], "dtype": dtype}
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        done = run(
            [sys.executable, "-m", "insidetorch.gpu.without_gpu_process"],
            env=environment(*sys.path, TORCHINDUCTOR_CACHE_DIR=scratch),
            input=json.dumps(job),
        )
    if done.returncode:
        raise BookError(
            f"triton_code({name}, …): Inductor writes nothing for it ({last_line(done.stderr)}); "
            "use torch and the arguments alone, with shapes that fit."
        )
    return _shown(
        f"Triton kernels Inductor wrote for {name}, on a pretended H100",
        "\n\n".join(_kernels(done.stdout)) or "# No kernel: all of it is calls to libraries.",
        "python",
    )


def ptx(source: str, *, arch: str = "sm_90") -> Display:
    """Return the PTX that nvcc makes of CUDA C++, with what its instructions do.

    :param source: CUDA C++ with a ``__global__`` function.
    :param arch: the GPU architecture to compile for.
    :raises BookError: nvcc refuses the source.
    """
    nvcc = tool("nvcc")
    if nvcc is None:
        lack = "No PTX to show: nvcc, the compiler of the CUDA toolkit, is not installed here."
        return Display(f'<p class="it it-absent">{escape(lack)}</p>', lack)
    text = _nvcc(nvcc, source, arch)
    code = text[text.index(".visible") :].strip() if ".visible" in text else text.strip()
    names = (m[1] for line in code.splitlines() if (m := _INSTRUCTION.match(line)))
    counts = Counter(stem for name in names if (stem := _stem(name)))
    rows = [[name, count, _MEANINGS[name]] for name, count in counts.most_common()]
    shown = _shown(f"PTX for {arch}, from nvcc {_release(nvcc)}", code, "ptx")
    words = table(["instruction", "count", "what it does"], rows, numeric=(1,))
    return Display(shown.html + words.html, f"{shown.text}\n\n{words.text}")


def _source(function: Callable[..., Any]) -> tuple[str, str]:
    name = getattr(function, "__name__", "")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        source = ""
    if not name.isidentifier() or not source.startswith("def "):
        raise BookError(
            "triton_code(…) needs a function that is defined with def, without decorators, "
            "in a cell or a module; define one."
        )
    return name, source


def _kernels(module: str) -> Iterable[str]:
    """Yield the kernels in a module that Inductor wrote, from ``@triton.jit`` on."""
    for found in _KERNEL.finditer(module):
        yield found[2][found[2].index("@triton.jit") :].strip()


def _nvcc(nvcc: str, source: str, arch: str) -> str:
    if not _ARCH.fullmatch(arch):
        raise BookError(f"{arch!r} is no architecture of a GPU; write it like sm_90.")
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        file, out = Path(scratch) / "kernel.cu", Path(scratch) / "kernel.ptx"
        file.write_text(source, encoding="utf-8")
        command = [nvcc, f"-arch={arch}", "-ptx", "-o", str(out), file.name]
        done = run(command, cwd=Path(scratch))
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
            raise BookError(f"nvcc refuses the source ({said[0]}); mend it.")
        return out.read_text(encoding="utf-8")


def _release(nvcc: str) -> str:
    found = re.search(r"release ([\d.]+)", run([nvcc, "--version"]).stdout)
    return found[1] if found else "of unknown version"


def _stem(name: str) -> str:
    """Return the longest beginning of an instruction's name that has a meaning, or nothing."""
    parts = name.split(".")
    stems = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((stem for stem in stems if stem in _MEANINGS), "")


def _shown(title: str, code: str, language: str) -> Display:
    note = "Nothing was run: the code was generated, and no GPU took part."
    return listing(code, title, language=language, note=note, width=0)
