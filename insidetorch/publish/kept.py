"""Files that a build uses again, because they would be made of the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from insidetorch.files import digest, write


def code(files: Iterable[str]) -> str:
    """Return the digest of the modules that make something."""
    return digest(*(Path(file).read_bytes() for file in files))


class Made:
    """What files were made from, so that one is known that would be made of the same again.

    :param index: the file that remembers it between builds.
    """

    def __init__(self, index: Path) -> None:
        self._index = index
        self._now: dict[str, tuple[str, int, int]] = {}
        try:
            known = json.loads(index.read_text(encoding="utf-8"))
            self._before = {name: (str(d), int(s), int(t)) for name, (d, s, t) in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._before = {}

    def same(self, name: str, source: str, path: Path) -> bool:
        """Tell whether a file was made of `source`, and is as it was left."""
        return self._before.get(name) == (source, *_state(path))

    def note(self, name: str, source: str, path: Path) -> None:
        """Note what a file was made from."""
        self._now[name] = (source, *_state(path))

    def keep(self) -> None:
        """Remember what was noted, and nothing else."""
        write(self._index, json.dumps(self._now))


class Kept:
    """A new site, most of whose files may be those of the published one.

    :param old: the folder of the published site, which may be missing.
    :param new: the folder of the new one, on the same disk.
    :param index: the file that says what the published files were made from.
    """

    def __init__(self, old: Path, new: Path, index: Path) -> None:
        self.old, self.new, self._from = old, new, Made(index)
        self.made: set[str] = set()
        """The names of the files that are not the published ones."""

    def put(self, name: str, source: str, content: bytes | Callable[[], bytes]) -> None:
        """Add a file: the published one if that was made of the same and is as it was left.

        :param name: its path below the site.
        :param source: the digest of everything that it is made from.
        :param content: what is in it, or what makes that.
        """
        path, published = self.new / name, self.old / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        same = self._from.same(name, source, published)
        if not same:
            made = content if isinstance(content, bytes) else content()
            same = published.is_file() and published.read_bytes() == made
        if same:
            _link(published, path)
        else:
            path.write_bytes(made)
            self.made.add(name)
        self._from.note(name, source, path)

    def keep(self) -> None:
        """Remember what the files were made from, once the new site is the published one."""
        self._from.keep()


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
