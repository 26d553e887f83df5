"""Tests of the appendix's compiler: what it runs, shows and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from insidetorch.errors import BookError
from miniatures.cpp_for_readers import programs as small_cpp
from miniatures.cpp_for_readers.programs import WITH_TORCH, build, builds, functions

HELLO = '#include <cstdio>\nint main() { std::puts("a < b"); }'


def test_a_program_is_compiled_run_and_shown() -> None:
    run = build(HELLO)
    assert run.ok
    assert run.lines == ["a < b"]
    shown = run.shown()
    assert "main.cpp" in shown.text
    assert shown.text.endswith("$ ./main\na < b")
    assert "a &lt; b" in shown.html
    assert "a < b" not in shown.html
    assert run.shown(output=False).text.endswith(HELLO)
    assert run.shown(files=False).text.startswith("$ g++")


def test_nothing_runs_after_a_failure_and_the_error_is_what_is_shown() -> None:
    run = build("int main() { return missing; }")
    assert not run.ok
    assert [step.command for step in run.steps] == [small_cpp.PROGRAM[0]]
    assert len(run.lines) == 1
    assert "error: ‘missing’ was not declared" in run.lines[0]


def test_of_many_errors_the_first_are_shown() -> None:
    run = build("int main() { a; b; c; d; e; }")
    assert len(run.lines) == small_cpp._SHOWN


def test_several_files_are_linked() -> None:
    files = {"a.cpp": "int a() { return 3; }", "main.cpp": "int a(); int main() { return a(); }"}
    run = build(files, "g++ a.cpp main.cpp -o main", "./main")
    assert [step.status for step in run.steps] == [0, 3]
    apart = build(files, "g++ main.cpp -o main")
    assert "undefined reference to `a()'" in apart.lines[0]


def test_flags_reach_the_compiler() -> None:
    text = "int x = VALUE;"
    assert builds(text, "-DVALUE=1 + 1").status == 0
    assert builds(text).status != 0


def test_the_installed_torch_is_found_and_its_place_is_not_shown() -> None:
    run = build("#include <c10/core/GradMode.h>\nint main() { return nonsense; }", *WITH_TORCH)
    assert "‘nonsense’ was not declared" in run.lines[0]
    lines = build({}, "ls $TORCH/include/c10/core/GradMode.h").lines
    assert lines == ["$TORCH/include/c10/core/GradMode.h"]


def test_functions_of_a_listing() -> None:
    lines = ["0000 T a::f(int)", "      U g()", "0010 t h()", "0020 B data", "0030 W w<int>()"]
    assert functions(lines) == {"a::f(int)", "h()", "w<int>()"}


def test_a_missing_compiler_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BookError, match=r"g\+\+ is not on this machine: install"):
        build(HELLO)


@pytest.mark.slow
def test_a_program_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_cpp, "SECONDS", 5)
    with pytest.raises(BookError, match="did not end within 5 s"):
        build("int main() { for (volatile int i = 0;;) i = i; }")
