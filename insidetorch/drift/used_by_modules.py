"""The book's own modules that cells reach, and the options of PyTorch that they set there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from insidetorch.drift.apis import PACKAGES
from insidetorch.drift.names import dotted_name, longest
from insidetorch.drift.trees import Tree
from insidetorch.gpu.cell import parse


def reached(cells: Sequence[str], root: Path) -> dict[Path, str]:
    """Return the modules below `root` that cells import, those that these import, and their texts.

    :param cells: the sources of code cells.
    """
    found: dict[Path, str] = {}
    waiting = [path for cell in cells for path in _imported(parse(cell), root, root)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_text(encoding="utf-8")
            waiting += _imported(_tree(found[path]), root, path.parent)
    return found


def options(cells: Sequence[str], root: Path, tree: Tree) -> dict[str, list[int]]:
    """Return the options of PyTorch that cells set or ask for, also through a module of the book.

    ``settings(recompile_limit=8)`` and ``setting("recompile_limit")`` stand for
    ``torch._dynamo.config.recompile_limit`` where the helper's module names that config module and
    it has the option; two underscores stand for a dot.

    :return: the full name of each, with the numbers of the cells, from 1.
    """
    trees = [parse(cell) or ast.Module([], []) for cell in cells]
    whole = ast.Module([node for cell in trees for node in cell.body], [])
    own, homes = _configs(whole), _homes(whole, root)
    found: dict[str, set[int]] = {}
    for number, cell in enumerate(trees, start=1):
        for call in (node for node in ast.walk(cell) if isinstance(node, ast.Call)):
            parts = dotted_name(call.func) or ("",)
            words = [keyword.arg for keyword in call.keywords if keyword.arg]
            keys = (key for one in call.args if isinstance(one, ast.Dict) for key in one.keys)
            words += filter(None, map(_text, [*call.args, *keys]))
            configs = set(own if parts[-1] == "patch" else ())
            for path in homes.get(parts[0], ()) if words else ():
                configs |= _configs(_tree(path.read_text(encoding="utf-8")))
            for name in (f"{one}.{word.replace('__', '.')}" for one in configs for word in words):
                known = longest(tree, name)
                if known and known[1].kind == "value":
                    found.setdefault(known[0], set()).add(number)
    return {name: sorted(numbers) for name, numbers in sorted(found.items())}


@lru_cache(maxsize=512)
def _tree(text: str) -> ast.Module | None:
    return parse(text)


def _text(node: ast.expr | None) -> str:
    found = node.value if isinstance(node, ast.Constant) else ""
    return found if isinstance(found, str) else ""


def _configs(tree: ast.Module | None) -> frozenset[str]:
    """Return the modules called ``config`` of PyTorch that some code names."""
    tree = tree or ast.Module([], [])
    called: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                called[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                called[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    named = set(called.values())
    for node in ast.walk(tree):
        parts = dotted_name(node) if isinstance(node, ast.Attribute) else None
        if parts and parts[0] in called:
            named.add(".".join([called[parts[0]], *parts[1:]]))
    return frozenset(
        ".".join(parts[: parts.index("config") + 1])
        for parts in (name.split(".") for name in named)
        if parts[0] in PACKAGES and "config" in parts
    )


def _homes(tree: ast.AST | None, root: Path) -> dict[str, list[Path]]:
    """Return the names that a cell imports from modules of the book, with those modules."""
    found: dict[str, list[Path]] = {}
    for node in ast.walk(tree) if tree else ():
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            paths = list(_files(node, alias, root, root))
            if paths:
                found[alias.asname or alias.name.split(".")[0]] = paths
    return found


def _imported(tree: ast.AST | None, root: Path, folder: Path) -> list[Path]:
    return [
        path
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        for path in _files(node, alias, root, folder)
    ]


def _files(node: ast.AST, alias: ast.alias, root: Path, folder: Path) -> Iterator[Path]:
    """Yield the modules below `root` that one import executes, those that it goes through aside."""
    if isinstance(node, ast.Import):
        found = _file(root, alias.name.split("."))
        if found:
            yield found
        return
    assert isinstance(node, ast.ImportFrom)
    base = root
    for _ in range(node.level):
        base = folder if base is root else base.parent
    parts = (node.module or "").split(".") if node.module else []
    inner, package = _file(base, [*parts, alias.name]), _file(base, parts)
    if inner:
        yield inner
    elif package:
        yield package
        home = _table(package.read_text(encoding="utf-8")).get(alias.name)
        if package.name == "__init__.py" and home:
            path = _file(package.parent, home.split("."))
            if path:
                yield path


@lru_cache(maxsize=64)
def _table(text: str) -> Mapping[str, str]:
    """Return the entries of a package that imports its names when they are asked for."""
    dicts = (
        node for node in ast.walk(_tree(text) or ast.Module([], [])) if isinstance(node, ast.Dict)
    )
    return {
        _text(key): _text(value)
        for one in dicts
        for key, value in zip(one.keys, one.values, strict=True)
        if _text(key) and _text(value)
    }


def _file(folder: Path, parts: Sequence[str]) -> Path | None:
    if not parts:
        return None
    place = folder.joinpath(*parts)
    forms: Iterable[Path] = (place.with_suffix(".py"), place / "__init__.py")
    return next((form for form in forms if form.is_file()), None)
