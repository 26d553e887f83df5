"""Executes the chapters under the Python it runs in and writes what came of each; stops at nothing.

Run as ``python -m insidetorch.drift.collect ROOT FOLDER OUT [SHARD]`` in the environment of another
release; all that it writes is below FOLDER, and OUT.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from insidetorch.book.ledger import now
from insidetorch.book.project import Chapter, Project
from insidetorch.book.runs import Run
from insidetorch.drift.outcomes import SCHEMA, ChapterRun, chapter_run
from insidetorch.facts import cores, cpu_name, torch_facts
from insidetorch.files import write
from insidetorch.run.execute import execute

_Item = TypeVar("_Item")
_SECONDS = 300


@dataclass(frozen=True)
class _Elsewhere(Project):
    """The book, with another folder for all that is written."""

    folder: Path = Path()

    @property
    def build(self) -> Path:
        return self.folder


@dataclass
class _Collected:
    """Receives the runs; writes each executed notebook."""

    folder: Path
    runs: dict[str, ChapterRun] = field(default_factory=dict)

    def started(self, chapter: Chapter) -> None:
        print(f"  {chapter.doc} …", flush=True)

    def cell(self, chapter: Chapter, number: int) -> None:
        """Cells are not reported one by one."""

    def finished(self, run: Run) -> None:
        doc, failure = run.chapter.doc, run.failure
        ended = ""
        if failure is not None:
            where = f"code cell {failure.cell}: " if failure.cell else ""
            ended = f"{where}{failure.name}: {failure.message}"
        self.runs[doc] = chapter_run(doc, run.chapter.title, run.notebook, ended)
        path = self.folder / "executed" / f"{doc.replace('/', '__')}.ipynb"
        write(path, json.dumps(run.notebook, ensure_ascii=False))
        print(f"  {doc}  {run.seconds:.1f} s", flush=True)


def shard(items: Sequence[_Item], part: str) -> list[_Item]:
    """Return the items of one shard; the shards of all parts hold each item once.

    :param part: ``i/n``, i from 1; "" for all items.
    """
    if not part:
        return list(items)
    number, count = (int(word) for word in part.split("/"))
    return list(items[number - 1 :: count])


def missing() -> list[str] | None:
    """Return the private names that this release lacks; None if asking for them failed.

    They are asked for in a process of its own: what has changed behind one may end it.
    """
    code = "import json; from insidetorch import private; print(json.dumps(private.missing()))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_SECONDS
        )
        return list(json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return None


def _triton() -> str:
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def main(arguments: Sequence[str]) -> None:
    """Execute the chapters of one shard and write what came of them."""
    root, folder, out = (Path(word) for word in arguments[:3])
    os.environ["INSIDETORCH_COLLECT"] = "1"
    project = _Elsewhere(root, folder)
    pages = project.pages(project.limits())
    chapters = [page for page in pages if isinstance(page, Chapter)]
    chosen = shard(chapters, arguments[3] if len(arguments) > 3 else "")
    collected = _Collected(folder)
    if chosen:
        execute(chosen, project, min(cores(), len(chosen)), collected)
    torch = torch_facts()
    assert torch is not None
    data = {
        "schema": SCHEMA,
        "torch": torch.release,
        "commit": torch.commit,
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "ran": now(),
        "missing": missing(),
        "triton": _triton(),
        "chapters": [asdict(collected.runs[c.doc]) for c in chosen if c.doc in collected.runs],
    }
    write(out, json.dumps(data, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
