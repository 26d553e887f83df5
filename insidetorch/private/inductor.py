"""Inductor: its settings and which of them its cache ignores, the seconds of its phases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from insidetorch.private.name import Name

_SETTINGS = Name("torch._inductor.config.get_config_copy")
_IN_KEY = Name("torch._inductor.config.save_config_portable")
_PHASES = Name("torch._dynamo.utils.compilation_time_metrics")
_WHY_NOT = Name("torch._inductor.scheduler.WhyNoFuse")
_AOT_PATCH = Name("torch._functorch.config.patch")
_PASS = Name("torch._inductor.custom_graph_pass.CustomGraphPass")
_BACKENDS = Name("torch._inductor.codegen.common.init_backend_registration")
_DEVICES = Name("torch._inductor.codegen.common.device_codegens")


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


def activation_budget(budget: float) -> Any:
    """Return a context with another budget for what a compiled forward pass keeps.

    `torch._functorch.config.activation_memory_budget`.

    :param budget: from 0 (the inputs alone) to 1 (the usual cut).
    """
    return _AOT_PATCH.get()(activation_memory_budget=budget)


def graph_watchers(places: Iterable[str]) -> tuple[dict[str, Any], list[tuple[str, list[str]]]]:
    """Return a pass that changes nothing for each setting, and the list that they fill.

    `torch._inductor.custom_graph_pass.CustomGraphPass`.

    :param places: names of settings that take a pass.
    :return: the passes by setting; for each call of one, its setting and the graph's operators.
    """
    met: list[tuple[str, list[str]]] = []

    class Watcher(_PASS.get()):  # type: ignore[misc]
        def __init__(self, place: str) -> None:
            self.place = place

        def __call__(self, graph: Any) -> None:
            calls = [node for node in graph.nodes if node.op.startswith("call_")]
            met.append((self.place, [getattr(n.target, "__name__", str(n.target)) for n in calls]))

        def uuid(self) -> str:
            return self.place

    return {place: Watcher(place) for place in places}, met


def inductor_devices() -> list[str]:
    """Return the devices for which Inductor has a backend.

    `torch._inductor.codegen.common.device_codegens`.
    """
    _BACKENDS.get()()
    return sorted(_DEVICES.get())
