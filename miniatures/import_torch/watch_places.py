"""Where Python finds a package called torch, what a plugin does, and what a library refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from insidetorch import processes
from insidetorch.errors import BookError
from miniatures.import_torch.watch import fresh, together, torch_folder

_TRY = """
import json, sys
sys.path.insert(0, FOLDER)
try:
    import torch
    said = "torch is there" if hasattr(torch, "ones") else "a module without ones"
    print(json.dumps(said))
except Exception as error:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    print(json.dumps(f"{type(error).__name__}: {lines[0]}"))
"""


def _linked(target: Path, leave_out: tuple[str, ...]) -> None:
    """Make a folder of links to what is in torch's own, but for names that begin so."""
    target.mkdir()
    for entry in torch_folder().iterdir():
        if not entry.name.startswith(leave_out):
            (target / entry.name).symlink_to(entry)


def layouts() -> dict[str, tuple[list[str], str]]:
    """Try `import torch` with four things of that name first on Python's path.

    :return: for each what lies there, and what came of the import.
    """
    found: dict[str, tuple[list[str], str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for at, what in enumerate(
            (
                "an installation",
                "a checkout that was not built",
                "a folder with its __init__.py",
                "your script torch.py",
            )
        ):
            home = Path(folder) / str(at)
            home.mkdir()
            if at == 0:
                _linked(home / "torch", ())
                there = ["torch/_C….so", "torch/_C/"]
            elif at == 1:
                _linked(home / "torch", ("_C.",))
                there = ["torch/_C/"]
            elif at == 2:
                _linked(home / "torch", ("_C",))
                there = ["no torch/_C"]
            else:
                (home / "torch.py").write_text("import math\n", encoding="utf-8")
                there = ["torch.py"]
            found[what] = (there, f"FOLDER = {str(home)!r}\n" + _TRY)
        said = together(*(partial(fresh, program) for _, program in found.values()))
    return {
        what: (there, words) for (what, (there, _)), words in zip(found.items(), said, strict=True)
    }


_PLUGIN = """
import sys
{before}
def start():
    import torch
    sys.modules[__name__].seen = [hasattr(torch, name) for name in {names!r}]
    {inside}
"""
_METADATA = "Metadata-Version: 2.1\nName: tiny-backend\nVersion: 1.0\n"


def plugin(
    program: str, *, before: str = "", inside: str = "pass", names: tuple[str, ...] = (), **env: str
) -> Any:
    """Run a program in a process where a package offers a backend to `import torch`.

    :param program: what prints JSON; the package is ``tiny_backend``, its function ``start``.
    :param before: a statement that runs when the package is imported.
    :param inside: a statement that runs when PyTorch calls ``start``.
    :param names: names that ``start`` looks for in torch; the answers are ``tiny_backend.seen``.
    """
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "tiny_backend-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(_METADATA, encoding="utf-8")
        (info / "entry_points.txt").write_text(
            "[torch.backends]\ntiny = tiny_backend:start\n", encoding="utf-8"
        )
        code = _PLUGIN.format(before=before, inside=inside, names=names)
        (Path(folder) / "tiny_backend.py").write_text(code, encoding="utf-8")
        path = processes.python_path(folder)
        return fresh(program, PYTHONPATH=path, **env)


_LIBRARIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "needed": ("int answer(void) { return 42; }", ("-Wl,-soname,libneeded_at_run_time.so",)),
    "needs": ("int answer(void); int ask(void) { return answer(); }", ("needed",)),
    "asks": ("int nobody_has_this(void); int ask(void) { return nobody_has_this(); }", ()),
}


def refusals() -> dict[str, str]:
    """Compile three small libraries and return what the loader says when they are opened.

    ``needs`` needs a library that cannot be found; ``asks`` asks for a function that none has,
    opened as Python opens extensions, and lazily.

    :raises BookError: without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BookError("a C compiler is missing: install your system's package gcc.")
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for title, (code, options) in _LIBRARIES.items():
            made, written = Path(folder) / f"{title}.so", Path(folder) / f"{title}.c"
            written.write_text(code, encoding="utf-8")
            flags = [f"{folder}/{one}.so" if one in _LIBRARIES else one for one in options]
            subprocess.run(
                [compiler, "-shared", "-fPIC", "-w", str(written), *flags, "-o", str(made)],
                check=True,
            )
        for title, mode in (("needs", "RTLD_NOW"), ("asks", "RTLD_NOW"), ("asks", "RTLD_LAZY")):
            program = (
                "import ctypes, os, sys\n"
                f"try:\n    ctypes.CDLL('{folder}/{title}.so', mode=os.{mode})\n"
                "    print('opened')\nexcept OSError as error:\n    print(error)"
            )
            # Names are looked up at once only where the mode says so.
            done = processes.run([sys.executable, "-c", program])
            said[f"{title}, {mode}"] = done.stdout.strip().replace(f"{folder}/", "")
    return said


def _build(made: Path, code: str, *options: str) -> None:
    """Compile a shared library.

    :raises BookError: without a C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BookError("a C compiler is missing: install your system's package gcc.")
    written = made.with_suffix(".c")
    written.write_text(code, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-w", str(written), *options, "-o", str(made)]
    subprocess.run(command, check=True)


def searched() -> dict[str, str]:
    """Compile libraries that give their folder as RUNPATH and as RPATH, against `LD_LIBRARY_PATH`.

    :return: for each of the two whose library answered, ``its own`` or ``the variable's``.
    """
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number, home in enumerate(("own", "other")):
            (folder / home).mkdir()
            code = f"int who(void) {{ return {number}; }}"
            _build(folder / home / "libwho.so", code, "-Wl,-soname,libwho.so")
        for kind, option in (("RUNPATH", "--enable-new-dtags"), ("RPATH", "--disable-new-dtags")):
            path = f"-Wl,{option},-rpath,{folder}/own"
            code = "int who(void); int ask(void) { return who(); }"
            _build(folder / "asks.so", code, f"-L{folder}/own", "-lwho", path)
            program = f"import ctypes; print(ctypes.CDLL('{folder}/asks.so').ask())"
            variable = processes.environment(LD_LIBRARY_PATH=f"{folder}/other")
            done = processes.run([sys.executable, "-c", program], env=variable)
            found[kind] = "its own" if done.stdout.strip() == "0" else "the variable's"
    return found


_OPENER = """
#include <dlfcn.h>
int ask(void) { return dlopen("libpart.so", RTLD_NOW) != 0; }
"""


def opened_late() -> dict[str, bool]:
    """Compile a library that opens another by its bare name; say when that one is found.

    :return: what the first one gives, and whether the other is in the process → found or not.
    """
    found: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        _build(Path(folder, "libpart.so"), "int part;", "-Wl,-soname,libpart.so")
        _build(Path(folder, "gives.so"), _OPENER, "-ldl", f"-Wl,-rpath,{folder}")
        _build(Path(folder, "not.so"), _OPENER, "-ldl")
        before = f"ctypes.CDLL('{folder}/libpart.so'); "
        for title, file, first in (
            ("gives the folder", "gives", ""),
            ("gives none", "not", ""),
            ("gives none, the other is there", "not", before),
        ):
            program = f"import ctypes; {first}print(ctypes.CDLL('{folder}/{file}.so').ask())"
            done = processes.run([sys.executable, "-c", program])
            found[title] = done.stdout.strip() == "1"
    return found


_ORDER = """
import os, site, sys
own = site.getusersitepackages()
kinds = {os.environ["PYTHONPATH"]: "PYTHONPATH", own: "yours"}
for path in sys.path:
    if path in kinds or path.endswith("-packages"):
        print(kinds.get(path, "the installation's"))
"""


def path_order(*options: str) -> list[str]:
    """Return whose folders of packages are on Python's path, in order; a venv's is not asked.

    :param options: options of the interpreter.
    """
    python = Path(sys.base_prefix, "bin", "python3")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PYTHONUSERBASE": f"{folder}/user", "PYTHONNOUSERSITE": ""}
        settings |= {"PYTHONPATH": f"{folder}/first"}
        made = "import os, site; os.makedirs(site.getusersitepackages())"
        env = processes.environment() | settings
        processes.run([python, "-c", made], env=env)
        done = processes.run([python, *options, "-c", _ORDER], env=env)
    return list(dict.fromkeys(done.stdout.split("\n")[:-1]))
