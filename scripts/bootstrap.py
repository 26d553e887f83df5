"""Make this checkout ready: a virtual environment with the exact pins, and the system's tools.

Standard library only, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TOOLS = {  # program: (Debian package, Homebrew formula, what for)
    "dot": ("graphviz", "graphviz", "the book's graphs are drawn with it"),
    "addr2line": ("binutils", "binutils", "names of C++ frames are read with it"),
}
LINUX_TOOLS = {  # chapters fail without them; macOS has its own compiler, and no such debugger
    "g++": ("g++", "", "chapters compile small programs, and PyTorch compiles with it"),
    "gdb": ("gdb", "", "stacks are read at breakpoints in C++"),
    "valgrind": ("valgrind", "", "instructions are counted with it"),
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("requirements", help="requirements file to install, e.g. requirements.txt")
    parser.add_argument("--browser", action="store_true", help="a Chromium is needed too")
    options = parser.parse_args()
    if sys.version_info < (3, 11):
        stop(
            f"Python 3.11 or newer is needed and this is {sys.version.split()[0]}; "
            "run make with PYTHON=python3.12, say."
        )
    if re.search(r"[\s'\"]", str(ROOT)):
        stop(
            f"The path {ROOT} holds a space or a quote, and torch.compile and torch.utils."
            "cpp_extension give paths to the compiler unquoted; move this folder elsewhere."
        )
    make_environment(ROOT / options.requirements)
    tools = {**TOOLS, **(LINUX_TOOLS if sys.platform == "linux" else {})}
    wanted = [tool for tool in tools if shutil.which(tool) is None]
    for tool in wanted:
        step(f"{tool} is missing: {tools[tool][2]}")
    packages = [tools[tool][0] for tool in wanted]
    if options.browser and not any(map(shutil.which, BROWSERS)):
        packages.append("chromium")
    if packages:
        install_system(packages, [tools[tool][1] for tool in wanted])
    if shutil.which("npm") is None:
        step("npm is missing; the book builds without, and its site has no viewer of traces")


def make_environment(requirements: Path) -> None:
    """Create .venv and install the pins, unless what is there was made from the same files."""
    files = [requirements, ROOT / "requirements.txt", ROOT / "constraints.txt"]
    files.append(ROOT / "pyproject.toml")
    parts = [path.read_bytes() for path in files] + [sys.version.encode(), str(ROOT).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    stamp = VENV / f".ready-{requirements.stem}"
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    if not usable(PYTHON):
        step("making .venv")
        shutil.rmtree(VENV, ignore_errors=True)
        if subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False).returncode:
            package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
            shutil.rmtree(VENV, ignore_errors=True)
            install_system([package], [])
            run([sys.executable, "-m", "venv", str(VENV)], "could not make .venv")
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    step(f"installing {requirements.name} (the first time takes minutes)")
    begun = time.monotonic()
    run([*pip, "-r", str(requirements)], f"pip could not install {requirements.name}")
    run(
        [*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
        "pip could not install the book's own package",
    )
    ascii_paths(VENV)
    stamp.write_text(digest)
    step(f"environment ready after {time.monotonic() - begun:.0f} s")


def ascii_paths(environment: Path) -> None:
    """Write the folders that Python adds at its start in ASCII: under LC_ALL=C it reads no more."""
    for file in environment.glob("lib/python*/site-packages/_insidetorch.pth"):
        text = file.read_text(encoding="utf-8")
        if not text.isascii():
            file.write_text(f"import sys; sys.path += {text.splitlines()!a}\n")


def usable(python: Path) -> bool:
    """Tell whether this interpreter starts and has pip."""
    if not python.exists():
        return False
    probe = subprocess.run([str(python), "-c", "import pip"], capture_output=True, check=False)
    return probe.returncode == 0


def install_system(packages: list[str], formulas: list[str]) -> None:
    """Install system packages where that is allowed; else stop with what to install."""
    admin = [] if os.geteuid() == 0 else ["sudo", "-n"]
    allowed = shutil.which("apt-get") and (
        not admin
        or (
            shutil.which("sudo")
            and not subprocess.run(
                ["sudo", "-n", "true"], capture_output=True, check=False
            ).returncode
        )
    )
    if not allowed:
        how = f"sudo apt-get install {' '.join(packages)}"
        if sys.platform == "darwin":
            casks = ["--cask chromium"] if "chromium" in packages else []
            how = " && ".join(f"brew install {name}" for name in [*formulas, *casks])
        stop(
            f"Missing on this machine: {', '.join(packages)}; install with `{how}`, then try again."
        )
    step(f"installing {', '.join(packages)} with apt-get")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = [*admin, "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    subprocess.run([*get, "update"], env=quiet, stdout=subprocess.DEVNULL, check=False)
    done = subprocess.run(
        [*get, "install", "-y", "--no-install-recommends", *packages],
        env=quiet, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        stop(f"apt-get could not install {', '.join(packages)} ({last}); install them by hand.")


def run(command: list[str], complaint: str) -> None:
    """Run a command; stop with the complaint and the command's last line if it fails."""
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        lines = errors or done.stderr.strip().splitlines() or ["no message"]
        stop(f"{complaint}: {lines[-1]}")


def step(text: str) -> None:
    print(f"setup: {text}", flush=True)


def stop(sentence: str) -> None:
    sys.exit(f"setup: {sentence}")


if __name__ == "__main__":
    main()
