"""Setting up: what is missing is named in one sentence, and nothing is made twice."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "bootstrap.py"


def load():
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_missing_tool_is_named_where_nothing_may_be_installed(tmp_path: Path) -> None:
    """With an empty PATH there is neither Graphviz nor a package manager."""
    call = "['install_system'](['graphviz'], ['graphviz'])"
    code = f"import runpy; runpy.run_path({str(SCRIPT)!r}){call}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and "graphviz" in lines[0] and "install" in lines[0]


def test_an_environment_made_from_the_same_files_is_kept(tmp_path: Path, monkeypatch) -> None:
    bootstrap = load()
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    ran: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "run", lambda command, complaint: ran.append(command))
    bootstrap.make_environment(tmp_path / "requirements.txt")
    assert len(ran) == 2
    bootstrap.make_environment(tmp_path / "requirements.txt")
    assert len(ran) == 2
    (tmp_path / "constraints.txt").write_text("changed")
    bootstrap.make_environment(tmp_path / "requirements.txt")
    assert len(ran) == 4


def test_a_failed_step_ends_with_one_sentence(capsys) -> None:
    bootstrap = load()
    with pytest.raises(SystemExit) as stop:
        bootstrap.run(
            [sys.executable, "-c", "import sys; sys.exit('ERROR: no such package')"],
            "pip could not install x",
        )
    assert str(stop.value) == "setup: pip could not install x: ERROR: no such package"


def test_a_missing_compiler_is_named_and_stops_nothing(monkeypatch, capsys) -> None:
    bootstrap = load()
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "requirements.txt"])
    monkeypatch.setattr(bootstrap, "make_environment", lambda path: None)
    monkeypatch.setattr(
        bootstrap.shutil, "which", lambda program: None if program == "c++" else program
    )
    bootstrap.main()
    assert capsys.readouterr().out.startswith("setup: g++ not found; the book builds without")
