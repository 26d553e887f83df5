"""Rendering the stage with Jupyter Book, incrementally, with warnings that cannot be missed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import insidetorch
from insidetorch.book.packages import installed
from insidetorch.book.project import Page, Project, heading
from insidetorch.files import write
from insidetorch.processes import environment

_REASON = re.compile(r"^[\w.]*(?:Error|Exception): .+$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OF_PAGE = re.compile(r"([^\s:]+)\.md:.*\bWARNING\b")
_PROBLEM = re.compile(r"\b(?:WARNING|ERROR|CRITICAL|SEVERE|Error|Exception)\b")


class SphinxProcess:
    """The process that runs Jupyter Book, once or more; started when it is first needed."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[str] | None = None

    def start(self) -> None:
        """Start loading Sphinx, unless that is done already."""
        if self._process is None:
            self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
            self._process = _start(self._project, self._said)

    def alive(self) -> bool:
        """Tell whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def ask(self, arguments: Sequence[str]) -> str:
        """Have Jupyter Book begin; return the number of the request."""
        self.start()
        assert self._process is not None and self._process.stdin is not None
        number = os.urandom(8).hex()
        with suppress(BrokenPipeError):  # `answer` says why
            self._process.stdin.write(f"{json.dumps([number, arguments])}\n")
            self._process.stdin.flush()
        return number

    def answer(self, number: str) -> tuple[int, str]:
        """Wait until the request is served; return Jupyter Book's status and what it said."""
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            asked, status, said = json.loads(line)
            if asked == number:
                return int(status), str(said)
        assert self._said is not None
        self._said.seek(0)
        status, said = self._process.wait() or 1, self._said.read()
        self.close()
        return status, said

    def close(self) -> None:
        """End the process if it is still waiting or at work."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._said):
                with suppress(BrokenPipeError):
                    assert pipe is not None
                    pipe.close()
            self._process = None


class Renderer:
    """One rendering, whose Sphinx can load while the chapters are executed."""

    def __init__(self, project: Project, sphinx: SphinxProcess) -> None:
        self.project = project
        self._sphinx = sphinx
        self._known = ""
        self._asked = ""
        self._wrong: list[str] = []

    @property
    def output(self) -> Path:
        """Where the rendered site is; not yet the published one."""
        return _folder(self.project) / "_build" / "html"

    def open(self) -> None:
        """Take the last rendering in hand, before the stage is touched.

        Until `accept`, it counts as unfinished, so that a build that is killed leaves no page
        behind that does not fit the stage.
        """
        mark = _folder(self.project) / "fingerprint"
        if (self.output / "index.html").is_file() and mark.is_file():
            self._known, *self._wrong = mark.read_text(encoding="utf-8").splitlines() or [""]
        mark.unlink(missing_ok=True)

    def begin(self, pages: Sequence[Page], changed: bool) -> None:
        """Begin to render the stage.

        The folder of the last rendering is used again unless something changed that Sphinx
        does not watch: the table of contents, a title (other pages show it), a static file, the
        extension, the installed packages. Pages that Sphinx complained of are read again, so that
        its warnings come back until they are mended; a rendering that was neither accepted nor
        complained of is never used again.

        :param changed: whether the stage or the ledger differs from the last rendering's; if
            nothing does, that rendering stands.
        """
        folder = _folder(self.project)
        same = self._known == self._fingerprint(pages)
        if same and not changed and not self._wrong:
            return
        for doc in self._wrong:
            for path in self.project.stage.glob(f"{doc}.*"):
                os.utime(path)
        if not same:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [
            "build", str(self.project.stage), "--path-output", str(folder),
            "-q", "-W", "--keep-going", "-n",
        ]  # fmt: skip
        self._asked = self._sphinx.ask(arguments)

    def finish(self, pages: Iterable[Page]) -> list[str]:
        """Wait for what was begun; return what Sphinx complained of, nothing if all is well."""
        if not self._asked:
            return []
        status, said = self._sphinx.answer(self._asked)
        problems = complaints(said, self.project)
        docs = [found[1] for found in map(_OF_PAGE.match, problems) if found]
        if problems and len(docs) == len(problems):
            self._accept("\n".join([self._fingerprint(pages), *dict.fromkeys(docs)]))
        if status and not problems:
            reasons = _REASON.findall(_COLOUR.sub("", said)) or ["it gave no reason"]
            problems = [f"Jupyter Book failed: {reasons[-1]}"]
        return problems

    def accept(self, pages: Iterable[Page]) -> None:
        """Note that the rendering is whole, so that the next one may build on it."""
        self._accept(self._fingerprint(pages))

    def _accept(self, mark: str) -> None:
        write(_folder(self.project) / "fingerprint", mark)

    def _fingerprint(self, pages: Iterable[Page]) -> str:
        digest = hashlib.sha256()
        for page in pages:
            digest.update(f"{page.doc}\0{heading(page.text)}\0".encode())
        digest.update("\0".join(installed()).encode())
        for path in self._watched():
            digest.update(f"{path}\0".encode() + path.read_bytes())
        return digest.hexdigest()

    def _watched(self) -> Iterable[Path]:
        root, stage = self.project.root, self.project.stage
        package = Path(insidetorch.__file__).parent
        yield from (stage / "_toc.yml", stage / "_config.yml", package / "display.css")
        drift = (
            *(root / "data").rglob("*.*"),
            *(self.project.build / "drift").glob("*/static.json"),
        )
        named = (root / name for name in ("requirements.txt", "constraints.txt"))
        yield from (path for path in (*named, *sorted(drift)) if path.is_file())
        for folder in (stage, package / "site"):
            for path in sorted(folder.rglob("*")):
                apart = folder == stage and not {"_static", "_templates"} & set(path.parts)
                if path.is_file() and "__pycache__" not in path.parts and not apart:
                    yield path


def _start(project: Project, said: IO[str]) -> subprocess.Popen[str]:
    extensions = (project.config.get("sphinx") or {}).get("extra_extensions") or ()
    module = "insidetorch.publish.sphinx_process"
    return subprocess.Popen(
        [sys.executable, "-m", module, str(os.getpid()), *map(str, extensions)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        env=environment(project.root),
    )


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
