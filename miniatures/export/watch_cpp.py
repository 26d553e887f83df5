"""A C++ program around a compiled package: built with g++ against the wheel's own libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import torch

from miniatures.export.watch import several

SOURCE = Path(__file__).with_name("loader.cpp")


def build(folder: Path) -> Path | None:
    """Compile the loader into `folder`; None, with a sentence, where there is no g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        print("g++ is not installed: the C++ program is not built.")
        return None
    home = Path(torch.__file__).parent
    library, made = home / "lib", folder / "loader"
    subprocess.run(
        [
            compiler, "-std=c++20", "-O0", f"-I{home / 'include'}", str(SOURCE), "-o", str(made),
            f"-L{library}", "-ltorch_cpu", "-lc10", "-Wl,--disable-new-dtags",
            f"-Wl,-rpath,{library}",
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return made


def answer(
    program: Path, package: str, x: torch.Tensor, **variables: str
) -> tuple[torch.Tensor, set[str]]:
    """Run the loader on eight columns of numbers.

    :param variables: of the environment.
    :raises RuntimeError: with what the program said, if it failed.
    :returns: its output, and the names of the libraries that the process had loaded.
    """
    numbers = several(x.flatten().tolist()).split()
    done = subprocess.run(
        [str(program), package, *numbers],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    values = torch.tensor([float(word) for word in done.stdout.split()])
    loaded = {Path(line.split()[-1]).name for line in done.stderr.splitlines() if "/" in line}
    return values.view(len(x), -1), {name for name in loaded if ".so" in name}
