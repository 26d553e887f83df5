"""One build at a time in one book."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from insidetorch.errors import BookError


@contextmanager
def build_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the build folder; the system frees it however the build ends.

    :raises BookError: another build holds it, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = FileLock(path, blocking=False, fallback_to_soft=False).acquire()
        path.write_text(f"{os.getpid()}\n", encoding="ascii")
    except Timeout:
        holder = path.read_text(encoding="ascii").strip() or "unknown"
        raise BookError(
            f"another build (process {holder}) is at work in {folder}; "
            "wait for it or end it, then try again."
        ) from None
    except OSError as error:
        raise BookError(
            f"the output folder {folder} cannot be written ({error.strerror}); "
            "free that place or change its permissions."
        ) from None
    with held:
        yield
