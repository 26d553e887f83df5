"""The same numbers computed with another instruction set: which digits change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch


def computed() -> dict[str, list[float]]:
    """Return what some operators give here, of inputs that are the same on each machine."""
    numbers = np.random.default_rng(0)
    line = torch.from_numpy(numbers.random(1000, dtype=np.float32))
    square = torch.from_numpy(numbers.random((30, 30), dtype=np.float32))
    seeded = torch.Generator().manual_seed(0)
    return {
        "log1p": line.log1p().tolist(),
        "sigmoid": line.sigmoid().tolist(),
        "randn": torch.randn(1000, generator=seeded).tolist(),
        "mm": (square @ square).flatten().tolist(),
    }


def computed_with(level: str) -> dict[str, list[float]]:
    """Return the same from a process of its own that keeps to an instruction set.

    :param level: a value of `ATEN_CPU_CAPABILITY`, such as ``default``.
    """
    program = f"import json; from {__name__} import computed; print(json.dumps(computed()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "ATEN_CPU_CAPABILITY": level},
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, list[float]] = json.loads(done.stdout)
    return told
