"""A new release becomes a pull request: the workflow's scripts, with a stand-in for the host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from test_drift_outcomes import claimed, printed, raised
from test_drift_safe import built

from insidetorch.book.cache import Cache
from insidetorch.commands import drift as cli
from insidetorch.drift.outcomes import chapter_run
from insidetorch.drift.run import BookRun
from insidetorch.facts import torch_facts

ROOT = Path(__file__).parents[1]
JOBS = yaml.safe_load((ROOT / ".github/workflows/drift.yml").read_text())["jobs"]
HOST = """#!/usr/bin/env python3
import json, pathlib, sys
said = pathlib.Path(__file__).parent.parent / "said.jsonl"
words = sys.argv[1:]
body = words[words.index("--body-file") + 1] if "--body-file" in words else ""
text = pathlib.Path(body).read_text() if body else ""
with said.open("a") as file:
    file.write(json.dumps([words, text]) + "\\n")
if words[:2] == ["pr", "list"]:
    found = pathlib.Path(__file__).parent.parent / "open"
    print(found.read_text() if found.exists() else "" if "number" in words[-1] else "0")
elif words[0] == "api":
    print("torch==2.13.0")
"""
PYTHON = """#!/bin/sh
echo "torch (2.99.0)"
"""
CHAPTER = """---
jupytext: {text_representation: {format_name: myst}}
kernelspec: {name: python3, display_name: Python 3}
---
# A

## A product

`torch.nn.functional.relu` is called with `inplace=True`.

```{code-cell}
import torch
torch.nn.functional.relu(torch.ones(2), True)
```
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with stand-ins for the host's program and for the index, on the PATH."""
    folder = tmp_path / "host" / "bin"
    folder.mkdir(parents=True)
    for name, text in (("gh", HOST), ("python3", PYTHON.replace("python3", "sh"))):
        (folder / name).write_text(text.replace("/usr/bin/env python3", sys.executable))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    return folder.parent


def said(host: Path) -> list[tuple[list[str], str]]:
    path = host / "said.jsonl"
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one chapter in a clone of a host's repository, as its last build left it."""
    root, origin = tmp_path / "book", tmp_path / "origin.git"
    subprocess.run(["git", "init", "-q", "--bare", str(origin)], check=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    git(root, "remote", "add", "origin", str(origin))
    for name, text in {
        "_config.yml": "title: A\n", "_toc.yml": "format: jb-book\nroot: a\n", "a.md": CHAPTER,
        "requirements.txt": 'torch==2.13.0\ntriton==3.7.1; sys_platform == "linux"\nnumpy==2\n',
        ".gitignore": "_build\nlanes\n.venv\nbody.md\ndrift.*\n",
    }.items():  # fmt: skip
        (root / name).write_text(text)
    (root / "scripts").symlink_to(ROOT / "scripts")
    (root / ".venv" / "bin").mkdir(parents=True)
    python = root / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    built(root)
    assert CliRunner().invoke(cli.lock, ["--yes", "--root", str(root)]).exit_code == 0
    git(root, "add", "-A")
    git(root, "commit", "-qm", "The book")
    git(root, "push", "-q", "origin", "main")
    return root


def notebook(*outputs: dict[str, Any]) -> dict[str, Any]:
    cell = {"cell_type": "code", "source": "cell", "metadata": {}, "outputs": list(outputs)}
    return {"cells": [cell], "metadata": {"insidetorch": {"key": "k"}}}


def lanes(book: Path, ran: dict[str, Any], wheel: Path) -> None:
    """Leave what the jobs of the workflow hand over: a comparison and a run of the release."""
    Cache(book / "_build" / "cache" / "executed").store("a", "k", notebook(claimed("It holds.")))
    done = CliRunner().invoke(cli.drift, [str(wheel), "--root", str(book)])
    assert done.exit_code <= 2, done.output
    made = book / "lanes" / "drift-newest-static" / "2.99.0" / "static.json"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text((book / "_build" / "drift" / "2.99.0" / "static.json").read_text())
    chapters = (chapter_run("a", "A", ran),)
    run = BookRun("2.99.0+cu132", "c", "3.11", "a", "2026-11-22", chapters, (), "3.9.0")
    made = book / "lanes" / "drift-newest-executed-0" / "run-1-of-1.json"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(json.dumps({"schema": 1, **asdict(replace(run))}))


def released(folder: Path, old: str = "", new: str = "") -> Path:
    """Return a folder with what the chapter names of the installed torch, as 2.99.0 and changed."""
    facts = torch_facts()
    assert facts is not None
    for name in ("__init__.py", "nn/__init__.py", "nn/functional.py"):
        target = folder / "torch" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (facts.root / name).read_text()
        assert not old or name != "nn/functional.py" or old in text
        target.write_text(text.replace(old, new, 1) if old else text)
    for name in ("_C/__init__.pyi", "_C/_VariableFunctions.pyi"):
        target = folder / "torch" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((facts.root / name).read_text())
    for path in (facts.root.parent / "torchgen/packaged").rglob("*.yaml"):
        target = folder / path.relative_to(facts.root.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text())
    (folder / "torch" / "version.py").write_text("__version__ = '2.99.0'\n")
    return folder


def step(job: str, name: str, book: Path) -> subprocess.CompletedProcess[str]:
    (script,) = [s["run"] for s in JOBS[job]["steps"] if s.get("name") == name]
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "GITHUB_OUTPUT": os.devnull,
        "GITHUB_STEP_SUMMARY": os.devnull,
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=book, env=environment, capture_output=True, text=True
    )


RELU = "def relu(input: Tensor, inplace: bool = False) -> Tensor:"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("new", "ran", "verdict"),
    [
        ("", [claimed("It holds.")], "stands"),
        (RELU.replace("inplace: bool", "*, inplace: bool"), [claimed("It holds.")], "reread"),
        ("", [claimed("It holds.", held=False)], "broken"),
        ("", [printed("x"), raised("KeyError")], "broken"),
        (RELU.replace("relu", "rectify"), [claimed("It holds.")], "broken"),
    ],
)
def test_a_release_is_proposed_with_its_pins_its_report_and_its_label(
    book: Path, host: Path, tmp_path: Path, new: str, ran: list[dict[str, Any]], verdict: str
) -> None:
    there = released(tmp_path / "site", RELU if new else "", new)
    lanes(book, notebook(*ran), there)
    merged = step("report", "Merge the lanes", book)
    assert merged.returncode == 0, merged.stderr
    done = step("report", "Propose the newest release", book)
    assert done.returncode == 0, done.stdout + done.stderr
    branch = git(book, "ls-remote", "--heads", "origin", "torch-2.99.0")
    assert branch
    pins = git(book, "show", "origin/torch-2.99.0:requirements.txt")
    assert pins == 'torch==2.99.0\ntriton==3.9.0; sys_platform == "linux"\nnumpy==2\n'
    kept = json.loads(git(book, "show", "origin/torch-2.99.0:data/drift/runs/2.99.0.json"))
    assert kept["torch"] == "2.99.0+cu132"
    words, body = said(host)[-1]
    assert words[:2] == ["pr", "create"]
    assert words[words.index("--label") + 1] == verdict
    assert words[words.index("--title") + 1] == f"PyTorch 2.99.0: {verdict}"
    assert f"- torch 2.99.0: {verdict}" in body
    if verdict == "broken" and not new:
        assert body.index("It holds.") < body.index("places to reread")
    if verdict == "reread":
        assert "parameter passed otherwise" in body and "```diff" in body
        assert "`torch.nn.functional.relu` is called with `inplace=True`." in body

    # The next week finds the request open and renews it; a merged one is not said again.
    git(book, "switch", "-q", "main")
    (host / "open").write_text("7")
    again = step("report", "Propose the newest release", book)
    assert again.returncode == 0, again.stderr
    words = said(host)[-1][0]
    assert words[:3] == ["pr", "edit", "7"]
    assert verdict not in words[words.index("--remove-label") + 1].split(",")
    count = len(said(host))
    git(book, "switch", "-q", "torch-2.99.0")
    merged = step("report", "Propose the newest release", book)
    assert merged.returncode == 0 and "nothing is proposed" in merged.stdout
    assert [one[0][:1] for one in said(host)[count:]] == [["auth"]]


@pytest.mark.parametrize(
    ("nightly", "proposed", "lanes"),
    [
        ("true", "0", ["newest"]), ("true", "1", []),
        ("false", "1", ["newest", "candidate", "nightly"]),
    ],
)  # fmt: skip
def test_the_night_after_a_release_looks_at_it_once(
    host: Path, tmp_path: Path, nightly: str, proposed: str, lanes: list[str]
) -> None:
    (host / "open").write_text(proposed)
    out = tmp_path / "out"
    script = JOBS["lanes"]["steps"][0]["run"]
    environment = {
        **os.environ, "RELEASE": "", "NIGHTLY": nightly, "GITHUB_OUTPUT": str(out),
        "GH_REPO": "a/b",
    }  # fmt: skip
    done = subprocess.run(["bash", "-e", "-c", script], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text().removeprefix("releases=")) == lanes


@pytest.mark.parametrize("words", [("nightly", "0"), ("2.99.0; x", "1"), ("2.99.0", "3")])
def test_only_a_stable_release_with_a_verdict_is_proposed(
    book: Path, host: Path, words: tuple[str, str]
) -> None:
    script = ROOT / "scripts" / "propose.sh"
    done = subprocess.run(
        [str(script), *words, "body.md"], cwd=book, capture_output=True, text=True
    )
    assert done.returncode == 1 and "nothing is proposed" in done.stderr
    assert git(book, "branch", "--list").split() == ["*", "main"]
