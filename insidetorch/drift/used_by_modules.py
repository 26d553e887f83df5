"""The book's own modules that cells reach, and the options of PyTorch that they set there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from insidetorch.book.modules import Module, Modules, read_file
from insidetorch.book.syntax import Syntax, Target, syntax
from insidetorch.drift.apis import PACKAGES
from insidetorch.drift.names import dotted_name, longest
from insidetorch.drift.trees import Tree
from insidetorch.gpu.cell import parse


def reached(cells: Sequence[str], root: Path) -> dict[Path, str]:
    """Return the modules below `root` that cells import, those that these import, and their texts.

    :param cells: the sources of code cells.
    """
    modules = _modules(root)
    found: dict[Path, str] = {}
    waiting = [one for cell in cells for _, one in _imported(_syntax(cell), modules)]
    while waiting:
        module = waiting.pop()
        if module.path is not None and module.path not in found:
            found[module.path] = module.path.read_text(encoding="utf-8")
            waiting += [one for _, one in _imported(module.syntax, modules)]
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
    own, homes = _configs(whole), dict[str, set[Path]]()
    modules = _modules(root)
    for name, module in (one for cell in cells for one in _imported(_syntax(cell), modules)):
        if module.path is not None:
            homes.setdefault(name, set()).add(module.path)
    found: dict[str, set[int]] = {}
    for number, cell in enumerate(trees, start=1):
        for call in (node for node in ast.walk(cell) if isinstance(node, ast.Call)):
            parts = dotted_name(call.func) or ("",)
            words = [keyword.arg for keyword in call.keywords if keyword.arg]
            keys = (key for one in call.args if isinstance(one, ast.Dict) for key in one.keys)
            words += filter(None, map(_text, [*call.args, *keys]))
            configs = set(own if parts[-1] == "patch" else ())
            for path in sorted(homes.get(parts[0], ())) if words else ():
                configs |= _configs_of(path.read_text(encoding="utf-8"))
            for name in (f"{one}.{word.replace('__', '.')}" for one in configs for word in words):
                known = longest(tree, name)
                if known and known[1].kind == "value":
                    found.setdefault(known[0], set()).add(number)
    return {name: sorted(numbers) for name, numbers in sorted(found.items())}


@lru_cache(maxsize=512)
def _configs_of(text: str) -> frozenset[str]:
    return _configs(parse(text))


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


def _modules(root: Path) -> Modules:
    return Modules(root, root, "nobody", read_file, root / "insidetorch")


@lru_cache(maxsize=1024)
def _syntax(cell: str) -> Syntax:
    return syntax(ast.unparse(parse(cell) or ast.Module([], [])), "")


def _imported(read: Syntax, modules: Modules) -> Iterator[tuple[str, Module]]:
    """Yield what imports load, also those in functions: the name that is bound, and its module."""
    for piece in (read.on_import, *read.pieces.values()):
        bound = [(name, one) for name, targets in piece.uses.bound.items() for one in targets]
        loaded = [("", Target(name)) for name in (*piece.uses.loaded, *piece.uses.stars)]
        for name, target in (*bound, *loaded):
            module = modules.module(target.module)
            if module is None:
                continue
            inner = modules.module(f"{target.module}.{target.name}") if target.name else None
            homes = modules.homes(module, target.name)[0] if target.name and not inner else ()
            for one in (inner or module, *map(modules.module, homes)):
                if one is not None:
                    yield name, one
