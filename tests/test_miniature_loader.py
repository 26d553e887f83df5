"""The miniature loader brings, starts and binds libraries as the system's loader does."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from insidetorch.errors import BookError
from miniatures.import_torch.loader import Process, read
from miniatures.import_torch.watch import (
    DEPENDENCIES,
    LoaderLog,
    loader_log,
    name,
    replay,
    run,
    torch_folder,
)

COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the loader is GNU's")


@pytest.fixture(scope="module")
def log() -> LoaderLog:
    return loader_log()


def own(log: LoaderLog) -> set[str]:
    """Return the libraries that lie in torch's folder."""
    folder = torch_folder()
    inside = {path.name for path in [*folder.glob("*.so"), *folder.glob("lib/*.so*")]}
    return inside & set(log.files)


def asked_by_torch(log: LoaderLog) -> list[tuple[str, str]]:
    """Return the names that torch's libraries asked for, each with the library."""
    inside = own(log)
    return [pair for pair in log.answers if pair[0] in inside]


@pytest.mark.slow
def test_names_of_torch_get_the_answers_that_the_system_gave(log: LoaderLog) -> None:
    """Ten of them: the chapter compares all fifty thousand."""
    (_, answers), rng = replay(log), random.Random(0)
    asked = asked_by_torch(log)
    assert len(asked) > 50_000
    for asker, symbol in rng.sample(asked, 10):
        answer = answers[asker, symbol]
        assert log.same(answer, log.answers[asker, symbol]), (asker, symbol, answer)


@pytest.mark.slow
def test_constructors_run_in_the_order_of_the_system(log: LoaderLog) -> None:
    inside = own(log)
    mine = [one for one in replay(log)[0].initialised if one in inside]
    theirs = [one for one in log.initialised if one in inside]
    assert len(theirs) >= 8
    assert mine == theirs


@pytest.mark.slow
def test_the_scope_of_everyone_is_that_of_the_small_library(log: LoaderLog) -> None:
    every, none = replay(log)[0].everyone, replay(log, everyone=())[0].everyone
    assert DEPENDENCIES in every
    added = {log.files[one].name for one in every if one not in none}
    assert added == {log.files[one].name for one in log.everyone}


def test_depth_first_gives_other_answers(log: LoaderLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def depth_first(self: Process, name: str) -> list[str]:
        found: list[str] = []

        def visit(one: str) -> None:
            if one not in found:
                found.append(one)
                for need in self.files[one].needed:
                    visit(need)

        visit(name)
        return found

    monkeypatch.setattr(Process, "breadth_first", depth_first)
    answers = replay(log)[1]
    asked = asked_by_torch(log)
    assert any(not log.same(answers[pair], log.answers[pair]) for pair in asked)


def build(folder: Path, seed: int, libraries: int = 6) -> str:
    """Compile libraries that need each other at random and share names; return the first."""
    assert COMPILER is not None
    rng, shared = random.Random(seed), ["red", "green", "blue"]
    for i in reversed(range(libraries)):
        last = i == libraries - 1
        defined = [one for one in shared if last or rng.random() < 0.3]
        needs = [] if last else [j for j in range(i + 1, libraries) if rng.random() < 0.5]
        needs = needs or ([] if last else [libraries - 1])
        rng.shuffle(needs)
        code = "".join(f"int {one}(void) {{ return {i}; }}\n" for one in defined)
        code += "".join(f"extern int {one}(void);\n" for one in shared)
        code += f"int ask{i}(void) {{ return {' + '.join(f'{one}()' for one in shared)}; }}\n"
        (folder / f"{seed}.c").write_text(code, encoding="utf-8")
        out = f"lib{seed}x{i}.so"
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
            + [f"-Wl,-soname,{out}", str(folder / f"{seed}.c"), "-o", str(folder / out)]
            + [str(folder / f"lib{seed}x{j}.so") for j in needs],
            check=True,
        )
    return str(folder / f"lib{seed}x0.so")


@pytest.mark.needs("cc")
@pytest.mark.slow
def test_random_libraries_load_as_in_the_system(tmp_path: Path) -> None:
    roots = [build(tmp_path, seed) for seed in range(8)]
    calls = [f"ctypes.CDLL({root!r}, mode={seed % 2 * 256})" for seed, root in enumerate(roots)]
    log = loader_log("import ctypes\n" + "\n".join(calls))
    everyone = tuple(name(root) for seed, root in enumerate(roots) if seed % 2)
    process, answers = replay(log, everyone)
    ours = [one for one in log.initialised if "x" in one and one.startswith("lib")]
    assert [one for one in process.initialised if one in ours] == ours
    asked = {pair: answer for pair, answer in log.answers.items() if pair[0] in ours}
    assert len(asked) > 100
    assert any(asker.partition("x")[0] != answer.partition("x")[0] for (asker, _), answer in
               asked.items() if answer in ours)  # fmt: skip
    assert {pair: answers[pair] for pair in asked} == asked


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no library " * 10, encoding="utf-8")
    with pytest.raises(BookError, match="not an ELF file"):
        read(tmp_path / "text")


def test_a_program_that_fails_is_an_error() -> None:
    with pytest.raises(BookError, match="exit status 3"):
        run("raise SystemExit(3)")
