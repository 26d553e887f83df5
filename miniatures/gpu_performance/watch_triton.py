"""Triton's own view of the kernels: its interpreter's results, and the code it makes for a GPU.

Each is asked in a process of its own, since Triton decides on import whether it interprets.
``python -m miniatures.gpu_performance.watch_triton`` writes `FILE` again, with the Triton that is
installed.
"""

from __future__ import annotations

import inspect
import json
import linecache
import re
import runpy
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from insidetorch.errors import BookError
from insidetorch.processes import environment, last_line, run
from miniatures.gpu_performance import kernels as gpu_kernels

Kernel = str | Callable[..., None]
FILE = Path(__file__).with_name("kernels_compiled.json")
_TYPES = {"p": "*fp32", "h": "*bf16", "i": "i32", "l": "i64", "f": "fp32"}
_STRIDES = {"FIRST": 1024, "SECOND": 1, "THIRD": 1048576, "BLOCK": 1024}
VARIANTS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "silu_times": ("silu_times", "pppi", {"BLOCK": 1024}, 4),
    "row_sum": ("row_sum", "ppi", {"BLOCK": 1024}, 4),
    "softmax": ("softmax", "ppi", {"BLOCK": 1024}, 4),
    "softmax, any columns": ("softmax", "ppu", {"BLOCK": 1024}, 4),
    "layer_norm": ("layer_norm", "ppppif", {"BLOCK": 1024}, 4),
    "transpose, rows": ("transpose", "ppii", {"TALL": 1, "WIDE": 1024}, 4),
    "transpose, tiles": ("transpose", "ppii", {"TALL": 32, "WIDE": 32}, 4),
    "permute, int32": ("permute", "ppiuu", _STRIDES, 4),
    "permute, int64": ("permute", "ppill", _STRIDES, 4),
    "matmul, ieee": ("matmul", "pppiii", {"M": 64, "N": 64, "K": 32, "PRECISION": "ieee"}, 4),
    "matmul, tf32": ("matmul", "pppiii", {"M": 64, "N": 64, "K": 32, "PRECISION": "tf32"}, 4),
    "matmul, bf16": ("matmul", "hhhiii", {"M": 64, "N": 64, "K": 32, "PRECISION": "ieee"}, 4),
    "matmul, bf16, any sizes": (
        "matmul", "hhhuuu", {"M": 64, "N": 64, "K": 32, "PRECISION": "ieee"}, 4),
    "attention, bf16": (
        "attention", "hhhhif", {"BLOCK": 64, "WIDTH": 64, "PRECISION": "ieee"}, 4),
}  # fmt: skip
"""What is compiled: kernel, types of its arguments, constants, warps. Arguments of types p, h
and i are divisible by 16, as PyTorch's allocations are; u is an integer of 32 bits that need not
be, l one of 64 bits."""


def available() -> bool:
    """Tell whether Triton is installed."""
    return find_spec("triton") is not None


def interpret_all(jobs: list[tuple[Kernel, tuple[int, ...], Any, Any]]) -> list[list[Tensor]]:
    """Return the tensors among the arguments of each run, after Triton's interpreter ran it.

    :param jobs: kernel, grid, arguments and constants of each run. A kernel is its name in
        `gpu_kernels`, or a function of ``tl`` and its arguments alone.
    :raises BookError: Triton is not installed, or refuses a kernel.
    """
    named = [(_text(kernel), *rest) for kernel, *rest in jobs]
    out: list[list[Tensor]] = _ask("interpret", named, TRITON_INTERPRET="1")
    return out


def _text(kernel: Kernel) -> str:
    return kernel if isinstance(kernel, str) else textwrap.dedent(inspect.getsource(kernel))


def compiled() -> dict[str, Any]:
    """Return what Triton made of each of `VARIANTS` for an H100: instructions and resources.

    ``block of 100`` has what it says of a block that is no power of two.
    Without Triton, or with one that refuses, what the release named in it made when recorded.
    """
    with suppress(BookError):
        return compile_all()
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded


def compile_all() -> dict[str, Any]:
    """Return what the Triton that is installed makes of each of `VARIANTS`, never a recording.

    :raises BookError: Triton is not installed, or refuses a kernel.
    """
    found: dict[str, Any] = _ask("compile", None)
    return found


def record() -> None:
    """Write `FILE` again, with the Triton that is installed.

    :raises BookError: as `compile_all` does; the file stays as it is.
    """
    text = json.dumps(compile_all(), indent=1) + "\n"
    FILE.write_text(text, encoding="utf-8")


def _ask(what: str, job: Any, **variables: str) -> Any:
    if not available():
        raise BookError("Triton is not installed here; install the package triton.")
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        question, answer = Path(scratch) / "question.pt", Path(scratch) / "answer.pt"
        torch.save(job, question)
        module = "miniatures.gpu_performance.watch_triton"
        done = run(
            [sys.executable, "-m", module, what, question, answer],
            env=environment(*sys.path, TRITON_CACHE_DIR=scratch, **variables),
        )
        if done.returncode:
            raise BookError(f"Triton refuses the kernel ({last_line(done.stderr)}); mend it.")
        return torch.load(answer, weights_only=True)


def _interpret(jobs: list[Any]) -> list[list[Tensor]]:
    import triton

    known = {text: _function(text) for text in {job[0] for job in jobs}}
    for text, grid, args, options in jobs:
        triton.jit(known[text])[grid](*args, **options)
    return [[value for value in job[2] if isinstance(value, Tensor)] for job in jobs]


def _function(text: str) -> Callable[..., None]:
    """Return the kernel of that name, or the one that a text defines: Triton reads its file."""
    if not text.startswith("def "):
        return cast(Callable[..., None], getattr(gpu_kernels, text))
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(f"import triton.language as tl\n{text}")
    names = runpy.run_path(file.name)
    linecache.getlines(file.name)  # what is read stays readable
    Path(file.name).unlink()
    return cast(Callable[..., None], names[text[4 : text.index("(")]])


def _compile(_: Any) -> dict[str, Any]:
    import triton

    found: dict[str, Any] = {}
    for label, variant in VARIANTS.items():
        made = _one(*variant)
        found[label] = {
            "instructions": dict(instructions(made.asm["ptx"]).most_common()),
            "shared": made.metadata.shared, "threads": variant[3] * 32,
            **_resources(made.asm["cubin"]),
        }  # fmt: skip
    try:
        _one("softmax", "ppi", {"BLOCK": 100}, 4)
        refused = ""
    except triton.CompilationError as error:
        refused = str(error).strip().splitlines()[-1]
    return {"triton": triton.__version__, "kernels": found, "block of 100": refused}


def _one(name: str, kinds: str, constants: Mapping[str, Any], warps: int) -> Any:
    """Compile a kernel for an H100."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = triton.jit(getattr(gpu_kernels, name))
    names = [p.name for p in function.params if p.name not in constants]
    places = {p.name: i for i, p in enumerate(function.params)}
    kinds_of = dict(zip(names, kinds, strict=True))
    signature = {n: _TYPES.get(k, "i32") for n, k in kinds_of.items()}
    signature |= dict.fromkeys(constants, "constexpr")
    even = {(places[n],): [["tt.divisibility", 16]] for n, k in kinds_of.items() if k in "phi"}
    return triton.compile(
        ASTSource(
            fn=function, signature=signature, attrs=even,
            constexprs={(places[n],): value for n, value in constants.items()},
        ),
        target=GPUTarget("cuda", 90, 32), options={"num_warps": warps},
    )  # fmt: skip


def instructions(ptx: str) -> Counter[str]:
    """Return how often each instruction stands in PTX."""
    body = re.sub(r"//.*", "", ptx)
    return Counter(re.findall(r"^\s*(?:@!?%p\d+ )?([a-z]\w*(?:\.[\w:]+)+)\s", body, re.MULTILINE))


def _resources(cubin: bytes) -> Mapping[str, int]:
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    return {"registers": int(re.findall(r"REG:(\d+)", text)[0])}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        try:
            record()
        except BookError as error:
            sys.exit(str(error))
    else:
        does: dict[str, Callable[[Any], Any]] = {"interpret": _interpret, "compile": _compile}
        torch.save(does[sys.argv[1]](torch.load(sys.argv[2], weights_only=True)), sys.argv[3])
