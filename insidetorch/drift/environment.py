"""A virtual environment beside `.venv`, with the book's pins and another torch."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from insidetorch.drift.releases import channel, is_release, refusal
from insidetorch.drift.trees import open_wheel
from insidetorch.errors import BookError

_TORCH = re.compile(r"^torch\s*==[^\n]*$", re.MULTILINE)
_TRITON = re.compile(r"^triton\s*==[^\s;]+", re.MULTILINE)
_MARK = "complete"


def label(named: str) -> str:
    """Return the name of the folder for a release: its version, or the channel's name.

    :raises BookError: it is neither a wheel nor a release that pip could install.
    """
    path = Path(named).expanduser()
    if path.is_file():
        return open_wheel(path).public
    if not is_release(named):
        raise BookError(
            f"{named} cannot be installed: name a version such as 2.15.0, the file of a wheel, or "
            "one of newest, candidate, nightly."
        )
    return named.split("+")[0]


def requirements(pins: str, named: str, root: Path) -> str:
    """Return the book's requirements with another torch, and the Triton that goes with it.

    CUDA wheels of torch name the one Triton they work with, so its pin gives way.

    :param pins: the content of ``requirements.txt``.
    :param named: a version, a channel, or the path of a wheel.
    :param root: the book's folder, against which the file of constraints is found.
    :raises BookError: the pins name no torch.
    """
    path = Path(named).expanduser()
    if path.is_file():
        torch = f"torch @ {path.resolve().as_uri()}"
    else:
        torch = "torch" if channel(named) is not None else f"torch=={named}"
    changed, count = _TORCH.subn(lambda _: torch, pins)
    if not count:
        raise BookError(f"{root / 'requirements.txt'} pins no torch; add a line torch==….")
    changed = _TRITON.sub("triton", changed)
    return re.sub(r"^-c +(\S+)", lambda m: f"-c {(root / m[1]).as_posix()}", changed, flags=re.M)


def pinned(pins: str, torch: str, triton: str) -> str:
    """Return the book's requirements with another release pinned, and the Triton it came with.

    :param triton: its version; "" leaves the pin as it is.
    """
    changed = _TORCH.sub(f"torch=={torch}", pins)
    return _TRITON.sub(f"triton=={triton}", changed) if triton else changed


def prepare(root: Path, folder: Path, named: str) -> Path:
    """Make the environment unless it is there as wanted; return its Python.

    :param folder: where it is made; nothing outside is touched.
    :raises BookError: pip cannot install the release.
    """
    pins = root / "requirements.txt"
    wanted = requirements(pins.read_text(encoding="utf-8"), named, root)
    constraints = root / "constraints.txt"
    known = constraints.read_text(encoding="utf-8") if constraints.is_file() else ""
    digest = hashlib.sha256(f"{sys.version}\n{wanted}\n{known}".encode()).hexdigest()
    venv, mark = folder / "venv", folder / "venv" / _MARK
    python = venv / "bin" / "python"
    fresh = channel(named) is not None
    if not fresh and mark.is_file() and mark.read_text(encoding="utf-8") == digest:
        return python
    shutil.rmtree(venv, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / "requirements.txt"
    listed.write_text(wanted, encoding="utf-8")
    _run([sys.executable, "-m", "venv", str(venv)], named)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    index = channel(named) or ()
    if index:
        _run([*pip, *index, "--no-deps", "torch"], named)
    _run([*pip, "-r", str(listed)], named)
    mark.write_text(digest, encoding="utf-8")
    return python


def _run(command: Sequence[str], named: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BookError(refusal(named, done.stdout + done.stderr))
