"""A profile of the CPU alone: with CUDA in the session there are lines that nobody asked for."""

from __future__ import annotations

from typing import Any

from torch.profiler import ProfilerActivity, profile


def on_cpu(**options: Any) -> Any:
    """Return `torch.profiler.profile` for the CPU's lines alone, with these options.

    With CUDA in the session a profile has lines of its own, such as the wait at its end.
    """
    return profile(activities=[ProfilerActivity.CPU], **options)
