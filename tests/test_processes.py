"""Child processes import the book's packages, end in time, and fail in a sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from insidetorch.errors import BookError
from insidetorch.processes import HOME, environment, last_line, python_path, run


def test_folders_come_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/given", "/first", ""]))
    assert python_path("/first", "") == os.pathsep.join(["/first", str(HOME), "/given"])
    monkeypatch.delenv("PYTHONPATH")
    assert python_path() == str(HOME)
    assert environment(MORE="1")["MORE"] == "1"


def test_a_child_finds_the_book_and_what_it_is_told(tmp_path: Path) -> None:
    code = "import insidetorch, sys; print(insidetorch.__file__, sys.stdin.read())"
    done = run([sys.executable, "-c", code], cwd=tmp_path, input="told")
    assert done.stdout.split() == [str(HOME / "insidetorch" / "__init__.py"), "told"], done.stderr


def test_what_does_not_end_or_start_is_said() -> None:
    with pytest.raises(BookError, match=r"did not end within 0\.2 s"):
        run(["sleep", "600"], seconds=0.2)
    with pytest.raises(BookError, match=r"no-such-program cannot be started \(No such file"):
        run(["no-such-program"])
    assert run([sys.executable, "-c", "raise SystemExit(3)"]).returncode == 3
    assert last_line("one\ntwo\n\n") == "two" and last_line("") == "no reason given"


def test_only_a_command_does_without_a_module() -> None:
    """Who imports the build's parts loses none of theirs."""
    code = "import insidetorch.commands, sys; print(sys.modules.get('rfc3987_syntax', 'free'))"
    assert run([sys.executable, "-c", code]).stdout == "free\n"
    code = """import atexit, runpy, sys
atexit.register(lambda: print(sys.modules['rfc3987_syntax']))
sys.argv[1:] = ['-h']
runpy.run_module('insidetorch', run_name='__main__')"""
    assert run([sys.executable, "-c", code]).stdout.splitlines()[-1] == "None"
