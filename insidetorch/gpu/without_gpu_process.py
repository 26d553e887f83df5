"""Makes Inductor write code for a GPU that is not there. Run in a process of its own.

``python -m insidetorch.gpu.without_gpu_process`` reads a job from stdin as JSON and prints what
Inductor wrote. Nothing is compiled and nothing runs. It patches torch, so no other process may
import it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

# The facts of an H100 (SXM5) that Inductor asks for when it chooses blocks and warps.
H100 = {
    "name": "H100, pretended", "major": 9, "minor": 0, "multi_processor_count": 132,
    "total_memory": 80 * 2**30, "warp_size": 32, "max_threads_per_block": 1024,
    "max_threads_per_multi_processor": 2048, "regs_per_multiprocessor": 65536,
    "shared_memory_per_block": 48 * 2**10, "shared_memory_per_block_optin": 227 * 2**10,
    "shared_memory_per_multiprocessor": 228 * 2**10, "L2_cache_size": 50 * 2**20,
    "gcnArchName": "",
}  # fmt: skip


def pretend() -> None:
    """Have `torch.cuda` answer as if one H100 were there."""
    import torch

    from insidetorch.private.compiler import never_start_gpu

    properties = SimpleNamespace(**H100)
    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: (9, 0),
        "_lazy_init": lambda: None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    never_start_gpu()


def write(job: Mapping[str, Any]) -> str:
    """Return what Inductor writes for the function of a job.

    :param job: ``source`` and ``name`` of the function, ``shapes`` and ``dtype`` of its inputs.
    """
    pretend()
    import torch
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from insidetorch.private.compiler import inductor_code
    from insidetorch.private.modes import fake_tensor_mode

    names: dict[str, Any] = {"torch": torch}
    exec(compile(job["source"], "<function>", "exec", dont_inherit=True), names)
    mode = fake_tensor_mode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    dtype = getattr(torch, job["dtype"])
    with mode:
        inputs = [torch.empty(shape, device="cuda", dtype=dtype) for shape in job["shapes"]]
    return inductor_code(names[job["name"]], mode, inputs)


if __name__ == "__main__":
    sys.stdout.write(write(json.load(sys.stdin)))
