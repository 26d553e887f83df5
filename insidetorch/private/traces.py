"""Traces: stacks on events, and what PyTorch's own code makes of described events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.private.name import Name
from insidetorch.private.profiler import _PROFILER_CONFIG, _profile


def _list() -> object:
    from torch.autograd.profiler_util import EventList

    return EventList()  # type: ignore[no-untyped-call]


_PARSE = Name("torch.autograd.profiler.profile._parse_kineto_results", _profile)
_BUILD_TREE = Name("torch.autograd.profiler_util.EventList._build_tree", _list)
_NOTHING: dict[str, Any] = {
    "shapes": [], "concrete_inputs": [], "kwinputs": {}, "stack": [], "is_async": False,
    "overload_name": "", "sequence_nr": -1, "is_user_annotation": False, "flops": 0,
    "is_python_function": False, "extra_meta": {}, "is_hidden_event": False, "dtypes": [],
    "structured_input_shapes": [], "structured_input_strides": [], "metadata_json": "",
    "activity_type": "", "flow_start": False,
}  # fmt: skip


class _Raw:
    """Stands for an event of Kineto: each of its methods returns a value that was described."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = _NOTHING | dict(values)

    def __getattr__(self, name: str) -> Any:
        return lambda: self._values.get(name, 0)


class _Result:
    def __init__(self, raw: Sequence[_Raw]) -> None:
        self._raw = raw

    def events(self) -> Sequence[_Raw]:
        return self._raw

    def trace_start_ns(self) -> int:
        return 0


def device_events(described: Sequence[Mapping[str, Any]]) -> Any:
    """Return what PyTorch's own code makes of described raw events with work on a GPU.

    `torch.autograd.profiler.profile._parse_kineto_results` links kernels to operators, and
    `EventList._build_tree` nests.

    :param described: for each event, what the methods of Kineto's event return, by name.
    """
    from torch.autograd import profiler_util

    lists: Any = profiler_util.EventList
    profile: Any = _profile()
    profile.use_device = "cuda"
    events: Any = lists(
        _PARSE.of(profile)(_Result([_Raw(values) for values in described])), use_device="cuda"
    )
    _BUILD_TREE.of(events)()
    return events


def file_only() -> Any:
    """Return a configuration with which a profile makes its file and no events.

    `torch._C._profiler._ExperimentalConfig`. None where this release has no such option.
    """
    try:
        return _PROFILER_CONFIG.get()(trace_only=True)
    except TypeError:
        return None


def with_stacks() -> Any:
    """Return the profiler setting with which events carry their Python stacks.

    `torch._C._profiler._ExperimentalConfig`, with ``verbose``.
    """
    return _PROFILER_CONFIG.get()(verbose=True)
