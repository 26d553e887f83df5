"""The settings of the installed allocators: what its parser and its headers say of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from insidetorch.private.allocator import set_allocator
from miniatures.import_torch.watch import fresh

USES = {
    "expandable_segments": ("segments that grow", "fragmentation; sizes that change"),
    "max_split_size_mb": ("blocks so large are not cut", "one large size that comes again"),
    "max_non_split_rounding_mb": ("how much too large such a block may be", "with the former"),
    "garbage_collection_threshold": (
        "give old whole blocks back above this share of the memory fraction",
        "sharing a GPU; it needs a memory fraction",
    ),
    "roundup_power2_divisions": ("round to parts of powers of two", "many near sizes"),
    "large_segment_size_mb": (
        "what a request of 1 to 10 MiB brings, and the page of a large growing segment",
        "tuning; more than 10",
    ),
    "pinned_use_background_threads": ("look at marks of pinned memory in a thread", "many copies"),
    "pinned_max_round_threshold_mb": ("larger pinned blocks are not rounded up", "host memory"),
    "pinned_max_cached_size_mb": ("larger pinned blocks are not kept", "host memory"),
    "backend": ("`native`, or `cudaMallocAsync`: the driver's pool", "comparing; sharing"),
    "per_process_memory_fraction": ("the limit, as the function of like name", "sharing a GPU"),
    "throw_on_cudamalloc_oom": ("refuse before the driver is asked", "above the limit"),
    "graph_capture_record_stream_reuse": ("reuse within a capture", "graphs of several streams"),
    "release_lock_on_cudamalloc": ("let other threads in while the driver works", "many threads"),
    "pinned_use_cuda_host_register": ("register memory instead of allocating it", "start-up"),
    "pinned_num_register_threads": ("with so many threads", "with the former"),
    "pinned_reserve_segment_size_mb": ("reserve pinned memory at the start", "small copies"),
    "pinned_free_catch_all": ("put up with frees of unknown pointers", "debugging"),
}
"""What each setting does, and what it is for, in our words."""


def parsed() -> dict[str, str]:
    """Return for each setting in `USES` what the parser of this installation says to nonsense.

    An empty text: it is read by the CUDA part, which a CPU build lacks, or not known.
    """
    texts = refusals([f"{key}:nonsense" for key in USES])
    return {key: "" if text.startswith("Unrecognized") else text
            for key, text in zip(USES, texts, strict=True)}  # fmt: skip


def refusals(settings: Sequence[str], **env: str) -> list[str]:
    """Return what a new process says to each of the settings, given to it in this order.

    The settings of this process stay as they are.

    :param env: variables of the environment of the new process.
    """
    program = f"import json\nfrom {__name__} import refusal\n"
    program += f"print(json.dumps([refusal(each) for each in {list(settings)!r}]))"
    found: list[str] = fresh(program, **env)
    return found


def refusal(settings: str) -> str:
    """Give this process settings; return why its parser refuses them, or an empty text."""
    try:
        set_allocator(settings)
    except (RuntimeError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""


def cuda_keys() -> set[str]:
    """Return the settings that the installed `CUDAAllocatorConfig.h` lists for the CUDA part."""
    text = _header("c10/cuda/CUDAAllocatorConfig.h")
    listed = re.search(r"keys\{(.*?)\};", text, re.S)
    if listed is None:
        return set()
    joined = re.sub(r'"\s*\n\s*"', "", re.sub(r"//.*", "", listed[1]))
    return set(re.findall(r'"(\w+)"', joined))


def constants() -> dict[str, int]:
    """Return the sizes that the installed `AllocatorConfig.h` fixes, in bytes."""
    text = _header("c10/core/AllocatorConfig.h")
    found = {name: int(value) for name, value in
             re.findall(r"constexpr size_t (k\w+) = (\d+);", text)}  # fmt: skip
    if large := re.search(r"large_segment_size_\{(\d+)\}", text):
        found["large_segment_size"] = int(large[1])
    return found


def _header(path: str) -> str:
    import torch

    return (Path(torch.__file__).parent / "include" / path).read_text(encoding="utf-8")
