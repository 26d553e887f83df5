"""This build beside a stock `jupyter-book build`: the same chapters, machine and run."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

import insidetorch
from insidetorch.book.ledger import now
from insidetorch.book.project import Chapter, Project, open_project
from insidetorch.errors import BookError
from insidetorch.facts import cores, cpu_name, torch_facts

OURS, FORCE, CACHE = "this build", "stock, force", "stock, cache"
BUILDERS = (OURS, FORCE, CACHE)
STEPS = ("cold", "no change", "prose edit", "cell edit")
_NOT_COPIED = shutil.ignore_patterns("_build", ".*", "__pycache__", "tests", "node_modules")
_HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

"""

Seconds = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Bench:
    """Seconds of every build of one set of chapters.

    :param name: the set.
    :param chapters: how many it has.
    :param seconds: builder → step → one wall time for each repetition.
    """

    name: str
    chapters: int
    seconds: Seconds

    def ratio(self, builder: str, step: str) -> float:
        """Return how many times longer `builder` takes than this build, by medians."""
        return statistics.median(self.seconds[builder][step]) / statistics.median(
            self.seconds[OURS][step]
        )


def generate(root: Path, count: int) -> None:
    """Write a book of `count` small notebooks that use torch."""
    root.mkdir(parents=True)
    (root / "_config.yml").write_text(
        "title: A generated book\nauthor: insidetorch\nonly_build_toc_files: true\n",
        encoding="utf-8",
    )
    (root / "index.md").write_text("# A generated book\n\nIts chapters are all alike.\n")
    (root / "notebooks").mkdir()
    names = [f"notebooks/chapter{number:02}" for number in range(count)]
    for number, name in enumerate(names):
        cells = (
            f"import torch\n\ntorch.manual_seed({number})",
            "x = torch.randn(64, 64, requires_grad=True)\n(x @ x).sum().backward()",
            "x.grad.norm()",
            "print(x.mean().item())",
        )
        fences = "".join(f"\nA step.\n\n```{{code-cell}} ipython3\n{c}\n```\n" for c in cells)
        (root / f"{name}.md").write_text(f"{_HEAD}# Chapter {number}\n{fences}", encoding="utf-8")
    files = "".join(f"  - file: {name}\n" for name in names)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{files}")


def run_bench(
    name: str, make: Callable[[Path], None], repeat: int, say: Callable[[str], None]
) -> Bench:
    """Time every builder on fresh copies of one book, the builders by turns.

    :param make: writes the book into a folder that does not exist yet.
    :param repeat: how often everything is done.
    :param say: hears of every build as it ends.
    :raises BookError: a build failed, so its time means nothing.
    """
    seconds: Seconds = {builder: {step: [] for step in STEPS} for builder in BUILDERS}
    count = 0
    for turn in range(repeat):
        for builder in BUILDERS[turn % 3 :] + BUILDERS[: turn % 3]:
            with tempfile.TemporaryDirectory(prefix="it-bench-") as folder:
                root = Path(folder) / "book"
                make(root)
                count = _prepare(root, builder)
                for step in STEPS:
                    _edit(root, step)
                    spent = _build(root, builder, step)
                    seconds[builder][step].append(round(spent, 2))
                    say(f"{name}: {builder}, {step}: {spent:.1f} s")
    return Bench(name, count, seconds)


def copy_of(project: Project) -> Callable[[Path], None]:
    """Return what writes a copy of the book, without what was built."""

    def copy(root: Path) -> None:
        shutil.copytree(project.root, root, ignore=_NOT_COPIED)

    return copy


def as_table(bench: Bench) -> Table:
    """Return the medians of a bench, in seconds, and their ratios to this build."""
    title = f"{bench.name}: {bench.chapters} chapters, seconds (ratio to this build)"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for step in STEPS:
        table.add_column(step, justify="right")
    for builder in BUILDERS:
        cells = []
        for step in STEPS:
            middle = f"{statistics.median(bench.seconds[builder][step]):.1f}"
            ratio = "" if builder == OURS else f" ({bench.ratio(builder, step):.1f} ×)"
            cells.append(middle + ratio)
        table.add_row(builder, *cells)
    return table


def as_json(benches: Iterable[Bench]) -> dict[str, Any]:
    """Return the benches with what they were measured on."""
    torch = torch_facts()
    return {
        "date": now(),
        "cpu": cpu_name(),
        "cores": cores(),
        "torch": torch.release if torch else "",
        "sets": [
            {
                "name": bench.name,
                "chapters": bench.chapters,
                "seconds": bench.seconds,
                "ratios": {
                    builder: {step: round(bench.ratio(builder, step), 2) for step in STEPS}
                    for builder in (FORCE, CACHE)
                },
            }
            for bench in benches
        ],
    }


def show(console: Console, benches: Sequence[Bench]) -> None:
    """Write the tables."""
    for bench in benches:
        console.print(as_table(bench))


def _prepare(root: Path, builder: str) -> int:
    """Set the builder's way to execute; return how many chapters there are."""
    project = open_project(root)
    if builder != OURS:
        mode = "force" if builder == FORCE else "cache"
        execute = {**(project.config.get("execute") or {}), "execute_notebooks": mode}
        execute["timeout"] = 900
        config = {**project.config, "execute": execute}
        text = yaml.safe_dump(config, allow_unicode=True, sort_keys=False)
        (root / "_config.yml").write_text(text, encoding="utf-8")
    return len(_chapters(project))


def _chapters(project: Project) -> list[Chapter]:
    return [page for page in project.pages(project.limits()) if isinstance(page, Chapter)]


def _edit(root: Path, step: str) -> None:
    more = {
        "prose edit": "\nA sentence that was not here before.\n",
        "cell edit": "\n```{code-cell} ipython3\n2 + 2\n```\n",
    }
    if step in more:
        path = _chapters(open_project(root))[0].path
        with path.open("a", encoding="utf-8") as file:
            file.write(more[step])


def _build(root: Path, builder: str, step: str) -> float:
    if builder == OURS:
        command = [sys.executable, "-m", "insidetorch", "build", "--root", str(root)]
    else:
        command = [str(Path(sys.executable).parent / "jupyter-book"), "build", str(root)]
    begun = time.monotonic()
    done = subprocess.run(
        command,
        cwd=root,
        env=_environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    spent = time.monotonic() - begun
    if done.returncode:
        last = " ".join(done.stdout.split())[-600:]
        raise BookError(f"bench: {builder} failed at the step {step!r}: … {last}")
    return spent


def _environment(root: Path) -> Mapping[str, str]:
    """Return the environment of a build: the copy's own toolkit, and compilers' caches of its own.

    A book without a toolkit of its own gets this one.
    """
    package = Path(insidetorch.__file__).parent.parent
    home = root if (root / "insidetorch").is_dir() else package
    path = [str(root), str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "TORCHINDUCTOR_CACHE_DIR": str(root / "_build" / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(root / "_build" / "extensions"),
    }
