"""Small questions about the syntax of cells: what is called, bound, compared, drawn."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from insidetorch import _HOME

ROOT = Path(__file__).resolve().parent.parent.parent
DRAWN = frozenset({"figure", "graph", "captioned", "replay"})
"""What draws; a function that calls one of these draws too."""
FRAMES = frozenset({"captioned", "replay"})
"""What gives a caption to the pictures inside it."""
EQUAL = frozenset({"equal", "allclose", "isclose", "array_equal", "isinstance", "issubclass"})


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """Return the calls in a piece of code."""
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def called(call: ast.Call) -> str:
    """Return the name of what is called, if it is a plain name."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def last(node: ast.AST) -> str:
    """Return a name, or the last of names with dots."""
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Return the names that a statement binds on the page, not inside a function."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node
        return
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, ast.With):
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                yield item.optional_vars.id, None
    for block in ("body", "orelse", "finalbody"):
        for inner in getattr(node, block, ()) if isinstance(node, ast.stmt) else ():
            yield from bindings(inner)


def _unpacked(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        paired = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for at, one in enumerate(target.elts):
            if paired:
                yield from _unpacked(one, value.elts[at])  # type: ignore[attr-defined]
            elif isinstance(one, ast.Name):
                yield one.id, value if compares(value) else None


def short(node: ast.AST) -> str:
    """Return code in one line that is not too long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def compares(value: ast.AST | None) -> bool:
    """Tell whether a value is, or contains, the result of a comparison."""
    if value is None:
        return False
    if isinstance(value, ast.FunctionDef):
        returns = [one.value for one in ast.walk(value) if isinstance(one, ast.Return)]
        return any(compares(one) for one in returns)
    if isinstance(value, ast.Compare):
        return True
    if isinstance(value, ast.Call) and last(value.func) in EQUAL:
        return True
    if isinstance(value, ast.IfExp):
        return compares(value.body) or compares(value.orelse)
    if isinstance(value, ast.comprehension):
        return compares(value.iter)
    return any(compares(one) for one in ast.iter_child_nodes(value))


def drawing(statements: Iterable[ast.stmt], root: Path) -> frozenset[str]:
    """Return the names that draw in a chapter: the toolkit's and miniatures' that it imports.

    :param root: where the modules are that it imports, but for the toolkit's.
    """
    return frozenset(
        alias.asname or alias.name
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if _draws(node, alias.name, root)
    )


def _draws(node: ast.ImportFrom, name: str, root: Path) -> bool:
    """Tell whether what is imported draws."""
    module = node.module or ""
    if module == "insidetorch":
        if name in DRAWN or name not in _HOME:
            return name in DRAWN
        module = f"insidetorch.{_HOME[name]}"
    path = Path(*module.split(".")).with_suffix(".py") if module else Path()
    return name in _module_draws(ROOT / path if module.startswith("insidetorch") else root / path)


@cache
def _module_draws(path: Path) -> frozenset[str]:
    """Return the functions of a module that call what draws, be it over others of the module."""
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    by_name = {
        one.name: {called(call) for call in calls(one)}
        for one in body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }
    drawn = {
        alias.asname or alias.name
        for one in body
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("insidetorch")
        for alias in one.names
        if alias.name in DRAWN
    }
    before = set[str]()
    while drawn != before:
        before = set(drawn)
        drawn |= {name for name, those in by_name.items() if those & before}
    return frozenset(drawn & set(by_name)) - {"source", "listing"}
