"""A checkout of PyTorch's sources, if it is exactly what the installed torch came from."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from insidetorch.errors import BookError
from insidetorch.processes import run

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
        done = run(["git", "-C", folder, "rev-parse", "--verify", "HEAD"], seconds=30)
    except BookError:
        return None
    return None if done.returncode else done.stdout.strip()
