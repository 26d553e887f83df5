"""Writing files whole: a reader, or a build that is killed, never leaves half of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path

from insidetorch.errors import BookError

PARTS = ".*.part"
"""What unfinished files are called; one that is found was left by a process that was killed."""
_FULL = frozenset({EDQUOT, EFBIG, ENOSPC})


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; what is there at the end takes the place of `path`, or nothing does.

    :raises BookError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        raise BookError(refusal(path, error)) from error
    finally:
        with suppress(OSError):
            part.unlink()


def write(path: Path, content: str | bytes) -> None:
    """Write a file, and the folder it is in.

    :raises BookError: it cannot be written.
    """
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def write_changed(path: Path, content: str | bytes) -> bool:
    """Write a file unless it already holds `content`; tell whether it was written.

    :raises BookError: it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    write(path, data)
    return True


def refusal(path: Path, error: OSError) -> str:
    """Return the sentence for a file that could not be written."""
    advice = "free some space there" if is_full(error) else "change its permissions or free it"
    return f"{path} cannot be written ({error.strerror or error}); {advice}, then try again."


def is_full(error: OSError) -> bool:
    """Tell whether the disk, or what one may have of it, is full."""
    # `shutil.copytree` gathers the errors of single files, as text.
    text = str(error)
    return error.errno in _FULL or any(os.strerror(number) in text for number in _FULL)
