"""Runs a line of Python in a process whose kernels use no vector instructions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def without_vectors(program: str) -> list[Any]:
    """Run `program` where ATen takes the kernels for any processor of this kind.

    :param program: Python after `import torch`; each line that it prints is JSON.
    :returns: the printed values, in order.
    :raises subprocess.CalledProcessError: the program failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", "import torch;" + program],
        env={**os.environ, "ATEN_CPU_CAPABILITY": "default"},
        check=True,
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
