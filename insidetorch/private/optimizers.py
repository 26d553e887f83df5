"""Optimizers: the devices that have foreach kernels, and the old name of a schedule's class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from insidetorch.private.name import Name, replace

_FOREACH_DEVICES = Name("torch.optim.optimizer._get_foreach_kernels_supported_devices")
_OLD_SCHEDULE_BASE = Name("torch.optim.lr_scheduler._LRScheduler")


@contextmanager
def foreach_devices(*types: str) -> Iterator[None]:
    """Let optimizers believe that these device types, and no others, have foreach kernels.

    `torch.optim.optimizer._get_foreach_kernels_supported_devices`, replaced.
    """
    before = _FOREACH_DEVICES.get()
    replace(_FOREACH_DEVICES, lambda: list(types))
    try:
        yield
    finally:
        replace(_FOREACH_DEVICES, before)


def old_schedule_base() -> type:
    """Return the class that was the base of schedules before release 2.0.

    `torch.optim.lr_scheduler._LRScheduler`.
    """
    base: type = _OLD_SCHEDULE_BASE.get()
    return base
