"""Drift loses nothing: folders, the lock, the releases it keeps; and says in a sentence why not."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from insidetorch.book.project import open_project
from insidetorch.commands import drift as cli
from insidetorch.drift import environment, hook, releases
from insidetorch.drift.book import Book
from insidetorch.drift.outcomes import Outcome
from insidetorch.drift.releases import open_release
from insidetorch.drift.report import Report, to_json
from insidetorch.drift.reread import Item, Level, Rest
from insidetorch.drift.run import Result as Ran
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts

ROOT = Path(__file__).parents[1]
CHAPTER = """---
jupytext: {text_representation: {format_name: myst}}
kernelspec: {name: python3, display_name: Python 3}
---
# A
```{code-cell}
import torch
torch.mul(2, torch.ones(2))
```
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one chapter that names `torch.mul`, as its last build left it."""
    root = tmp_path / "book"
    for name, text in {
        "_config.yml": "title: A\n", "_toc.yml": "format: jb-book\nroot: a\n", "a.md": CHAPTER,
        "requirements.txt": "torch==2.13.0\n",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    built(root)
    return root


def built(root: Path, status: str = "ok") -> None:
    facts = torch_facts()
    assert facts is not None
    entry: dict[str, Any] = {
        "doc": "a", "title": "A", "key": "k", "status": status, "records": [],
        "error": {"cell": 1, "ename": "E", "evalue": "", "claim": None} if status != "ok" else None,
    }  # fmt: skip
    ledger = {
        "built": "", "torch": facts.release, "commit": "", "python": "", "cpu": "",
        "chapters": [entry],
    }  # fmt: skip
    (root / "_build").mkdir(exist_ok=True)
    (root / "_build" / "ledger.json").write_text(json.dumps(ledger))


def command(root: Path, name: str, *words: str) -> Result:
    found = next(one for one in cli.COMMANDS if one.name == name)
    return CliRunner().invoke(found, [*words, "--root", str(root)])


def test_a_path_that_is_no_wheel_is_refused_before_anything_is_touched(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    for name in ("venv/kept.txt", "requirements.txt", "2.15.0"):
        (precious / name).parent.mkdir(parents=True, exist_ok=True)
        (precious / name).write_text("mine")
    monkeypatch.chdir(precious)
    for named in (str(precious), "../precious", ".", "2.15.0/../..", "2.15.0 --pre", "2.15", ""):
        said = command(book, "drift-run", named)
        assert (said.exit_code, said.output.count("\n")) == (3, 1), (named, said.output)
    assert (precious / "venv" / "kept.txt").read_text() == "mine"
    assert (precious / "requirements.txt").read_text() == "mine"


@pytest.mark.parametrize("version", ["../../../away", "/away", "", "2.15.0/../../away"])
def test_a_wheel_cannot_choose_a_folder_outside_the_build(
    book: Path, tmp_path: Path, version: str
) -> None:
    wheel = tmp_path / "torch-2.15.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch/version.py", f"__version__ = '{version}'\n")
    with pytest.raises(BookError, match="no release of torch"):
        Book(open_project(book)).work(environment.label(str(wheel)))


def test_releases_and_channels_have_a_folder_below_the_build(book: Path) -> None:
    made = Book(open_project(book))
    for named in ("2.15.0", "2.15.0rc3", "2.16.0.dev20261120+cpu", "newest", "nightly"):
        assert made.work(environment.label(named)).parent == book / "_build" / "drift"


def test_the_lock_is_not_written_while_a_chapter_has_failed(book: Path) -> None:
    assert command(book, "lock", "--yes").exit_code == 0
    accepted = (book / "data" / "anchors.lock").read_bytes()
    assert b"torch.mul" in accepted
    built(book, "failed")
    for words in (("--yes",), ("--check",)):
        said = command(book, "lock", *words)
        assert said.exit_code == 3 and "a failed in the last build" in said.output
    assert (book / "data" / "anchors.lock").read_bytes() == accepted


def test_a_failing_build_gives_no_advice_on_the_lock(book: Path) -> None:
    assert command(book, "lock", "--yes").exit_code == 0
    (book / "data" / "anchors.lock").write_text(
        (book / "data" / "anchors.lock").read_text().splitlines()[0] + "\n"
    )
    for status, advised in (("ok", True), ("failed", False)):
        built(book, status)
        console = Console(record=True, width=200)
        hook.say_unlocked(open_project(book), console)
        assert ("make lock" in console.export_text()) is advised


def test_a_build_does_not_ask_for_an_anchor_that_the_lock_refuses(book: Path) -> None:
    only_declared = "torch.autograd.Variable.requires_grad"
    page = book / "a.md"
    page.write_text(page.read_text().replace("torch.mul(2", f"{only_declared}, torch.mul(2"))
    built(book)
    said = command(book, "lock", "--yes").output
    assert only_declared in said and "no anchor" in said
    console = Console(record=True, width=200)
    hook.say_unlocked(open_project(book), console)
    assert console.export_text() == ""


def test_a_name_that_leads_elsewhere_when_torch_runs_is_as_the_lock_has_it(book: Path) -> None:
    other = "torch.nn.Module.__call__"  # which the class sets to another of its methods
    page = book / "a.md"
    page.write_text(page.read_text().replace("torch.mul(2", f"{other}, torch.mul(2"))
    built(book)
    assert command(book, "lock", "--yes").exit_code == 0
    assert f'"{other}"' in (book / "data" / "anchors.lock").read_text()
    assert command(book, "lock", "--check").exit_code == 0


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"<<<<<<< ours\n"])
def test_the_advice_for_a_damaged_lock_works(book: Path, damage: bytes) -> None:
    assert command(book, "lock", "--yes").exit_code == 0
    lock = book / "data" / "anchors.lock"
    good = lock.read_bytes()
    lock.write_bytes(damage + good)
    said = command(book, "drift", str(ROOT))
    assert said.exit_code == 3 and "write it again with `make lock`" in said.output
    said = command(book, "lock", "--yes")
    assert said.exit_code == 0 and "cannot be read" in said.output
    assert lock.read_bytes() == good


def test_a_newer_lock_is_not_overwritten(book: Path) -> None:
    (book / "data").mkdir(exist_ok=True)
    (book / "data" / "anchors.lock").write_text('{"schema": 99}\n')
    assert command(book, "lock", "--yes").exit_code == 3
    assert (book / "data" / "anchors.lock").read_text() == '{"schema": 99}\n'


def test_a_folder_that_cannot_be_written_gets_one_sentence(book: Path) -> None:
    assert command(book, "lock", "--yes").exit_code == 0
    (book / "_build" / "drift").write_text("in the way")  # root may write anywhere else
    facts = torch_facts()
    assert facts is not None
    said = command(book, "drift", str(facts.root.parent))
    assert said.exit_code == 3 and isinstance(said.exception, SystemExit)
    assert "cannot be written" in said.output and "_build/drift" in said.output


def test_an_archive_with_a_damaged_member_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "torch-2.99.0.zip"
    code = "def a(): ...\n" * 50

    def pack() -> Path:
        with zipfile.ZipFile(kept, "w") as archive:
            archive.writestr("torch/version.py", "__version__ = '2.99.0'\n")
            archive.writestr("torch/a.py", code)
        return kept

    pack()
    data = bytearray(kept.read_bytes())
    at = data.index(b"def a()")
    data[at : at + 4] = b"xxxx"
    kept.write_bytes(data)
    with pytest.raises(BookError, match=r"a\.py of torch 2\.99\.0 cannot be read from .*2\.99\.0"):
        open_release(str(kept), tmp_path).text("torch/a.py")
    monkeypatch.setattr(releases, "fetch", lambda named, cache: pack())
    assert open_release("2.99.0", tmp_path).text("torch/a.py") == code


@pytest.mark.parametrize(
    ("given", "lanes"),
    [
        ("", ["newest", "candidate", "nightly"]), ("2.15.0", ["2.15.0"]),
        ("2.16.0rc1", ["2.16.0rc1"]), ("nightly", ["nightly"]), ("../..", None),
        ("2.15.0\nx=y", None), ('2.15.0"]', None),
        ("$(id)", None), ("2.15.0 x", None), ("/tmp/x", None),
    ],
)  # fmt: skip
def test_the_workflow_takes_a_release_and_nothing_else(
    tmp_path: Path, given: str, lanes: list[str] | None
) -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/drift.yml").read_text())["jobs"]["lanes"]
    out = tmp_path / "out"
    out.touch()
    done = subprocess.run(
        ["bash", "-e", "-c", job["steps"][0]["run"]],
        env={**os.environ, "RELEASE": given, "GITHUB_OUTPUT": str(out)},
        capture_output=True,
    )
    if lanes is None:
        assert done.returncode and not out.read_text()
    else:
        (line,) = out.read_text().splitlines()
        assert json.loads(line.removeprefix("releases=")) == lanes


@pytest.mark.parametrize(
    ("levels", "outcomes", "code", "passes"),
    [
        ((Level.SHOWN, Level.REST), (), 1, True),
        ((Level.REST, Level.COUNTED), ("output",), 1, True),
        ((Level.REST, Level.COUNTED), (), 0, True),
        ((Level.GONE,), (), 2, False),
        ((Level.COUNTED,), ("failed",), 2, False),
    ],
)
def test_the_nightly_gate_is_red_for_what_is_broken_alone(
    book: Path, levels: tuple[Level, ...], outcomes: tuple[str, ...], code: int, passes: bool
) -> None:
    rows = tuple(
        Item(level, "gone", f"torch.f{level}", "torch/a.py", "", (), (), (), (), (Rest("a"),))
        for level in levels
    )
    told = tuple(Outcome(kind, "a", 1, "It holds.") for kind in outcomes)
    ran = Ran("2.15.0", "", "2.13.0", "", "", "", {"a": ()}, told)
    path = book / "static.json"
    path.write_text(json.dumps(to_json(Report("2.15.0", "2.13.0", rows, ran=ran))))
    said = command(book, "drift-report", str(path), "--markdown", str(book / "drift.md"))
    assert said.exit_code == code, said.output
    job = yaml.safe_load((ROOT / ".github/workflows/drift.yml").read_text())["jobs"]["report"]
    gate = job["steps"][-1]["run"].strip().splitlines()[-1].partition(" || ")[2]
    done = subprocess.run(["bash", "-e", "-c", f"(exit {code}) || {gate}"])
    assert (done.returncode == 0) is passes
    assert "torch 2.15.0: " in (book / "drift.md").read_text()
