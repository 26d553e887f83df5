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
    """Return the name of what is called: a plain one, or one in what has a plain name."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name):
        return f"{owner.id}.{last(call.func)}"
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
    :return: names, those of a module that is imported as a whole with it, as in ``draw.grid``.
    """
    nodes = (node for statement in statements for node in ast.walk(statement))
    return frozenset(_drawn_by(nodes, root))


def _drawn_by(nodes: Iterable[ast.AST], root: Path) -> set[str]:
    """Return what imports bring that draws."""
    found = set[str]()
    for node in nodes:
        for alias in node.names if isinstance(node, ast.ImportFrom) and node.module else ():
            local = alias.asname or alias.name
            if _draws(node.module, alias.name, root):
                found.add(local)
            inside = _module_draws(_file(f"{node.module}.{alias.name}", root), root)
            found |= {f"{local}.{name}" for name in inside}
    return found


def _draws(module: str, name: str, root: Path) -> bool:
    if module.split(".")[0] == "insidetorch" and name in DRAWN:
        return True
    home = f"insidetorch.{_HOME.get(name, '')}" if module == "insidetorch" else module
    return name in _module_draws(_file(home, root), root)


def _file(module: str, root: Path) -> Path:
    base = ROOT if module.split(".")[0] == "insidetorch" else root
    return base.joinpath(*module.split(".")).with_suffix(".py")


@cache
def _module_draws(path: Path, root: Path) -> frozenset[str]:
    """Return the functions of a module that call what draws, be it over others."""
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    by_name = {
        one.name: {called(call) for call in calls(one)}
        for one in body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }
    drawn, before = _drawn_by(body, root), set[str]()
    while drawn != before:
        before = set(drawn)
        drawn |= {name for name, those in by_name.items() if those & before}
    return frozenset(drawn & by_name.keys())
