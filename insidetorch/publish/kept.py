"""Files of the published site that are used again, because they would be made of the same."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from insidetorch.files import write


def digest(*parts: object) -> str:
    """Return the digest of what something is made from."""
    mixed = hashlib.sha256()
    for part in parts:
        mixed.update(part if isinstance(part, bytes) else repr(part).encode())
        mixed.update(b"\0")
    return mixed.hexdigest()


def code(files: Iterable[str]) -> str:
    """Return the digest of the modules that make something."""
    return digest(*(Path(file).read_bytes() for file in files))


class Kept:
    """A new site, most of whose files may be those of the published one.

    :param old: the folder of the published site, which may be missing.
    :param new: the folder of the new one, on the same disk.
    :param index: the file that says what the published files were made from.
    """

    def __init__(self, old: Path, new: Path, index: Path) -> None:
        self.old, self.new, self._index = old, new, index
        self.made: set[str] = set()
        """The names of the files that are not the published ones."""
        self._now: dict[str, tuple[str, int, int]] = {}
        try:
            known = json.loads(index.read_text(encoding="utf-8"))
            self._before = {name: (str(d), int(s), int(t)) for name, (d, s, t) in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._before = {}

    def put(self, name: str, source: str, content: bytes | Callable[[], bytes]) -> None:
        """Add a file: the published one if that was made of the same and is as it was left.

        :param name: its path below the site.
        :param source: the digest of everything that it is made from.
        :param content: what is in it, or what makes that.
        """
        path, published = self.new / name, self.old / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        same = self._before.get(name) == (source, *_state(published))
        if not same:
            made = content if isinstance(content, bytes) else content()
            same = published.is_file() and published.read_bytes() == made
        if same:
            _link(published, path)
        else:
            path.write_bytes(made)
            self.made.add(name)
        self._now[name] = (source, *_state(path))

    def keep(self) -> None:
        """Note what the files were made from, once the new site is the published one."""
        write(self._index, json.dumps(self._now))


def _link(path: Path, new: Path) -> None:
    try:
        os.link(path, new)
    except OSError:  # the disk has no links
        shutil.copy2(path, new)


def _state(path: Path) -> tuple[int, int]:
    """Return the size of a file and when it was changed; nothing for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns
