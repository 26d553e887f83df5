"""CUDA without a GPU: the code that compilers write for one, and tensors without memory on one.

Nothing here runs on a device, and everything shown says so.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
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
from insidetorch.private.modes import dispatch_mode, fake_tensor_mode

_KERNEL = re.compile(r"async_compile\.triton\('(\w+)', '''(.*?)'''", re.DOTALL)
_INSTRUCTION = re.compile(r"^\s*(?:@!?%?\w+\s+)?([A-Za-z][\w.]*)")
_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_ARCH = re.compile(r"sm_\d+[af]?")

_PTX_MEANINGS = {
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
_SASS_MEANINGS = {
    "LDG": "read global memory", "STG": "write global memory", "LDS": "read shared memory",
    "STS": "write shared memory", "LDC": "read constant memory: the kernel's arguments",
    "ULDC": "read constant memory once for the whole warp",
    "LDCU": "read constant memory once for the whole warp",
    "FFMA": "multiply and add, float32", "FADD": "add, float32", "FMUL": "multiply, float32",
    "HFMA2": "multiply and add, two float16 at once", "IMAD": "integer multiply and add, or a copy",
    "IADD3": "add three integers", "ISETP": "compare integers into a predicate",
    "FSETP": "compare floats into a predicate", "S2R": "read a special register: thread, block",
    "S2UR": "read a special register once for the warp", "SHFL": "exchange within the warp",
    "BAR": "wait for the block", "MUFU": "an approximate function: 1/x, √x, 2ˣ, log₂, sin",
    "EXIT": "the thread is done", "BRA": "jump", "NOP": "nothing: padding", "MOV": "copy",
    "LOP3": "a logical function of three inputs", "SHF": "shift",
}  # fmt: skip


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
        done = subprocess.run(
            [sys.executable, "-m", "insidetorch.gpu.without_gpu_process"],
            input=json.dumps(job), capture_output=True, text=True, check=False,
            env={
                **os.environ,
                "TORCHINDUCTOR_CACHE_DIR": scratch,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BookError(
            f"triton_code({name}, …): Inductor writes nothing for it ({said}); "
            "use torch and the arguments alone, with shapes that fit."
        )
    return _shown(
        f"Triton kernels Inductor wrote for {name}, on a pretended H100",
        "\n\n".join(_kernels(done.stdout)) or "No kernel: all of it is calls to libraries.",
    )


def ptx(source: str, *, arch: str = "sm_90") -> Display:
    """Return the PTX that nvcc makes of CUDA C++, with what its instructions do.

    :param source: CUDA C++ with a ``__global__`` function.
    :param arch: the GPU architecture to compile for.
    :raises BookError: nvcc refuses the source.
    """
    nvcc = tool("nvcc")
    if nvcc is None:
        return _absent("PTX", "nvcc, the compiler of the CUDA toolkit, is not installed here")
    text = _nvcc(nvcc, source, arch, "ptx").decode()
    code = text[text.index(".visible") :].strip() if ".visible" in text else text.strip()
    names = (m[1] for line in code.splitlines() if (m := _INSTRUCTION.match(line)))
    title = f"PTX for {arch}, from nvcc {_release(nvcc)}"
    return _explained(title, code, names, _PTX_MEANINGS)


def sass(source: str, *, arch: str = "sm_90") -> Display:
    """Return the machine code that ptxas makes of CUDA C++, with what its instructions do.

    :param source: CUDA C++ with a ``__global__`` function.
    :param arch: the GPU architecture to compile for.
    :raises BookError: nvcc refuses the source.
    """
    nvcc, dump = tool("nvcc"), tool("cuobjdump")
    if nvcc is None or dump is None:
        lacking = "nvcc" if nvcc is None else "cuobjdump"
        return _absent("SASS", f"{lacking}, a part of the CUDA toolkit, is not installed here")
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        cubin = Path(scratch) / "kernel.cubin"
        cubin.write_bytes(_nvcc(nvcc, source, arch, "cubin"))
        done = subprocess.run(
            [dump, "-sass", str(cubin)], capture_output=True, text=True, check=True
        )
    lines = [line for line in done.stdout.splitlines() if _SASS.match(line)]
    code = "\n".join(re.sub(r"\s*/\* 0x[0-9a-f]+ \*/\s*$", "", line).strip() for line in lines)
    names = (m[1] for line in lines if (m := _SASS.match(line)))
    title = f"SASS for {arch}, from nvcc {_release(nvcc)}"
    return _explained(title, code, names, _SASS_MEANINGS)


def fake_cuda(function: Callable[..., Any], *shapes: Sequence[int]) -> Display:
    """Return what a function would make of tensors on ``cuda``: operators, shapes, devices.

    The tensors are fake: they have a shape, a type and a device, and no memory, so that PyTorch
    runs its shape rules and no kernel.

    :param function: takes tensors.
    :param shapes: of its arguments.
    """
    import torch

    seen: list[list[str]] = []

    class Watch(dispatch_mode()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            first = out[0] if isinstance(out, tuple | list) and out else out
            if isinstance(first, torch.Tensor):
                shape = "×".join(map(str, first.shape)) or "scalar"
                seen.append([str(func), shape, str(first.dtype)[6:], str(first.device)])
            return out

    with fake_tensor_mode():
        inputs = [torch.empty(tuple(shape), device="cuda") for shape in shapes]
        with Watch():
            function(*inputs)
    note = "Nothing was run: the tensors are fake, and only their shapes were computed."
    shown = table(["operator", "result", "type", "device"], seen, caption=note)
    return Display(shown.html, shown.text)


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


def _nvcc(nvcc: str, source: str, arch: str, kind: str) -> bytes:
    if not _ARCH.fullmatch(arch):
        raise BookError(f"{arch!r} is no architecture of a GPU; write it like sm_90.")
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        file, out = Path(scratch) / "kernel.cu", Path(scratch) / f"kernel.{kind}"
        file.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [nvcc, f"-arch={arch}", f"-{kind}", "-o", str(out), file.name],
            cwd=scratch, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()
            raise BookError(f"nvcc refuses the source ({said[0]}); mend it.")
        return out.read_bytes()


def _release(nvcc: str) -> str:
    done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release ([\d.]+)", done.stdout)
    return found[1] if found else "of unknown version"


def _explained(title: str, code: str, names: Iterable[str], meanings: dict[str, str]) -> Display:
    counts = Counter(
        known for name in names if (known := _known(name, meanings)) is not None
    ).most_common()
    rows = [[name, count, meanings[name]] for name, count in counts]
    shown = _shown(title, code)
    words = table(["instruction", "count", "what it does"], rows, numeric=(1,))
    return Display(shown.html + words.html, f"{shown.text}\n\n{words.text}")


def _known(name: str, meanings: dict[str, str]) -> str | None:
    parts = name.split(".")
    ends = range(len(parts), 0, -1)
    return next((stem for end in ends if (stem := ".".join(parts[:end])) in meanings), None)


def _shown(title: str, code: str) -> Display:
    note = "Nothing was run: the code was generated, and no GPU took part."
    html = (
        f'<figure class="it it-excerpt"><figcaption><strong>{escape(title)}</strong> '
        f"<span>{note}</span></figcaption>"
        f'<pre class="it-code">{escape(code)}</pre></figure>'
    )
    return Display(html, f"{title}\n{note}\n\n{code}")


def _absent(what: str, why: str) -> Display:
    text = f"No {what} to show: {why}."
    return Display(f'<p class="it it-absent">{escape(text)}</p>', text)
