"""Small C++ programs for the appendix: compiled and run with g++ while the page is executed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from insidetorch.display import Display, escape
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.show.listings import listing

PROGRAM = ("g++ -std=c++17 main.cpp -o main", "./main")
"""The commands for a program of one file."""
WITH_TORCH = (
    "g++ -std=c++20 main.cpp -I$TORCH/include -L$TORCH/lib -lc10 -Wl,-rpath,$TORCH/lib -o main",
    "./main",
)
"""The same with the headers and the base library of the installed torch, at ``$TORCH``."""
SECONDS = 600
"""A command that takes longer is stopped."""

_TELLING = re.compile(r"error: |undefined reference")
_SHOWN = 3


@dataclass(frozen=True)
class Step:
    """One command and what came of it.

    :param command: as it was given, with ``$TORCH``.
    :param status: its exit status.
    :param lines: what it wrote, both streams.
    """

    command: str
    status: int
    lines: tuple[str, ...]

    @property
    def telling(self) -> tuple[str, ...]:
        """What a reader needs of it: all it wrote, or of a failure the first errors."""
        if not self.status:
            return self.lines
        return tuple(line for line in self.lines if _TELLING.search(line))[:_SHOWN] or self.lines


@dataclass(frozen=True)
class Session:
    """Files, and the commands that were run on them up to the first that failed."""

    files: Mapping[str, str]
    steps: tuple[Step, ...]

    @property
    def ok(self) -> bool:
        """Whether every command succeeded."""
        return not any(step.status for step in self.steps)

    @property
    def lines(self) -> list[str]:
        """What the last command wrote, or of a failure the telling lines."""
        return list(self.steps[-1].telling)

    def shown(self, *, files: bool = True, output: bool = True) -> Display:
        """Return the files as listings, and the commands with what they wrote."""
        listings = [(name, text.strip("\n")) for name, text in self.files.items() if files]
        said = [line for step in self.steps for line in (f"$ {step.command}", *step.telling)]
        html = "".join(
            listing(text, name, note="our own", first=1, width=0).html for name, text in listings
        )
        text = "\n\n".join(f"{name}\n{text}" for name, text in listings)
        if output:
            html += (
                '<div class="it"><pre class="it-tree" tabindex="0" role="group" '
                f'aria-label="Commands and their output">{escape(chr(10).join(said))}</pre></div>'
            )
            text += "\n\n" + "\n".join(said)
        return Display(html, text.strip())


def build(files: str | Mapping[str, str], *commands: str) -> Session:
    """Write files into an empty folder and run commands there, up to the first that fails.

    :param files: name → text; a text alone is ``main.cpp``.
    :param commands: without a shell; `PROGRAM` if there are none. ``$TORCH`` is the folder of the
        installed torch.
    :raises BookError: a program, such as g++, is not on this machine, or a command takes longer
        than `SECONDS`.
    """
    files = {"main.cpp": files} if isinstance(files, str) else dict(files)
    steps: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="it-cpp-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text.strip("\n") + "\n", encoding="utf-8")
        for command in commands or PROGRAM:
            steps.append(_run(command, Path(folder)))
            if steps[-1].status:
                break
    return Session(files, tuple(steps))


def builds(text: str, *flags: str) -> Step:
    """Compile one file to an object with some flags more, and return what came of it."""
    command = shlex.join(["g++", "-std=c++17", "-c", "main.cpp", *flags])
    return build(text, command).steps[0]


def functions(lines: Iterable[str]) -> set[str]:
    """Return the functions that ``nm -C`` lists as defined."""
    found = (re.match(r"[0-9a-f]+ [TtWV] (.*)", line) for line in lines)
    return {match[1] for match in found if match}


def _run(command: str, folder: Path) -> Step:
    torch = torch_facts()
    words = [
        word.replace("$TORCH", str(torch.root) if torch else "") for word in shlex.split(command)
    ]
    program = words[0] if words[0].startswith("./") else shutil.which(words[0])
    if program is None:
        raise BookError(
            f"This page compiles small programs, and {words[0]} is not on this machine: install a "
            "C++ compiler with its tools (on Debian and Ubuntu the packages g++ and binutils)."
        )
    try:
        done = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BookError(
            f"{command!r} did not end within {SECONDS} s; run the page on a machine less busy."
        ) from None
    said = done.stdout
    if torch:
        said = said.replace(str(torch.root), "$TORCH")
    return Step(command, done.returncode, tuple(said.splitlines()))
