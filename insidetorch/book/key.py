"""What a chapter's outputs depend on, as one hash: the same key, the same outputs.

Prose is not in it, nor are the modules that build and render the book. `display.css` is not in it
either: the site strips the style block from the outputs and links the sheet, so that a change of
looks executes nothing (a downloaded notebook keeps the looks of the day it was executed).
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import to_builtins

import insidetorch
from insidetorch.book.project import Chapter, Project
from insidetorch.claims import read_verdicts
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts

_TAGS_THAT_EXECUTE = frozenset({"raises-exception"})
_MODULE_TARGET = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(?::[\w.]+)?")
_FORMAT = 1


@dataclass(frozen=True)
class Ingredients:
    """All that a chapter's outputs depend on.

    :param cells: source and executing tags of each code cell, in order.
    :param torch: release of torch, with its local part.
    :param commit: commit of pytorch/pytorch it was built from.
    :param python: version of Python.
    :param pins: hash of the files that pin the other packages.
    :param toolkit: hash of the modules a cell can call.
    :param modules: module file of the book → hash, for those the cells import or show.
    :param verdicts: id → entry of ``verdicts.yml``, for those the cells name.
    :param recordings: recorded file → hash, for those of this chapter.
    :param checkout: folder of a PyTorch checkout that excerpts are taken from, or empty.
    """

    cells: tuple[tuple[str, tuple[str, ...]], ...]
    torch: str
    commit: str
    python: str
    pins: str
    toolkit: str
    modules: Mapping[str, str]
    verdicts: Mapping[str, Any]
    recordings: Mapping[str, str]
    checkout: str = ""
    format: int = _FORMAT


def key(ingredients: Ingredients) -> str:
    """Return the cache key: 32 hexadecimal digits."""
    text = json.dumps(asdict(ingredients), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def ingredients(chapter: Chapter, project: Project) -> Ingredients:
    """Gather what the outputs of `chapter` depend on.

    :raises BookError: torch is not installed, or ``verdicts.yml`` cannot be read.
    """
    torch = torch_facts()
    if torch is None:
        raise BookError(
            "torch is not installed in this Python; run `make book`, which installs it."
        )
    sources = [cell["source"] for cell in chapter.code_cells]
    trees = [tree for source in sources if (tree := _parse(source)) is not None]
    return Ingredients(
        cells=tuple(
            (
                cell["source"],
                tuple(sorted(_TAGS_THAT_EXECUTE.intersection(cell["metadata"].get("tags") or ()))),
            )
            for cell in chapter.code_cells
        ),
        torch=torch.release,
        commit=torch.commit,
        python=platform.python_version(),
        pins=hash_files(project.root / name for name in ("requirements.txt", "constraints.txt")),
        toolkit=toolkit_hash(),
        modules={
            path.relative_to(project.root).as_posix(): hash_files([path])
            for path in local_modules(trees, (project.root, chapter.path.parent))
            if path.is_relative_to(project.root)
        },
        verdicts=_named_verdicts(trees, project.root / "book" / "verdicts.yml"),
        recordings={
            path.relative_to(project.root).as_posix(): hash_files([path])
            for path in sorted((project.root / "recordings" / chapter.path.stem).rglob("*"))
            if path.is_file()
        },
        checkout=os.environ.get("PYTORCH_SRC", ""),
    )


def hash_files(paths: Iterable[Path]) -> str:
    """Return one hash over the names and contents of files; a missing file counts as such."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b"\0missing"
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


@cache
def toolkit_hash() -> str:
    """Return the hash of the toolkit's modules that a cell can reach."""
    package = Path(insidetorch.__file__).parent
    apart = {"book", "commands", "drift", "publish", "recorder", "run", "site"}
    return hash_files(
        path
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in apart and path.name != "__main__.py"
    )


def local_modules(trees: Iterable[ast.AST], roots: Iterable[Path]) -> list[Path]:
    """Return the modules below `roots` that code imports or names in a string, and theirs in turn.

    A name in a string counts when it is a module, as in ``source("miniatures.amp.cases:Run")``.

    :param trees: parsed code.
    :param roots: folders that are on the import path.
    """
    roots = tuple(roots)
    found: dict[Path, None] = {}
    waiting = [name for tree in trees for name in _module_names(tree)]
    while waiting:
        for path in _module_files(waiting.pop(), roots):
            if path in found:
                continue
            found[path] = None
            tree = _parse(path.read_text(encoding="utf-8"))
            if tree is not None:
                package = _package(path, roots)
                waiting += _module_names(tree, package)
    return sorted(found)


def _parse(source: str) -> ast.Module | None:
    """Parse a cell; what only IPython understands (magics, shell lines) is blanked."""
    if source.lstrip().startswith("%%"):
        source = source.lstrip().partition("\n")[2]
    try:
        return ast.parse(source)
    except SyntaxError:
        pass
    plain = re.sub(r"^[ \t]*[%!?].*$", "", source, flags=re.MULTILINE)
    try:
        return ast.parse(plain)
    except SyntaxError:
        return None


def _module_names(tree: ast.AST, package: str = "") -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            target = _MODULE_TARGET.fullmatch(node.value)
            if target and "." in target[1]:
                parts = target[1].split(".")
                names += [".".join(parts[:end]) for end in range(2, len(parts) + 1)]
    return [name for name in names if name and not name.startswith("insidetorch")]


def _module_files(name: str, roots: tuple[Path, ...]) -> list[Path]:
    """Return the file of the module `name`, after the ``__init__`` files of its packages."""
    for root in roots:
        folder, files = root, []
        parts = name.split(".")
        for index, part in enumerate(parts):
            init, module = folder / part / "__init__.py", folder / f"{part}.py"
            if init.is_file():
                files.append(init)
            elif module.is_file() and index == len(parts) - 1:
                files.append(module)
            elif not (folder / part).is_dir():
                break
            folder = folder / part
        if files:
            return files
    return []


def _package(path: Path, roots: tuple[Path, ...]) -> str:
    for root in roots:
        if path.is_relative_to(root):
            return ".".join(path.relative_to(root).parent.parts)
    return ""


def _named_verdicts(trees: Iterable[ast.AST], path: Path) -> dict[str, Any]:
    strings = {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    if not strings or not path.is_file():
        return {}
    return {id: entry for id, entry in _verdicts(path).items() if id in strings}


def _verdicts(path: Path) -> dict[str, Any]:
    return _read_verdicts(path, path.stat().st_mtime_ns)


@cache
def _read_verdicts(path: Path, changed: int) -> dict[str, Any]:
    return {entry.id: to_builtins(entry) for entry in read_verdicts(path)}
