"""Small books made for a test, and the build run on them."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
CHAPTER_HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

"""
PACKAGE = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "tinytools"
version = "1.2"
requires-python = ">=3.11"
[tool.hatch.build.targets.wheel]
packages = ["tinytools"]
"""
_CONFIG = "title: A tiny book\nauthor: A test\nonly_build_toc_files: true\n"


@cache
def toolkit() -> Path:
    """Return a folder with a copy of the package: an edit during the tests changes no key."""
    folder = Path(tempfile.mkdtemp(prefix="it-toolkit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(
        REPOSITORY / "insidetorch",
        folder / "insidetorch",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return folder


@dataclass
class TinyBook:
    """A book in `root`: an index, and the chapters added to it."""

    root: Path
    docs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "_config.yml").write_text(_CONFIG)
        (self.root / "index.md").write_text(
            "# The tiny book\n\nA page of prose, with enough words to be read by someone.\n"
        )
        self._contents()

    def chapter(self, doc: str, body: str, front: str = "") -> Path:
        """Add or replace a chapter; `front` is added to its front matter."""
        path = self.root / f"{doc}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CHAPTER_HEAD.replace("---\n\n", f"{front}---\n\n") + body)
        if doc not in self.docs:
            self.docs.append(doc)
            self._contents()
        return path

    def cells(self, doc: str, *sources: str, front: str = "") -> Path:
        """Add or replace a chapter of code cells."""
        fences = "".join(f"\n```{{code-cell}} ipython3\n{source}\n```\n" for source in sources)
        words = "Some words that stand before the first cell of the chapter.\n"
        return self.chapter(doc, f"# Chapter {doc}\n\n{words}{fences}", front)

    def remove(self, doc: str) -> None:
        """Take a chapter out of the book."""
        (self.root / f"{doc}.md").unlink()
        self.docs.remove(doc)
        self._contents()

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a build of this book."""
        return [
            sys.executable, "-m", "insidetorch", "build", "--root", str(self.root), *arguments,
        ]  # fmt: skip

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start a build."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(toolkit()), "COLUMNS": "400", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def build(self, *arguments: str, **env: str) -> tuple[int, str]:
        """Build; return the exit status and what was written."""
        process = self.start(*arguments, **env)
        said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def _contents(self) -> None:
        files = "".join(f"  - file: {doc}\n" for doc in self.docs)
        chapters = f"chapters:\n{files}" if files else ""
        (self.root / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{chapters}")
