"""speedscope, the viewer of traces that the site serves itself: fetched once, by npm, if it can be.

Without npm or a network the site has no viewer, and its traces are there to download.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from insidetorch.errors import BookError
from insidetorch.files import write
from insidetorch.processes import run

VERSION = "1.25.0"
SHA512 = "cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag=="
PLACE = "_static/speedscope"
"""Where the viewer is in the site."""
SECONDS = 20
AGAIN = 24 * 3600
"""After how many seconds what could not be fetched is tried again."""
_RELEASE = "package/dist/release/"
_UNUSED = ("perf-vertx-stacks", "file-format-schema")


def viewer(cache: Path, say: Callable[[str], object]) -> Path | None:
    """Return a folder that holds the viewer, or None if it cannot be had.

    That it cannot is said once, and remembered for a day.

    :param cache: what was fetched before is kept here.
    :param say: receives lines for people.
    """
    folder = cache / f"speedscope-{VERSION}"
    if (folder / "index.html").is_file():
        return folder
    npm, note = shutil.which("npm"), cache / "no-viewer"
    lacks = "npm is not installed" if npm is None else "npm could not fetch speedscope"
    if _known(note) == lacks:
        return None
    if npm is not None:
        say(f"  fetching the viewer of traces with npm, {SECONDS} s at most")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="it-", dir=cache) as scratch:
            archive = _fetched(npm, Path(scratch))
            if archive is not None:
                part = Path(scratch) / "speedscope"
                unpack(archive, part)
                shutil.rmtree(folder, ignore_errors=True)
                part.rename(folder)
                return folder
    say(f"  no viewer of traces: {lacks}; they are there to download, and a build tomorrow tries")
    write(note, lacks)
    return None


def _known(note: Path) -> str:
    """Return why there was no viewer within the last day."""
    fresh = note.is_file() and time.time() - note.stat().st_mtime < AGAIN
    return note.read_text(encoding="utf-8") if fresh else ""


def _fetched(npm: str, folder: Path) -> Path | None:
    """Return the package as npm fetched it, or None without a network or with another content."""
    command = [npm, "pack", f"speedscope@{VERSION}", "--json", "--ignore-scripts", "--silent"]
    try:
        done = run([*command, "--fetch-retries=0"], cwd=folder, seconds=SECONDS)
        archive = folder / json.loads(done.stdout)[0]["filename"]
        content = archive.read_bytes()
    except (OSError, ValueError, LookupError, TypeError, BookError):
        return None
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")
    return archive if digest == SHA512 else None


def unpack(archive: Path, folder: Path) -> None:
    """Write the viewer's files and its licence, without its demonstration."""
    folder.mkdir()
    with tarfile.open(archive) as package:
        for member in package:
            name = Path(member.name).name
            wanted = member.name.startswith(_RELEASE) or member.name == "package/LICENSE"
            if member.isfile() and wanted and not name.startswith(_UNUSED):
                content = package.extractfile(member)
                assert content is not None
                (folder / name).write_bytes(content.read())
