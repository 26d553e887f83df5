"""The toolkit's wheel, which the site offers to those who download a notebook.

Its version ends in the digest of its sources: pip replaces an installed toolkit of another build.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insidetorch.book.project import Project

_BUILD = """
import sys
from hatchling.builders.wheel import WheelBuilder
builder = WheelBuilder(".")
builder.metadata.core_raw_metadata["version"] += f"+{sys.argv[2]}"
for made in builder.build(directory=sys.argv[1], versions=["standard"]): pass
"""


@dataclass(frozen=True)
class WheelJob:
    """A wheel in the making, or made by an earlier build.

    :param folder: where the wheel of the present sources is kept.
    :param process: what is making it, or None if it is there.
    """

    folder: Path
    process: subprocess.Popen[str] | None

    def wait(self) -> Path | str:
        """Return the wheel, or the sentence that says why there is none."""
        part = _part(self.folder)
        if self.process is not None:
            _, said = self.process.communicate()
            if self.process.returncode:
                reason = " ".join(said.strip().splitlines()[-1:])
                return f"pyproject.toml: the toolkit's wheel could not be built ({reason}); mend it"
            shutil.rmtree(self.folder, ignore_errors=True)
            part.rename(self.folder)
        return next(self.folder.glob("*.whl"))

    def close(self) -> None:
        """End the process if it is still at work."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def start_wheel(project: Project) -> WheelJob | None:
    """Start making the wheel; return None if the book is no installable project."""
    path = project.root / "pyproject.toml"
    if not path.is_file():
        return None
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if "project" not in table:
        return None
    folder = project.cache / "wheel" / _hash(project.root, table)
    if any(folder.glob("*.whl")):
        return WheelJob(folder, None)
    shutil.rmtree(folder.parent, ignore_errors=True)
    _part(folder).mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _BUILD, str(_part(folder)), folder.name],
        cwd=project.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return WheelJob(folder, process)


def _part(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.part")


def _hash(root: Path, table: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for path in _sources(root, table):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _sources(root: Path, table: dict[str, Any]) -> Iterator[Path]:
    wheel = table.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {})
    wheel = wheel.get("wheel", {})
    readme = table["project"].get("readme")
    names = ["pyproject.toml", *wheel.get("packages", ()), *wheel.get("force-include", ())]
    for name in [*names, *([readme] if isinstance(readme, str) else [])]:
        path = root / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file
