"""The stack of a program that gdb stopped in a C++ function."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError
from insidetorch.watch.frames import SCRIPT, Frame, label, merge, native_frame

_PYTHON_LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class NoDebugger(Exception):
    """gdb is missing or may not trace; the message is one sentence."""


def under_gdb(program: str, function: str, hit: int, timeout: float) -> tuple[Frame, ...]:
    gdb = shutil.which("gdb")
    if gdb is None:
        raise NoDebugger(
            "Stopping in a C++ function takes gdb, which is not installed: "
            "install the system package gdb."
        )
    with tempfile.TemporaryDirectory(prefix="insidetorch-") as folder:
        script, out = Path(folder, "script.py"), Path(folder, "stack.json")
        script.write_text(program, encoding="utf-8")
        asked = {
            "INSIDETORCH_BREAK": function,
            "INSIDETORCH_HIT": str(hit),
            "INSIDETORCH_STACK": str(out),
        }
        commands = str(Path(__file__).with_name("gdb_script.py"))
        try:
            done = subprocess.run(
                [gdb, "-nx", "-q", "-batch", "-x", commands, "--args", sys.executable, str(script)],
                env={**os.environ, **asked},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BookError(
                f"The program did not reach {function} within {timeout:g} s under gdb: "
                "shorten it, or give cpp_stack a longer timeout=."
            ) from None
        told = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        said = done.stdout + done.stderr
        if "frames" not in told:
            raise _why_no_frames(told, said, function, hit)
        native = [native_frame(name, library) for name, library in reversed(told["frames"])]
        return merge(native, [_dumped_frames(said, str(script), program)])


def _why_no_frames(told: dict[str, Any], said: str, function: str, hit: int) -> Exception:
    if told.get("exit"):
        lines = [line for line in said.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        reason = lines[-1] if lines else f"exit status {told['exit']}"
        return BookError(f"The program given to cpp_stack failed ({reason}): correct it.")
    if told.get("exit") == 0 and told.get("found"):
        return BookError(
            f"The program never called {function}"
            + (f" {hit} times" if hit > 1 else "")
            + ": check that it gets there."
        )
    if told.get("exit") == 0:
        return BookError(
            f"No library of the program has a function {function}: "
            "give its whole qualified name, without arguments."
        )
    refused = re.search(r".*(ptrace|Operation not permitted|not being run|Python script).*", said)
    lines = said.strip().splitlines()
    reason = refused[0].strip() if refused else (lines[-1].strip() if lines else "no reason given")
    return NoDebugger(
        f"gdb could not trace the program ({reason.rstrip('.')}): "
        "allow ptrace, in a container with --cap-add=SYS_PTRACE."
    )


def _dumped_frames(said: str, script: str, program: str) -> list[Frame]:
    """Return the Python frames that the interpreter wrote for its current thread."""
    lines = iter(said.splitlines())
    for line in lines:
        if line.startswith("Current thread"):
            break
    frames = []
    source = program.splitlines()
    for line in lines:
        found = _PYTHON_LINE.match(line)
        if found is None:
            break
        file, number, name = found[1], int(found[2]), found[3]
        ours = file == script
        code = source[number - 1].strip() if ours else ""
        where = f"{label(SCRIPT if ours else file)}:{number}"
        frames.append(Frame(name, where, "Python", code=code))
    return frames[::-1]
