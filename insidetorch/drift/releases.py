"""From what a person calls a release to its sources: a path, the cache, or the package index."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

from insidetorch.drift.trees import (
    SYMBOLS,
    VERSION,
    Tree,
    open_checkout,
    open_folder,
    open_wheel,
    wanted,
)
from insidetorch.drift.unshipped import is_library, symbols
from insidetorch.errors import BookError
from insidetorch.files import replacing

_VERSION = re.compile(
    r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-zA-Z0-9.]+)?", re.ASCII
)
_CHANNELS = {
    "newest": (),
    "candidate": ("--pre", "--index-url", "https://download.pytorch.org/whl/test/cpu"),
    "nightly": ("--pre", "--index-url", "https://download.pytorch.org/whl/nightly/cpu"),
}
# A macOS wheel carries the same sources as a Linux one, in a quarter of the size or less.
_PLATFORM = "macosx_15_0_arm64"


def open_release(named: str, cache: Path) -> Tree:
    """Return the sources of a release.

    :param named: a wheel, a folder with ``torch/`` in it, a virtual environment, a checkout, a
        version such as ``2.15.0``, or ``newest``, ``candidate`` or ``nightly``.
    :param cache: the folder where the sources of downloaded releases are kept.
    :raises BookError: there is no such thing, or it cannot be read or fetched.
    """
    path = Path(named).expanduser()
    if path.is_file():
        return open_wheel(path)
    if path.is_dir():
        return _open_folder(path)
    if named in _CHANNELS:
        return open_wheel(fetch(named, cache))
    if not is_release(named):
        raise BookError(
            f"{named} is neither a file or folder here nor a version; name a wheel, an "
            f"environment, a checkout, a version such as 2.15.0, or one of {', '.join(_CHANNELS)}."
        )
    kept = _kept(cache, named)
    if not _sound(kept):
        kept.unlink(missing_ok=True)
        kept = fetch(named, cache)
    return open_wheel(kept)


def is_release(named: str) -> bool:
    """Tell whether this is a version such as 2.15.0, or a channel."""
    return named in _CHANNELS or _VERSION.fullmatch(named) is not None


def channel(named: str) -> tuple[str, ...] | None:
    """Return pip's options for a channel such as ``nightly``, or None for anything else."""
    return _CHANNELS.get(named)


def fetch(named: str, cache: Path) -> Path:
    """Download a release with pip and keep its sources, without its libraries.

    :param named: a version or a channel.
    :return: the archive in the cache.
    :raises BookError: pip found no such release or reached no index.
    """
    what = ["torch"] if named in _CHANNELS else [f"torch=={named}"]
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
                "--platform", _PLATFORM, "--implementation", "cp",
                "--python-version", f"{sys.version_info.major}.{sys.version_info.minor}",
                "--dest", folder, *_CHANNELS.get(named, ()), *what,
            ],
            capture_output=True,
            text=True,
        )  # fmt: skip
        wheels = list(Path(folder).glob("torch-*.whl"))
        if done.returncode or not wheels:
            raise BookError(refusal(named, done.stdout + done.stderr))
        tree = open_wheel(wheels[0])
        kept = _kept(cache, tree.public)
        with replacing(kept) as part:
            pack(wheels[0], part)
    return kept


def pack(wheel: Path, to: Path) -> None:
    """Copy what drift looks at in a wheel into a smaller archive: sources, and names of symbols."""
    with (
        zipfile.ZipFile(wheel) as archive,
        zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as kept,
    ):
        names: set[bytes] = set()
        for member in archive.infolist():
            if wanted(member.filename):
                kept.writestr(member.filename, archive.read(member))
            elif is_library(member.filename):
                names |= symbols(archive.read(member))
        if names:
            kept.writestr(SYMBOLS, b"\n".join(sorted(names)))


def refusal(named: str, said: str) -> str:
    """Return the sentence for a download that pip could not make, from what pip said."""
    known = re.search(r"\(from versions: ([^)]*)\)", said)
    listed = known[1].split(", ") if known else []
    if "NewConnectionError" in said or "ConnectTimeoutError" in said or "ProxyError" in said:
        return (
            f"torch {named} could not be fetched: the package index cannot be reached; "
            "connect to a network, or name a wheel that is on disk."
        )
    if listed and listed != ["none"]:
        return (
            f"torch {named} is not on the package index for this Python; "
            f"the newest there are {', '.join(listed[-4:])}: name one of those."
        )
    if "No matching distribution" in said:
        return (
            f"torch {named} is not on the package index, or the index cannot be reached; "
            "check the version and the network, or name a wheel that is on disk."
        )
    last = said.strip().splitlines()[-1:] or ["pip said nothing"]
    return f"torch {named} could not be fetched ({last[0]}); name a wheel that is on disk."


def _sound(archive: Path) -> bool:
    """Tell whether every member of an archive is there as it was stored."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return VERSION in opened.namelist() and opened.testzip() is None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError):
        return False


def _kept(cache: Path, version: str) -> Path:
    return cache / f"torch-{version.split('+')[0]}.zip"


def _open_folder(path: Path) -> Tree:
    if (path / "torch" / "version.py").is_file():
        return open_folder(path)
    if (path / "version.py").is_file() and path.name == "torch":
        return open_folder(path.parent)
    if (path / "version.txt").is_file() and (path / "torch" / "csrc").is_dir():
        return open_checkout(path, _head(path))
    for site in [*path.glob("lib/python*/site-packages"), path / "Lib" / "site-packages"]:
        if (site / "torch" / "version.py").is_file():
            return open_folder(site)
    raise BookError(
        f"{path} holds no torch; name an environment, a folder with torch/ in it, or a checkout."
    )


def _head(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else ""
