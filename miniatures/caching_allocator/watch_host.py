"""What the CPU's memory does: the resident size of this process around an allocation."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path


def resident() -> float:
    """Return the bytes of this process that are in main memory, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def around(make: Callable[[], object]) -> tuple[float, float]:
    """Return by how many MiB the process grew while what `make` made lived, and after it went."""
    gc.collect()
    before = resident()
    made = make()
    while_alive = resident() - before
    del made
    return while_alive, resident() - before
