"""The profiler: all threads, each allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.name import Name


def _profile() -> object:
    import torch

    return torch.autograd.profiler.profile()


_KINETO_RESULTS = Name("torch.autograd.profiler.profile.kineto_results", _profile)
_PROFILER_CONFIG = Name("torch._C._profiler._ExperimentalConfig")
_FUNCTION_EVENTS = Name("torch.autograd.profiler.profile._function_events", _profile)
_PROFILER_ENABLED = Name("torch._C._autograd._profiler_enabled")


def memory_events(function: Callable[[], object]) -> list[int]:
    """Return the bytes of each allocation (> 0) and release (< 0) on the CPU, in order.

    `torch.autograd.profiler.profile.kineto_results`, whose raw events named ``[memory]`` are what
    the CPU allocator reported.
    """
    import torch

    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        function()
    events = _KINETO_RESULTS.of(profile).events()
    return [event.nbytes() for event in events if event.name() == "[memory]"]


def all_threads() -> Any:
    """Return the profiler setting that records the operators of every thread.

    `torch._C._profiler._ExperimentalConfig`, with ``profile_all_threads``.
    """
    return _PROFILER_CONFIG.get()(profile_all_threads=True)


def profiler_is_on() -> bool:
    """Tell whether a profiler listens to this thread.

    `torch._C._autograd._profiler_enabled`.
    """
    return bool(_PROFILER_ENABLED.get()())


def events_are_made(profiled: Any) -> bool:
    """Tell whether a profile has made its events, the objects of Python, yet.

    `torch.autograd.profiler.profile._function_events`.
    """
    return _FUNCTION_EVENTS.of(profiled.profiler) is not None


def raw_events(profiled: Any) -> list[tuple[str, int]]:
    """Return name and nanoseconds of each raw event of a profile that has ended.

    `torch.autograd.profiler.profile.kineto_results`.
    """
    found = _KINETO_RESULTS.of(profiled.profiler).events()
    return [(event.name(), event.duration_ns()) for event in found]
