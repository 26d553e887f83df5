"""How much of the C library's heap an object takes, counted around its making."""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path

from insidetorch.errors import BookError


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def in_use() -> int:
    """Return the bytes that `malloc` has given out in this process, rounding included.

    :raises BookError: the C library is not GNU's, from 2.33 on.
    """
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        raise BookError(
            "This C library has no mallinfo2, so its heap cannot be counted; run the cell on "
            "Linux with glibc 2.33 or newer."
        ) from None
    ask.restype = _Mallinfo2
    info = ask()
    return int(info.uordblks + info.hblkhd)


def mapped() -> int:
    """Return how many of those bytes lie in pieces that have a mapping of their own.

    :raises BookError: as `in_use`.
    """
    in_use()  # says so, where the C library cannot tell
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = _Mallinfo2
    return int(ask().hblkhd)


def resident() -> int:
    """Return the bytes of memory that the system counts for this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def trim() -> None:
    """Ask the C library to give back to the system what it keeps for later requests."""
    ctypes.CDLL(None).malloc_trim(0)


def bytes_each(make: Callable[[], object], count: int = 10_000) -> int:
    """Return how many bytes one of `count` objects takes on the heap, to the nearest byte.

    Python keeps objects of up to 512 bytes in an arena of its own, which is not counted;
    `sys.getsizeof` tells their size.
    """
    kept: list[object] = [None] * count
    make()
    gc.collect()
    before = in_use()
    for i in range(count):
        kept[i] = make()
    return round((in_use() - before) / count)
