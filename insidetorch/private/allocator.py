"""The settings of the caching allocators, and the readers of their snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from insidetorch.private.name import Name

_SET = Name("torch._C._accelerator_setAllocatorSettings")
_SEGSUM = Name("torch.cuda._memory_viz.segsum")
_TRACE = Name("torch.cuda._memory_viz.trace")
_RECORD = Name("torch.cuda.memory._record_memory_history")
_SLEEP = Name("torch.cuda._sleep")
_SNAPSHOT = Name("torch.cuda.memory._snapshot")


def set_allocator(settings: str) -> None:
    """Give the caching allocators settings, written as in ``PYTORCH_CUDA_ALLOC_CONF``.

    `torch._C._accelerator_setAllocatorSettings`; what it refuses raises `ValueError`. A setting
    that is not named may stay as it was.
    """
    _SET.get()(settings)


def segment_map(snapshot: Mapping[str, Any]) -> str:
    """Return PyTorch's own drawing of the segments of a snapshot, in letters.

    `torch.cuda._memory_viz.segsum`.
    """
    return str(_SEGSUM.get()(snapshot))


def event_list(snapshot: Mapping[str, Any]) -> str:
    """Return the history of a snapshot as a program of allocations and releases.

    `torch.cuda._memory_viz.trace`.
    """
    return str(_TRACE.get()(snapshot))


def record_memory(enabled: str | None = "all") -> None:
    """Begin to keep the history of the CUDA allocator, or end it with None.

    `torch.cuda.memory._record_memory_history`, with the frames of Python alone: to look up those
    of C++ may take minutes.
    """
    _RECORD.get()(enabled, stacks="python")


def device_snapshot() -> dict[str, Any]:
    """Return segments, blocks and history of the CUDA allocator.

    `torch.cuda.memory._snapshot`; `torch.cuda.memory._dump_snapshot` writes it to a file.
    """
    found: dict[str, Any] = _SNAPSHOT.get()()
    return found


def busy(cycles: int) -> None:
    """Keep the current stream of the GPU busy for about so many cycles of its clock.

    `torch.cuda._sleep`.
    """
    _SLEEP.get()(cycles)
