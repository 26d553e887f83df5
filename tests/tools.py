"""What some tests need of the machine: a test without its tool is skipped, or fails in CI."""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from insidetorch import facts

_OTHERWISE = {
    "c++": lambda: facts.tool("g++", "c++", "clang++"),
    "cc": lambda: facts.tool("cc", "gcc"),
    "chromium": facts.chromium,
    "triton": lambda: find_spec("triton"),
    "Python.h": lambda: Path(sysconfig.get_path("include"), "Python.h").is_file(),
}
"""How to look for what is no program on PATH by that name."""


def need(*names: str) -> None:
    """Skip the test that runs, or fail it where tools are expected, if one of these is missing.

    Tests that always need one say so with the mark ``needs``, e.g. ``pytest.mark.needs("gdb")``.
    """
    missing = [name for name in names if not _OTHERWISE.get(name, lambda n=name: shutil.which(n))()]
    if missing:
        lack(f"not on this machine: {', '.join(missing)}")


def lack(what: str) -> NoReturn:
    """Skip the test that runs for want of something; fail it where tools are expected: in CI."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{what}; where CI is set, tests need it", pytrace=False)
    pytest.skip(what)
