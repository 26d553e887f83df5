"""One build at a time in one book."""

from __future__ import annotations

import fcntl
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
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="ascii")
    except OSError as error:
        raise BookError(
            f"the output folder {folder} cannot be written ({error.strerror}); "
            "free that place or change its permissions."
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise BookError(
                f"another build (process {holder}) is at work in {folder}; "
                "wait for it or end it, then build again."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
