"""Streams: what PyTorch's CUDA sanitizer concludes from the order of launches, marks and waits."""

from __future__ import annotations

from insidetorch.private.name import Name

_HANDLER = Name("torch.cuda._sanitizer.EventHandler")
_LAUNCH = Name("torch.cuda._sanitizer.EventHandler._handle_kernel_launch")
_RECORD = Name("torch.cuda._sanitizer.EventHandler._handle_event_record")
_WAIT = Name("torch.cuda._sanitizer.EventHandler._handle_event_wait")
_WHOLE_DEVICE = Name("torch.cuda._sanitizer.EventHandler._handle_device_synchronization")
_ONE_STREAM = Name("torch.cuda._sanitizer.EventHandler._handle_stream_synchronization")
_ONE_EVENT = Name("torch.cuda._sanitizer.EventHandler._handle_event_synchronization")
_ORDERED = Name("torch.cuda._sanitizer.StreamSynchronizations.is_ordered_after")


class Sanitizer:
    """The part of PyTorch's CUDA sanitizer that judges, fed by hand, so without a GPU.

    `torch.cuda._sanitizer.EventHandler`; streams, events and tensors are numbers.
    """

    def __init__(self) -> None:
        self._handler = _HANDLER.get()()
        self.last = 0
        """The number of the last kernel, from 1."""

    def kernel(self, name: str, stream: int, reads: set[int], writes: set[int]) -> list[int]:
        """Launch a kernel, and return the tensors on which it races with an earlier one."""
        used = {tensor: [name] for tensor in reads | writes}
        errors = _LAUNCH.of(self._handler)(stream, reads - writes, writes, set(), name, used)
        self.last += 1
        return [int(error.data_ptr) for error in errors]

    def record(self, event: int, stream: int) -> None:
        """Record an event on a stream."""
        _RECORD.of(self._handler)(event, stream)

    def wait(self, event: int, stream: int) -> None:
        """Let a stream wait for an event."""
        _WAIT.of(self._handler)(event, stream)

    def synchronize(self, what: str, number: int) -> None:
        """Let the CPU wait for a ``stream``, an ``event`` or the ``device``."""
        if what == "device":
            _WHOLE_DEVICE.of(self._handler)()
        else:
            (_ONE_STREAM if what == "stream" else _ONE_EVENT).of(self._handler)(number)

    def ordered(self, stream: int, number: int, other: int) -> bool:
        """Tell whether what the stream gets next comes after kernel `number` of the other one."""
        return bool(_ORDERED.of(self._handler.syncs)(stream, number, other))


_VISIBLE = Name("torch.cuda._parse_visible_devices")


def visible_devices() -> list[int | str]:
    """Return the devices that `CUDA_VISIBLE_DEVICES` names, as PyTorch's Python reads it.

    `torch.cuda._parse_visible_devices`; it does not ask whether they are there.
    """
    found: list[int | str] = _VISIBLE.get()()
    return found
