"""What a published notebook imports, whether the toolkit's wheel has it, and what changed here."""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

Wheel = Mapping[str, str]
"""The files of a wheel; of modules the text, of others nothing."""


def code_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """Return the Python of the code cells, without lines that only IPython reads."""
    sources = (cell["source"] for cell in cells if cell["cell_type"] == "code")
    return "\n".join(re.sub(r"^(%%?[a-z]|!).*$", "", source, flags=re.M) for source in sources)


def imports(code: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each module that is imported by its whole name, with the names taken from it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, [alias.name for alias in node.names]


def file_of(module: str, files: Collection[str]) -> str | None:
    """Return the file of a module, or None if there is none; a bare folder is its own name."""
    path = module.replace(".", "/")
    found = next((name for name in (f"{path}.py", f"{path}/__init__.py") if name in files), None)
    return found or (path if any(name.startswith(f"{path}/") for name in files) else None)


def defined(code: str) -> set[str] | None:
    """Return the names that a module has at its top; None if it makes them as they are asked."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.FunctionDef(name="__getattr__"):
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
    return names


def unresolved(code: str, wheel: Wheel) -> list[str]:
    """Return what a text imports from the wheel's packages that the wheel does not have."""
    packages = {name.partition("/")[0] for name in wheel}
    lacking = []
    for module, names in imports(code):
        if module.partition(".")[0] not in packages:
            continue
        file = file_of(module, wheel)
        if file is None:
            lacking.append(module)
            continue
        has = defined(wheel.get(file, ""))
        lacking += [
            f"{module}.{name}"
            for name in names
            if has is not None and name not in has and file_of(f"{module}.{name}", wheel) is None
        ]
    return lacking


def strangers(code: str, own: Collection[str], installed: Collection[str]) -> list[str]:
    """Return the packages that a text surely imports and that nothing here brings along.

    :param own: the wheel's packages.
    :param installed: the distributions that come with the wheel.
    """
    sure = [node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)]
    heads = {name.partition(".")[0] for name, _ in imports("\n".join(map(ast.unparse, sure)))}
    homes = metadata.packages_distributions()
    return sorted(
        head
        for head in heads - set(own) - sys.stdlib_module_names
        if not any(plain(home) in installed for home in homes.get(head, ()))
    )


def plain(distribution: str) -> str:
    """Return a distribution's name as it is compared."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def brought(requirements: Iterable[str]) -> set[str]:
    """Return the distributions that pip installs for these, as far as they are installed here."""
    found: set[str] = set()
    ask = [one for one in requirements if "extra ==" not in one]
    while ask:
        name = plain(re.split(r"[\s\[;<>=!~(]", ask.pop(), maxsplit=1)[0])
        if name not in found:
            found.add(name)
            try:
                ask += [one for one in metadata.requires(name) or () if "extra ==" not in one]
            except metadata.PackageNotFoundError:
                continue
    return found


def git(root: Path, *arguments: str) -> list[str]:
    """Return the lines that git says, none where it cannot tell."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines()


def changed(root: Path) -> set[str]:
    """Return the files that differ from the commit before this one, in git or not yet in it."""
    before = git(root, "rev-parse", "--verify", "--quiet", "HEAD~1") or ["HEAD"]
    return {
        *git(root, "diff", "--name-only", "--no-renames", before[0]),
        *git(root, "ls-files", "--others", "--exclude-standard"),
    }


def chosen(docs: Collection[str], commit: str, changed: Collection[str], root: Path) -> set[str]:
    """Return two chapters that the commit draws, and all that changed or import what changed."""
    drawn = random.Random(commit).sample(sorted(docs), min(2, len(docs)))
    modules = [name for name in changed if re.fullmatch(r"miniatures/.*\.py", name)]

    def touched(doc: str) -> bool:
        text = (root / f"{doc}.md").read_text(encoding="utf-8")
        return f"{doc}.md" in changed or any(takes(text, module) for module in modules)

    return {*drawn, *filter(touched, docs)}


def takes(text: str, file: str) -> bool:
    """Tell whether a chapter imports the module of this file."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = map(re.escape, module.rpartition("."))
    return bool(re.search(rf"\b{parent}\.{name}\b|from {parent} import .*\b{name}\b", text))
