"""Inductor: its settings and which of them its cache ignores, the seconds of its phases."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_SETTINGS = Name("torch._inductor.config.get_config_copy")
_IN_KEY = Name("torch._inductor.config.save_config_portable")
_PHASES = Name("torch._dynamo.utils.compilation_time_metrics")
_WHY_NOT = Name("torch._inductor.scheduler.WhyNoFuse")
_AOT_PATCH = Name("torch._functorch.config.patch")


def inductor_settings() -> dict[str, Any]:
    """Return all settings of Inductor by name.

    `torch._inductor.config.get_config_copy`.
    """
    found: dict[str, Any] = _SETTINGS.get()()
    return found


def settings_in_key() -> dict[str, Any]:
    """Return the settings whose values are part of the key of a cached graph.

    `torch._inductor.config.save_config_portable`.
    """
    found: dict[str, Any] = _IN_KEY.get()()
    return found


def phase_seconds(*, clear: bool = False) -> dict[str, float]:
    """Return how long each phase of compilation took since the process began; phases nest.

    `torch._dynamo.utils.compilation_time_metrics`.

    :param clear: begin to count anew.
    """
    kept = _PHASES.get()
    found = {str(name): float(sum(times)) for name, times in kept.items()}
    if clear:
        kept.clear()
    return found


def without_donated_buffers() -> Any:
    """Return a context in which compiled backward graphs keep what the forward saved.

    `torch._functorch.config.donated_buffer`, switched off.
    """
    return _AOT_PATCH.get()(donated_buffer=False)


def why_not_fused() -> Any:
    """Return the class whose calls say why two loop nests are not fused.

    `torch._inductor.scheduler.WhyNoFuse`.
    """
    return _WHY_NOT.get()
