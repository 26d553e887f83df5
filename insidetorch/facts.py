"""What is true of this machine and of the installed torch."""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path


@dataclass(frozen=True)
class Torch:
    """The installed torch, read without importing it.

    :param release: the version with its local part, e.g. ``2.13.0+cpu``.
    :param commit: the full commit of pytorch/pytorch it was built from.
    :param root: the folder of the package.
    """

    release: str
    commit: str
    root: Path

    @property
    def public(self) -> str:
        """The version without its local part, e.g. ``2.13.0``."""
        return self.release.split("+")[0]


@cache
def torch_facts() -> Torch | None:
    """Return the facts of the installed torch, or None if there is none."""
    spec = util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    text = (root / "version.py").read_text(encoding="utf-8")
    commit = re.search(r"git_version\s*=\s*'([0-9a-f]+)'", text)
    release = re.search(r"__version__\s*=\s*'([^']+)'", text)
    return Torch(
        release[1] if release else metadata.version("torch"), commit[1] if commit else "", root
    )


@cache
def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else platform.machine()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def tool(*names: str) -> str | None:
    """Return the path of the first of these programs that is on PATH, or None."""
    return next((path for name in names if (path := shutil.which(name))), None)


def chromium() -> str | None:
    """Return a Chromium or Chrome that the browser tests can drive, or None."""
    return tool("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
