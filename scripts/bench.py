"""Time this build beside stock `jupyter-book build`: the same chapters, edits and machine.

Each builder works on copies of its own. The tables give wall seconds, and seconds of all the
processors' work, which a busy machine changes less; `_build/bench.json` holds every figure.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
OURS, FORCE, CACHE = "this build", "stock, force", "stock, cache"
STEPS = ("cold", "no change", "prose edit", "cell edit")
EDITS = {
    "prose edit": "\nA sentence that was not here before.\n",
    "cell edit": "\n```{code-cell} ipython3\n2 + 2\n```\n",
}
NOT_COPIED = shutil.ignore_patterns("_build", ".*", "__pycache__", "tests", "node_modules")
HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

"""


@dataclass(frozen=True)
class Spent:
    """What a build took, in seconds: by the clock, and of the processors' work."""

    wall: float
    work: float


Figures = dict[str, dict[str, list[Spent]]]  # builder → step → one for each repetition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="the book itself too")
    parser.add_argument(
        "--small", type=int, nargs="*", default=[12], help="sizes of books of small chapters"
    )
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument(
        "--builders", nargs="*", default=[OURS, FORCE, CACHE], choices=[OURS, FORCE, CACHE]
    )
    options = parser.parse_args()
    books: dict[str, Callable[[Path], None]] = {
        f"{count} small chapters": lambda root, count=count: generate(root, count)
        for count in options.small
    }
    if options.whole:
        books["the whole book"] = copy_book
    measured = {
        name: measure(name, make, options.builders, options.repeat) for name, make in books.items()
    }
    for name, figures in measured.items():
        print(table(name, figures))
    path = ROOT / "_build" / "bench.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(as_json(measured), indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}")


def generate(root: Path, count: int) -> None:
    """Write a book of `count` small notebooks that use torch."""
    (root / "notebooks").mkdir(parents=True)
    (root / "_config.yml").write_text(
        "title: A generated book\nauthor: insidetorch\nonly_build_toc_files: true\n",
        encoding="utf-8",
    )
    (root / "index.md").write_text("# A generated book\n\nIts chapters are all alike.\n")
    names = [f"notebooks/chapter{number:02}" for number in range(count)]
    for number, name in enumerate(names):
        cells = (
            f"import torch\n\ntorch.manual_seed({number})",
            "x = torch.randn(64, 64, requires_grad=True)\n(x @ x).sum().backward()",
            "x.grad.norm()",
            "print(x.mean().item())",
        )
        fences = "".join(f"\nA step.\n\n```{{code-cell}} ipython3\n{c}\n```\n" for c in cells)
        (root / f"{name}.md").write_text(f"{HEAD}# Chapter {number}\n{fences}", encoding="utf-8")
    files = "".join(f"  - file: {name}\n" for name in names)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{files}")


def copy_book(root: Path) -> None:
    """Write a copy of the book, without what was built."""
    shutil.copytree(ROOT, root, ignore=NOT_COPIED)


def measure(name: str, make: Callable[[Path], None], builders: list[str], repeat: int) -> Figures:
    """Measure the builders on fresh copies of one book, by turns.

    :param make: writes the book into a folder that does not exist yet.
    """
    figures: Figures = {builder: {step: [] for step in STEPS} for builder in builders}
    for turn in range(repeat):
        first = turn % len(builders)
        for builder in builders[first:] + builders[:first]:
            with tempfile.TemporaryDirectory(prefix="it-bench-") as folder:
                root = Path(folder) / "book"
                make(root)
                prepare(root, builder)
                for step in STEPS:
                    edit(root, step)
                    spent = build(root, builder, step)
                    figures[builder][step].append(spent)
                    said = f"{spent.wall:.1f} s, {spent.work:.1f} s of work"
                    print(f"{name}: {builder}, {step}: {said}", flush=True)
    return figures


def prepare(root: Path, builder: str) -> None:
    """Set how stock Jupyter Book executes."""
    if builder == OURS:
        return
    path = root / "_config.yml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    mode = "force" if builder == FORCE else "cache"
    config["execute"] = {
        **(config.get("execute") or {}), "execute_notebooks": mode, "timeout": 900,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")


def edit(root: Path, step: str) -> None:
    """Change the first chapter as the step says."""
    if step in EDITS:
        with min((root / "notebooks").glob("*.md")).open("a", encoding="utf-8") as file:
            file.write(EDITS[step])


def build(root: Path, builder: str, step: str) -> Spent:
    """Build once; a build that fails ends the bench, for its time means nothing."""
    if builder == OURS:
        command = [sys.executable, "-m", "insidetorch", "build", "--root", str(root)]
    else:
        command = [str(Path(sys.executable).parent / "jupyter-book"), "build", str(root)]
    begun, worked = time.monotonic(), _work()
    done = subprocess.run(
        command, cwd=root, env=environment(root), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    spent = Spent(round(time.monotonic() - begun, 2), round(_work() - worked, 2))
    if done.returncode:
        sys.exit(f"{builder} failed at the step {step!r}: … {' '.join(done.stdout.split())[-600:]}")
    return spent


def _work() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a build: the copy's own toolkit, and compilers' caches of its own.

    A book without a toolkit of its own gets this one.
    """
    home = root if (root / "insidetorch").is_dir() else ROOT
    path = [str(root), str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "TORCHINDUCTOR_CACHE_DIR": str(root / "_build" / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(root / "_build" / "extensions"),
    }


def ratio(figures: Figures, builder: str, step: str) -> float:
    """Return how many times longer `builder` takes than this build, by the clock, by medians."""
    theirs, ours = (
        statistics.median(spent.wall for spent in figures[one][step]) for one in (builder, OURS)
    )
    return theirs / ours


def table(name: str, figures: Figures) -> str:
    """Return the medians: wall seconds, seconds of work, the ratio to this build."""
    lines = [f"\n{name}: seconds by the clock | of work (ratio to this build)"]
    lines.append(f"{'':14}" + "".join(f"{step:>24}" for step in STEPS))
    for builder, steps in figures.items():
        cells = []
        for step, spent in steps.items():
            wall, work = (statistics.median(getattr(s, w) for s in spent) for w in ("wall", "work"))
            known = f" ({ratio(figures, builder, step):.1f} ×)" if OURS in figures else ""
            cells.append(f"{wall:.1f} | {work:.1f}{known}")
        lines.append(f"{builder:14}" + "".join(f"{cell:>24}" for cell in cells))
    return "\n".join(lines)


def as_json(measured: dict[str, Figures]) -> dict[str, object]:
    """Return all figures with what they were measured on."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "torch": metadata.version("torch"),
        "books": {
            name: {
                builder: {step: [vars(spent) for spent in done] for step, done in steps.items()}
                for builder, steps in figures.items()
            }
            for name, figures in measured.items()
        },
    }


if __name__ == "__main__":
    main()
