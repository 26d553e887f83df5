"""Optimizers: the devices that have foreach kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from insidetorch.private.name import Name, replace

_FOREACH_DEVICES = Name("torch.optim.optimizer._get_foreach_kernels_supported_devices")


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
