"""Give random programs to the allocator of a CUDA build, without a GPU, and to the miniature.

``python scripts/pretended_cuda.py PYTHON`` takes the Python of an environment with a CUDA build of
torch (`make drift-run` makes some under ``_build/drift``) and needs gcc. A library that only
pretends (``scripts/pretended_cuda``) stands in for CUDA's runtime and driver. Blocks, addresses,
reserved bytes and retries are compared after each line; it ends with 1 if a line differs.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "scripts/pretended_cuda"
MIB = 2**20
# By PyTorch's own names, but for the fraction, which is set by a call.
SETTINGS: list[dict[str, Any]] = [
    {},
    {"expandable_segments": True},
    {"max_split_size_mb": 30},
    {"roundup_power2_divisions": 4},
    {"garbage_collection_threshold": 0.5, "fraction": 0.8},
    {"fraction": 0.5},
    {"max_split_size_mb": 30, "roundup_power2_divisions": 4},
]


def main() -> int:
    """Compile the library, run each setting in a process of its own, and print what agreed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("python", help="the Python of an environment with a CUDA build of torch")
    asked.add_argument("--programs", type=int, default=25, help="for each setting")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compile_into(Path(folder), Path(options.python))
        env = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": folder,
               "LD_PRELOAD": f"{folder}/runtime.so",
               "TORCH_CPP_LOG_LEVEL": "ERROR"}  # fmt: skip
        statuses = [
            subprocess.run(
                [options.python, __file__, json.dumps(setting), str(options.programs)],
                env={**env, "PYTORCH_CUDA_ALLOC_CONF": written(setting)}, check=False,
            ).returncode
            for setting in SETTINGS
        ]  # fmt: skip
    return int(any(statuses))


def written(setting: dict[str, Any]) -> str:
    """Return a setting as the environment variable has it."""
    return ",".join(f"{key}:{value}" for key, value in setting.items() if key != "fraction")


def compile_into(folder: Path, python: Path) -> None:
    """Compile runtime, driver and NVML, with the headers of CUDA in that environment."""
    packages = next((python.parent.parent / "lib").glob("python3*/site-packages"))
    # Triton's wheel has the part of the headers that the runtime's wheel leaves out.
    headers = [next((packages / "nvidia").glob("cu1*/include")),
               packages / "triton/backends/nvidia/include"]  # fmt: skip
    known = set(re.findall(r"\b(cu[A-Z]\w+)\(", (SOURCES / "driver.c").read_text("utf-8")))
    stubs = folder / "stubs.c"
    # What torch's libraries link to and the comparison does not reach.
    names = {
        name.removesuffix("_v2") if name.removesuffix("_v2") in known else name
        for library in (packages / "torch/lib").glob("*.so")
        for name in re.findall(r"\bU (cu[A-Z]\w+)$", symbols(library), re.MULTILINE)
    }
    names -= {name for name in names if name.startswith("cuda")} | known
    stubs.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in sorted(names)))
    flags: list[str | Path] = [
        "gcc",
        "-shared",
        "-fPIC",
        "-w",
        *(f"-I{one}" for one in headers),
    ]
    for made, sources in {
        "runtime.so": [SOURCES / "runtime.c"],
        "libcuda.so.1": [SOURCES / "driver.c", stubs],
        "libnvidia-ml.so.1": [SOURCES / "nvml.c"],
    }.items():
        subprocess.run([*flags, *sources, "-ldl", "-o", folder / made], check=True)


def symbols(library: Path) -> str:
    """Return what `nm` says of a library's dynamic symbols."""
    command = ["nm", "-D", "--undefined-only", library]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compare(setting: dict[str, Any], programs: int) -> int:
    """Run the programs on both sides, and print how many lines left both in the same state."""
    import torch

    from miniatures.caching_allocator.cases import random_program
    from miniatures.caching_allocator.growing import Growing
    from miniatures.caching_allocator.tuning import Settings, Tuned

    runtime = ctypes.CDLL(None)
    capacity = ctypes.c_size_t.in_dll(runtime, "capacity").value
    fraction = setting.get("fraction", 1)
    settings = Settings(
        max_split=setting.get("max_split_size_mb", 2**43) * MIB,
        divisions=setting.get("roundup_power2_divisions", 0),
        collect_above=setting.get("garbage_collection_threshold", 0),
        limit=int(capacity * fraction) if fraction < 1 else None,
    )
    torch.cuda.init()
    if fraction < 1:
        torch.cuda.set_per_process_memory_fraction(fraction)
    streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    numbers = [runtime.stream_number(ctypes.c_void_p(one.cuda_stream)) for one in streams]
    same = lines = 0
    for seed in range(programs):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        ctypes.c_long.in_dll(runtime, "next_address").value = 2**40
        kind = Growing if setting.get("expandable_segments") else Tuned
        ours = kind(capacity, settings)
        before = torch.cuda.memory_stats().get("num_alloc_retries", 0)
        held: list[tuple[Any, torch.Tensor]] = []
        for line in random_program(seed):
            step(line, ours, streams, held, lambda stream: runtime.finish(numbers[stream]))
            lines += 1
            theirs = torch.cuda.memory_stats().get("num_alloc_retries", 0) - before
            if blocks_of(ours) != their_blocks() or ours.retries != theirs:
                print(f"program {seed} differs after {line}")
                break
            same += 1
        held.clear()
    print(f"torch {torch.__version__}, {setting or 'defaults'}: {same} of {lines} lines agree")
    return int(same != lines)


def step(line: Any, ours: Any, streams: Any, held: list[Any], finish: Any) -> None:
    """Do what a line of a program says on both sides.

    :raises AssertionError: one side found memory and the other did not.
    """
    import torch

    kind, number, stream = line
    at = number % len(held) if held else 0
    if kind == "malloc":
        pair: list[Any] = [None, None]
        with suppress(MemoryError):
            pair[0] = ours.malloc(number, stream)
        with suppress(torch.OutOfMemoryError), torch.cuda.stream(streams[stream]):
            pair[1] = torch.empty(number, dtype=torch.uint8, device="cuda")
        assert (pair[0] is None) == (pair[1] is None), f"{line}: only one side found memory"
        if pair[0] is not None:
            held.append(tuple(pair))
    elif kind == "free" and held:
        ours.free(held.pop(at)[0])
    elif kind == "record" and held:
        ours.record_stream(held[at][0], stream)
        held[at][1].record_stream(streams[stream])
    elif kind == "finish":
        ours.finish(stream)
        finish(stream)
    elif kind == "empty":
        ours.empty_cache()
        torch.cuda.empty_cache()


def blocks_of(ours: Any) -> tuple[list[Any], int]:
    """Return the miniature's blocks (address, size, in use, free), and what it reserved."""
    found = ((b.address, b.size, b.allocated, b.free) for b in ours.blocks())
    return sorted(found), ours.reserved


def their_blocks() -> tuple[list[Any], int]:
    """Return the same of PyTorch's allocator."""
    import torch

    found = (
        (b["address"], b["size"], b["state"] == "active_allocated", b["state"] == "inactive")
        for segment in torch.cuda.memory_snapshot(include_traces=False)
        for b in segment["blocks"]
    )
    return sorted(found), torch.cuda.memory_reserved()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].startswith("{"):
        sys.exit(compare(json.loads(sys.argv[1]), int(sys.argv[2])))
    sys.exit(main())
