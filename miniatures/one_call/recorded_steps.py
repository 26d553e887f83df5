"""Instructions of the chapter's calls as they were once recorded, for machines that cannot step.

``python -m miniatures.one_call.record_steps`` records them again, with the torch that is
installed.
"""

from __future__ import annotations

import json
import lzma
import platform
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError

FILE = Path(__file__).with_name("recorded_steps.json.xz")


def replay(asked: str, environment: Mapping[str, str] | None, reason: str) -> dict[str, Any]:
    """Return what stepping through these statements gave when they were recorded, and say so.

    :param asked: the statements and what belongs to them, as text.
    :param environment: variables that were set.
    :param reason: why they cannot be stepped through here.
    :raises BookError: they were not recorded, or with another release of torch.
    """
    recorded = json.loads(lzma.decompress(FILE.read_bytes()))
    told: dict[str, Any] | None = recorded["told"].get(_key(asked, environment))
    if told is None or recorded["torch"] != _release():
        raise BookError(
            f"The statements could not be stepped through ({reason}), and there is no recording "
            f"of them with torch {_release()}: use Linux on x86-64 or 64-bit Arm; in a container, "
            "allow ptrace with --cap-add=SYS_PTRACE."
        )
    print(
        f"Not stepped through here ({reason}). "
        f"A recording instead: torch {recorded['torch']}, Linux, {recorded['machine']}."
    )
    return told


def store(told: Mapping[tuple[str, str], Any]) -> None:
    """Write the file: for the text and the variables of each request what was told."""
    recorded = {"torch": _release(), "machine": platform.machine()}
    content = recorded | {"told": {sha256("\n".join(key).encode()).hexdigest(): one
                                   for key, one in told.items()}}  # fmt: skip
    FILE.write_bytes(lzma.compress(json.dumps(content).encode(), preset=9))


def _key(asked: str, environment: Mapping[str, str] | None) -> str:
    return sha256("\n".join((asked, json.dumps(environment or {}))).encode()).hexdigest()


def _release() -> str:
    return version("torch").partition("+")[0]
