"""Files are written whole or not at all, and what prevents it is said in a sentence."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from insidetorch.errors import BookError
from insidetorch.files import is_full, replacing, write, write_changed


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    write(path, "old")
    with replacing(path) as part:
        part.write_text("ne")
        assert path.read_text() == "old"
        part.write_text("new")
    assert path.read_text() == "new"
    assert not write_changed(path, b"new") and write_changed(path, "newer")
    assert [one.name for one in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("stopped", [KeyboardInterrupt, ValueError])
def test_what_was_begun_is_removed(tmp_path: Path, stopped: type[BaseException]) -> None:
    path = tmp_path / "file"
    write(path, "old")
    with pytest.raises(stopped), replacing(path) as part:
        part.write_text("half")
        raise stopped
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_why_it_cannot_be_written_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    said = r"file cannot be written \(No space left on device\); free some space"
    with pytest.raises(BookError, match=said), replacing(path) as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())
    path.write_text("a file")
    with pytest.raises(BookError, match=r"below cannot be written \((File exists|Not a dir)"):
        write(path / "below", "x")


def test_a_full_disk_is_known_also_where_many_files_are_copied() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a")
    assert is_full(full) and is_full(shutil.Error([("a", "b", str(full))]))
    assert not is_full(OSError(errno.EACCES, os.strerror(errno.EACCES)))
