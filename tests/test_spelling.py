"""The spelling of all that is written here, by codespell and the words it is told."""

from __future__ import annotations

import subprocess
import sys

from built_site import ROOT


def test_nothing_is_misspelt() -> None:
    command = [sys.executable, "-m", "codespell_lib"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
