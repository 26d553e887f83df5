"""A few lines with work on a GPU, described event by event, and not measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_DEVICE: Any = torch.autograd.DeviceType  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Part:
    """A described event.

    :param start: microseconds.
    :param end: microseconds.
    :param number: the number by which it is linked: of an operator its own, of a call into CUDA
        and of work on the GPU that of the operator that caused it.
    :param lane: ``CPU``, ``CUDA call`` or ``GPU``.
    """

    name: str
    start: float
    end: float
    number: int
    lane: str = "CPU"


LINE = [
    Part("aten::mm", 0, 30, 1),
    Part("cudaLaunchKernel", 18, 26, 1, "CUDA call"),
    Part("gemm", 30, 330, 1, "GPU"),
    Part("aten::relu", 36, 66, 2),
    Part("aten::clamp_min", 42, 64, 3),
    Part("cudaLaunchKernel", 52, 60, 3, "CUDA call"),
    Part("clamp", 330, 350, 3, "GPU"),
    Part("aten::item", 70, 370, 4),
    Part("aten::_local_scalar_dense", 74, 368, 5),
    Part("cudaMemcpyAsync", 80, 90, 5, "CUDA call"),
    Part("Memcpy DtoH", 350, 354, 5, "GPU"),
    Part("cudaStreamSynchronize", 92, 362, 5, "CUDA call"),
]
"""``(a @ b).relu()`` and one number of it: 30 µs of asking for 300 µs of work, and a wait."""

BROKEN = [part for part in LINE if part.lane != "CUDA call"]
"""The same without what the driver's calls say."""


def raw(parts: list[Part]) -> list[dict[str, Any]]:
    """Return the parts as values of Kineto's events: times in nanoseconds, links by number."""
    found = []
    for place, part in enumerate(parts):
        linked = part.lane != "CPU"
        found.append({
            "name": part.name, "start_ns": int(part.start * 1000), "end_ns": int(part.end * 1000),
            "correlation_id": 1000 + place if linked else part.number,
            "linked_correlation_id": part.number if linked else 0, "external_id": part.number,
            "device_type": _DEVICE.CUDA if part.lane == "GPU" else _DEVICE.CPU,
            "start_thread_id": 1, "end_thread_id": 1, "device_index": 0,
            "device_resource_id": 7 if part.lane == "GPU" else 1,
        })  # fmt: skip
    return found
