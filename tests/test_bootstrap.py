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


def ready(monkeypatch: pytest.MonkeyPatch, missing: set[str]):
    """Return the script, without an environment to make, on a Linux that lacks some programs."""
    bootstrap = load()
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "requirements.txt"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(bootstrap, "make_environment", lambda path: None)
    which = bootstrap.shutil.which
    monkeypatch.setattr(
        bootstrap.shutil, "which", lambda name: None if name in missing else which(name) or name
    )
    return bootstrap


@pytest.mark.parametrize(
    "program, package",
    [("g++", "g++"), ("gdb", "gdb"), ("valgrind", "valgrind"), ("dot", "graphviz")],
)
def test_what_chapters_need_is_installed(monkeypatch, capsys, program: str, package: str) -> None:
    bootstrap = ready(monkeypatch, {program})
    installed: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "install_system", lambda packages, _: installed.append(packages))
    bootstrap.main()
    assert installed == [[package]]
    assert f"setup: {program} is missing: " in capsys.readouterr().out


def test_what_chapters_need_stops_where_it_cannot_be_installed(monkeypatch, capsys) -> None:
    bootstrap = ready(monkeypatch, {"gdb", "g++", "apt-get"})
    with pytest.raises(SystemExit) as stop:
        bootstrap.main()
    assert "Missing on this machine: g++, gdb; install with `sudo apt-get install g++ gdb`" in str(
        stop.value
    )


def test_without_npm_the_viewer_alone_is_lost(monkeypatch, capsys) -> None:
    ready(monkeypatch, {"npm"}).main()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("setup: npm is missing; the book builds without")


@pytest.mark.parametrize("name", ["a b", "it's"])
def test_a_path_that_compilers_cannot_take_is_refused(monkeypatch, name: str) -> None:
    bootstrap = ready(monkeypatch, set())
    monkeypatch.setattr(bootstrap, "ROOT", Path("/home") / name)
    with pytest.raises(SystemExit, match=r"The path /home/.* holds a space or a quote"):
        bootstrap.main()


def test_a_path_beyond_ascii_is_found_under_any_locale(tmp_path: Path) -> None:
    home = tmp_path / "bücher"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
    (packages,) = (home / "venv/lib").glob("python*/site-packages")
    (packages / "_insidetorch.pth").write_text(f"{home}\n", encoding="utf-8")
    (home / "found.py").write_text("print('found')")
    start = [home / "venv/bin/python", "-c", "import found"]
    env = {**os.environ, "LC_ALL": "C"}
    env.pop("PYTHONUTF8", None)
    done = subprocess.run(start, env=env, capture_output=True, text=True, check=False)
    assert done.returncode, "this Python needs no help any more: remove `ascii_paths`"
    load().ascii_paths(home / "venv")
    done = subprocess.run(start, env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "found\n", done.stderr
