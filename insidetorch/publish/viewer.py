"""speedscope, the viewer of traces that the site serves itself: fetched once, by npm, if it can be.

Without npm or a network the site has no viewer, and its traces are there to download.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "1.25.0"
SHA512 = "cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag=="
PLACE = "_static/speedscope"
"""Where the viewer is in the site."""
SECONDS = 60
_RELEASE = "package/dist/release/"
_UNUSED = ("perf-vertx-stacks", "file-format-schema")


def viewer(cache: Path) -> Path | None:
    """Return a folder that holds the viewer, or None if it cannot be had.

    :param cache: what was fetched before is kept here.
    """
    folder = cache / f"speedscope-{VERSION}"
    if (folder / "index.html").is_file():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        return None
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="it-", dir=cache) as scratch:
        archive = _fetched(npm, Path(scratch))
        if archive is None:
            return None
        part = Path(scratch) / "speedscope"
        unpack(archive, part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return folder


def _fetched(npm: str, folder: Path) -> Path | None:
    """Return the package as npm fetched it, or None without a network or with another content."""
    command = [npm, "pack", f"speedscope@{VERSION}", "--json", "--ignore-scripts", "--silent"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
        archive = folder / json.loads(done.stdout)[0]["filename"]
        content = archive.read_bytes()
    except (OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired):
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
