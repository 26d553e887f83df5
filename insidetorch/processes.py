"""Child processes: the book's packages in their reach, a limit to their time, no terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from insidetorch.errors import BookError

HOME = Path(__file__).parent.parent
"""The folder that this package, and the miniatures, are imported from."""


def python_path(*first: Path | str) -> str:
    """Return a PYTHONPATH: these folders, the book's packages, then what this process was given."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(filter(None, [*map(str, first), str(HOME), *inherited])))


def environment(*first: Path | str, **more: str) -> dict[str, str]:
    """Return this process's environment for a Python that imports the book's packages.

    :param first: folders to import from before any other.
    :param more: further variables.
    """
    return {**os.environ, "PYTHONPATH": python_path(*first), **more}


def run(
    command: Sequence[Path | str],
    *,
    seconds: float = 600,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it wrote; its status is not looked at.

    :param seconds: its time limit.
    :param env: its environment; that of `environment` if it is left out.
    :param input: what it reads; nothing if it is left out.
    :raises BookError: the program cannot be started, or it did not end in time.
    """
    words = [str(word) for word in command]
    try:
        return subprocess.run(
            words, cwd=cwd, env=environment() if env is None else env, input=input or "",
            capture_output=True, encoding="utf-8", errors="replace", timeout=seconds, check=False,
        )  # fmt: skip
    except OSError as error:
        raise BookError(
            f"{words[0]} cannot be started ({error.strerror}); install it, or mend it."
        ) from None
    except subprocess.TimeoutExpired:
        raise BookError(
            f"`{' '.join(words)[:80]}` did not end within {seconds:g} s; try again on a machine "
            "less busy."
        ) from None


def last_line(said: str) -> str:
    """Return the last line that a program wrote, which in Python is its error."""
    return (said.strip().splitlines() or ["no reason given"])[-1]
