"""Bytes on the C heap: what a call leaves allocated, as the GNU C library counts it."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable

from insidetorch.errors import BookError

_FIELDS = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd",
    "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def bytes_in_use() -> int:
    """Return the bytes allocated by `malloc` on the main thread, blocks of the system included.

    :raises BookError: the C library has no `mallinfo2`, which GNU libc has from 2.33 on.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        raise BookError("This C library has no mallinfo2: count bytes on Linux with glibc 2.33.")
    library.mallinfo2.restype = _Info
    info = library.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def bytes_kept(make: Callable[[], object], count: int = 1000) -> int:
    """Return the bytes that one result of `make` occupies, its neighbours' padding averaged out.

    :param count: results made and held at once; the median of five rounds is returned.
    """
    make()
    rounds = []
    for _ in range(5):
        held: list[object] = [None] * count
        before = bytes_in_use()
        for place in range(count):
            held[place] = make()
        rounds.append((bytes_in_use() - before) / count)
        held.clear()
    return round(statistics.median(rounds))
