"""A checkout of PyTorch's sources, if it is exactly what the installed torch came from."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

VARIABLE = "PYTORCH_SRC"


def checkout(commit: str) -> tuple[Path | None, str]:
    """Return the folder of the checkout that `PYTORCH_SRC` names, or None and why there is none.

    :param commit: the full commit the installed torch was built from.
    """
    named = os.environ.get(VARIABLE, "")
    if not named:
        return None, ""
    folder = Path(named).expanduser()
    head = _head(folder)
    if head is None:
        return None, f"{VARIABLE} is {named}, which is not a git checkout."
    if head != commit:
        return None, f"{VARIABLE} is at {head[:10]}; this torch was built from {commit[:10]}."
    return folder, ""


@cache
def _head(folder: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--verify", "HEAD"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
