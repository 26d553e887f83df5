"""Files: written whole, so that no build that is killed leaves half of one; and seen to change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path

from insidetorch.errors import BookError

PARTS = ".*.part"
"""What unfinished files are called; one that is found was left by a process that was killed."""
MADE = frozenset({"_build", "__pycache__", "node_modules"})
"""Folders of what is made, not written."""
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


def digest(*parts: object) -> str:
    """Return the digest of what something is made from."""
    mixed = hashlib.sha256()
    for part in parts:
        mixed.update(part if isinstance(part, bytes) else repr(part).encode())
        mixed.update(b"\0")
    return mixed.hexdigest()


def states(folder: Path, apart: Collection[str] = MADE) -> dict[str, tuple[int, int]]:
    """Return the files below a folder with their times and sizes, apart from hidden ones.

    :param apart: the names of folders that are left out.
    """
    found = {}
    for entry in _below(folder, apart):
        with suppress(OSError):  # it was removed meanwhile
            state = entry.stat()
            found[entry.path] = (state.st_mtime_ns, state.st_size)
    return found


def _below(folder: Path | str, apart: Collection[str]) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # it was removed meanwhile
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in apart:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, apart)
        elif entry.is_file():
            yield entry


def refusal(path: Path, error: OSError) -> str:
    """Return the sentence for a file that could not be written."""
    advice = "free some space there" if is_full(error) else "change its permissions or free it"
    return f"{path} cannot be written ({error.strerror or error}); {advice}, then try again."


def is_full(error: OSError) -> bool:
    """Tell whether the disk, or what one may have of it, is full."""
    # `shutil.copytree` gathers the errors of single files, as text.
    text = str(error)
    return error.errno in _FULL or any(os.strerror(number) in text for number in _FULL)
