"""What this machine can show of PyTorch, and what the book loses where something is missing."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from insidetorch import facts
from insidetorch.errors import BookError
from insidetorch.processes import run
from insidetorch.publish.preflight import pinned


@dataclass(frozen=True)
class Finding:
    """One line of the examination.

    :param name: what was looked for.
    :param found: what was found; empty if it is missing.
    :param lost: what the book cannot do without it; empty where nothing is lost.
    """

    name: str
    found: str
    lost: str


def examine(root: Path) -> list[Finding]:
    """Look at this machine.

    :param root: the checkout of the book.
    :return: the findings, in the order they are shown.
    """
    return [
        _torch(root),
        _private_names(),
        Finding("Python", f"{platform.python_version()} on {platform.platform()}", ""),
        _cpu(),
        _gpu(),
        Finding("C++ compiler", _version("c++", "g++", "clang++"), "extensions built in a cell"),
        _gdb(),
        Finding("addr2line", _version("addr2line"), "the names in C++ stacks"),
        _symbols(),
        Finding("Valgrind", _version("valgrind"), "instruction counts"),
        Finding("Graphviz", _version("dot", flag="-V"), "drawn graphs, and so the build"),
        Finding("Chromium", _version(*filter(None, [facts.chromium()])), "the browser tests"),
    ]


def _torch(root: Path) -> Finding:
    torch = facts.torch_facts()
    lost = "everything: run `make book`"
    if torch is None:
        return Finding("torch", "", lost)
    pin = pinned(root)
    found = f"{torch.release}, commit {torch.commit[:12]}"
    if pin and pin != torch.public:
        found += f" (the book is pinned to {pin})"
    return Finding("torch", found, lost)


def _private_names() -> Finding:
    if facts.torch_facts() is None:
        return Finding("private names", "", "what is shown through them")
    from insidetorch import private

    gone = private.missing()
    return Finding(
        "private names",
        "" if gone else "all present in this torch",
        f"what is shown through {', '.join(gone)}",
    )


def _cpu() -> Finding:
    text = f"{facts.cpu_name()}, {facts.cores()} cores"
    if facts.torch_facts():
        import torch

        text += f", kernels for {torch.backends.cpu.get_cpu_capability()}"
    return Finding("CPU", text, "")


def _gpu() -> Finding:
    lost = "live output of CUDA cells"
    if facts.torch_facts() is None:
        return Finding("GPU", "", lost)
    import torch

    if not torch.cuda.is_available():
        return Finding("GPU", "", lost)
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Finding("GPU", f"{', '.join(names)}; CUDA {torch.version.cuda}", "")


def _gdb() -> Finding:
    lost = "stacks from a breakpoint in C++"
    version = _version("gdb")
    if not version:
        return Finding("gdb", "", lost)
    probe = _output(["gdb", "-nx", "-q", "-batch", "-ex", "run", "--args", "true"])
    refused = "exited normally" not in probe
    return Finding("gdb", "" if refused else version, f"{lost}: it may not trace here")


def _symbols() -> Finding:
    torch = facts.torch_facts()
    name, lost = "symbols in libtorch", "names of C++ functions that are not exported"
    library = torch.root / "lib" / "libtorch_cpu.so" if torch else None
    if library is None or not library.exists():
        return Finding(name, "", lost)
    found = ".symtab" in _output(["readelf", "-S", "--wide", str(library)])
    return Finding(name, "full symbol table" if found else "", lost)


def _version(*programs: str, flag: str = "--version") -> str:
    path = facts.tool(*programs) if programs else None
    if path is None:
        return ""
    lines = _output([path, flag]).strip().splitlines()
    return lines[0] if lines else path


def _output(command: list[str]) -> str:
    try:
        done = run(command, seconds=30)
    except BookError:
        return ""
    return done.stdout + done.stderr
