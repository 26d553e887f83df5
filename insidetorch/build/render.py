"""Rendering the stage with Jupyter Book, incrementally, with warnings that cannot be missed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import insidetorch
from insidetorch.build.cache import write
from insidetorch.build.project import Page, Project, heading

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PROBLEM = re.compile(r"\b(?:WARNING|ERROR|CRITICAL|SEVERE|Error|Exception)\b")


@dataclass(frozen=True)
class Renderer:
    """One rendering, whose Sphinx loads while the chapters are executed."""

    project: Project
    process: subprocess.Popen[str]

    @property
    def output(self) -> Path:
        """Where the rendered site is; not yet the published one."""
        return _folder(self.project) / "_build" / "html"

    def render(self, pages: Iterable[Page]) -> list[str]:
        """Render the stage; return what Sphinx complained of, nothing if all is well.

        The folder of the last rendering is used again unless something changed that Sphinx
        does not watch: the table of contents, a title (other pages show it), a static file, the
        extension, the pins. A rendering that was not accepted is never used again, so that its
        warnings come back until they are mended.
        """
        folder = _folder(self.project)
        mark = folder / "fingerprint"
        known = mark.read_text(encoding="ascii") if mark.is_file() else ""
        if known != self._fingerprint(pages):
            shutil.rmtree(folder, ignore_errors=True)
        mark.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            "build", str(self.project.stage), "--path-output", str(folder),
            "-q", "-W", "--keep-going", "-n",
        ]  # fmt: skip
        _, said = self.process.communicate(json.dumps(arguments) + "\n")
        problems = complaints(said, self.project)
        if self.process.returncode and not problems:
            last = [line for line in _COLOUR.sub("", said).splitlines() if line.strip()][-1:]
            problems = [f"Jupyter Book failed: {' '.join(last) or 'it gave no reason'}"]
        return problems

    def accept(self, pages: Iterable[Page]) -> None:
        """Note that the rendering is whole, so that the next one may build on it."""
        write(_folder(self.project) / "fingerprint", self._fingerprint(pages))

    def close(self) -> None:
        """End the process if it is still waiting or at work."""
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
        self.process.wait()

    def _fingerprint(self, pages: Iterable[Page]) -> str:
        digest = hashlib.sha256()
        for page in pages:
            digest.update(f"{page.doc}\0{heading(page.text)}\0".encode())
        for path in self._watched():
            digest.update(f"{path}\0".encode() + path.read_bytes())
        return digest.hexdigest()

    def _watched(self) -> Iterable[Path]:
        root, stage = self.project.root, self.project.stage
        package = Path(insidetorch.__file__).parent
        yield from (stage / "_toc.yml", stage / "_config.yml", package / "display.css")
        for name in ("requirements.txt", "constraints.txt"):
            if (root / name).is_file():
                yield root / name
        for folder in (stage, package / "site"):
            for path in sorted(folder.rglob("*")):
                apart = folder == stage and not {"_static", "_templates"} & set(path.parts)
                if path.is_file() and "__pycache__" not in path.parts and not apart:
                    yield path


def start_renderer(project: Project) -> Renderer:
    """Start loading Sphinx in a process of its own."""
    package = str(Path(insidetorch.__file__).parent.parent)
    path = [str(project.root), package, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "insidetorch.build.sphinx_process", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )
    return Renderer(project, process)


def complaints(said: str, project: Project) -> list[str]:
    """Return the warnings and errors in what Sphinx wrote, with the paths of the book's files."""
    found = []
    for line in _COLOUR.sub("", said).splitlines():
        if _PROBLEM.search(line) and "warnings treated as errors" not in line:
            line = line.replace(f"{project.stage}{os.sep}", "")
            found.append(re.sub(r"^(\S+)\.ipynb(?=:)", r"\1.md", line.strip()))
    return list(dict.fromkeys(found))


def _folder(project: Project) -> Path:
    return project.build / "render"
