"""What a dotted Python name stands for in a release, read from its sources without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from insidetorch.drift.definitions import OPERATORS, Found, group
from insidetorch.drift.trees import Tree
from insidetorch.locate import python

_OPS = ("torch", "ops", "aten")
_OPERATOR_STUBS = frozenset(
    {"torch/_C/_VariableFunctions.pyi", "torch/_C/_nn.pyi", "torch/_C/__init__.pyi"}
)


@dataclass(frozen=True)
class Place:
    """Where a name is defined.

    :param file: path below ``site-packages``.
    :param symbol: the name in that file, "" for the module itself; of an operator, its name in
        ``native_functions.yaml``.
    :param kind: ``module``, ``class``, ``function``, ``operator`` or ``value``.
    """

    file: str
    symbol: str
    kind: str


def resolve(tree: Tree, dotted: str) -> Place | None:
    """Return where a public name is defined in `tree`, imports and re-exports followed.

    What is compiled leads to its entries in ``native_functions.yaml`` or to its stub.

    :param dotted: e.g. ``torch.autograd.backward`` or ``torch.Tensor.backward``.
    """
    parts = tuple(dotted.split("."))
    if parts[:3] == _OPS and 3 < len(parts) < 6:
        entry = ".".join(part for part in parts[3:5] if part != "default")
        return Place(OPERATORS, entry, "operator") if group(tree, OPERATORS, entry) else None
    return _resolver(tree).resolve(parts)


def longest(tree: Tree, dotted: str) -> tuple[str, Place] | None:
    """Return the longest beginning of `dotted` that names something, with its place.

    What follows is an attribute of a value, which no source tells of.
    """
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        place = resolve(tree, name)
        if place is not None:
            return name, place
    return None


def given_out(tree: Tree, dotted: str) -> str:
    """Return the file of the module that gives a name out in its ``__getattr__``, or "".

    It does where the name is written in the module, or where ``__getattr__`` looks in another
    module that has it.
    """
    module, _, name = dotted.rpartition(".")
    place = resolve(tree, module) if module else None
    text = tree.text(place.file) if place and place.kind == "module" else None
    getter = next(
        (n for n in _bindings(text or "").get("__getattr__", ()) if isinstance(n, ast.FunctionDef)),
        None,
    )
    if place is None or text is None or getter is None:
        return ""
    words = (n.value for n in ast.walk(python.parse(text)) if isinstance(n, ast.Constant))
    asked = (
        node.args[0]
        for node in ast.walk(getter)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and node.args
    )
    others = (".".join(parts) for one in asked if (parts := dotted_name(one)))
    places = (f"{prefix}{other}.{name}" for other in others for prefix in ("", f"{module}."))
    found = name in words or any(resolve(tree, one) for one in places)
    return place.file if found else ""


def found_at(tree: Tree, place: Place) -> Found | None:
    """Return the definition at a place, all overloads together."""
    return group(tree, place.file, place.symbol)


@lru_cache(maxsize=16)
def _resolver(tree: Tree) -> _Resolver:
    return _Resolver(tree)


class _Resolver:
    """Follows names through the modules of one tree, and remembers where they led."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: dict[tuple[str, ...], Place | None] = {}
        self._pending: set[tuple[object, ...]] = set()

    def resolve(self, parts: tuple[str, ...]) -> Place | None:
        """Return the place of a name that starts with a module, or None."""
        if parts in self._known:
            return self._known[parts]
        if parts in self._pending:
            return None
        self._pending.add(parts)
        end = next((n for n in range(len(parts), 0, -1) if self._module(parts[:n])), 0)
        place = self._in_module(parts[:end], parts[end:]) if end else None
        if end == len(parts) > 1:
            # A package may bind the name of one of its modules to something else.
            bound = self._in_module(parts[:-1], parts[-1:])
            place = bound if bound is not None else place
        self._pending.discard(parts)
        if place is not None or not self._pending:
            self._known[parts] = place
        return place

    def _module(self, parts: tuple[str, ...]) -> str | None:
        base = "/".join(parts)
        forms = (f"{base}/__init__.py", f"{base}.py", f"{base}/__init__.pyi", f"{base}.pyi")
        return next((form for form in forms if form in self.tree.paths), None)

    def _in_module(self, module: tuple[str, ...], rest: tuple[str, ...]) -> Place | None:
        file = self._module(module)
        if file is None:
            return None
        if not rest:
            return Place(file, "", "module")
        index = _bindings(self.tree.text(file) or "")
        for node in reversed(index.get(rest[0], ())):
            place = self._binding(node, file, module, rest)
            if place is not None:
                return place
        for star in reversed(index.get("*", ())):
            assert isinstance(star, ast.ImportFrom)
            base = _base(star, file, module)
            if (base, rest) in self._pending:
                continue
            self._pending.add((base, rest))
            place = self._in_module(base, rest)
            self._pending.discard((base, rest))
            if place is not None:
                return place
        return None

    def _binding(
        self, node: ast.stmt, file: str, module: tuple[str, ...], rest: tuple[str, ...]
    ) -> Place | None:
        name, inner = rest[0], rest[1:]
        if isinstance(node, ast.ClassDef):
            return self._in_class(node, file, module, node.name, inner)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None if inner else self._compiled(name, Place(file, name, "function"))
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return self.resolve((*_base(node, file, module), alias.name, *inner))
            return None
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) == name:
                    parts = tuple(alias.name.split(".")) if alias.asname else (name,)
                    return self.resolve((*parts, *inner))
            return None
        return self._value(node, file, module, rest)

    def _value(
        self, node: ast.stmt, file: str, module: tuple[str, ...], rest: tuple[str, ...]
    ) -> Place | None:
        """Follow ``name = other.name`` and ``name = _add_docstr(other.name, …)``."""
        assert isinstance(node, ast.Assign | ast.AnnAssign)
        value = node.value
        if isinstance(value, ast.Call) and value.args and "docstr" in ast.unparse(value.func):
            value = value.args[0]
        parts = dotted_name(value) if value is not None else None
        if parts and parts[0] != rest[0]:
            aliased = self.resolve((*module, *parts, *rest[1:]))
            if aliased is not None and aliased.kind != "value":
                return aliased
            if value is not node.value and group(self.tree, OPERATORS, parts[-1]) is not None:
                return Place(OPERATORS, parts[-1], "operator")
        return None if rest[1:] else Place(file, rest[0], "value")

    def _in_class(
        self, node: ast.ClassDef, file: str, module: tuple[str, ...], symbol: str,
        rest: tuple[str, ...],
    ) -> Place | None:  # fmt: skip
        if not rest:
            return Place(file, symbol, "class")
        for member in _body(node):
            if isinstance(member, ast.ClassDef) and member.name == rest[0]:
                return self._in_class(member, file, module, f"{symbol}.{rest[0]}", rest[1:])
            if rest[0] in _bound(member) and not rest[1:]:
                kind = "value" if isinstance(member, ast.Assign | ast.AnnAssign) else "function"
                return self._compiled(rest[0], Place(file, f"{symbol}.{rest[0]}", kind))
        for base in node.bases:
            parts = dotted_name(base.value if isinstance(base, ast.Subscript) else base)
            place = self.resolve((*module, *parts, *rest)) if parts else None
            if place is not None:
                return place
        return None

    def _compiled(self, name: str, place: Place) -> Place:
        """Return the operator's entries instead of its stub, if it has any."""
        if place.file in _OPERATOR_STUBS and group(self.tree, OPERATORS, name) is not None:
            return Place(OPERATORS, name, "operator")
        return place


def _base(node: ast.ImportFrom, file: str, module: tuple[str, ...]) -> tuple[str, ...]:
    own = tuple((node.module or "").split(".")) if node.module else ()
    if not node.level:
        return own
    package = module if "/__init__.py" in file else module[:-1]
    return (*package[: len(package) - node.level + 1], *own)


@lru_cache(maxsize=64)
def _bindings(text: str) -> dict[str, tuple[ast.stmt, ...]]:
    """Return the statements that bind each name at the top of a module, in order."""
    try:
        tree = python.parse(text)
    except SyntaxError:
        return {}
    index: dict[str, list[ast.stmt]] = {}
    for node in _body(tree):
        for name in _bound(node):
            index.setdefault(name, []).append(node)
    return {name: tuple(nodes) for name, nodes in index.items()}


def _body(scope: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class, also those inside ``if``, ``try`` and ``with``."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.ExceptHandler):
            yield from _body(node)
        elif isinstance(node, ast.stmt):
            yield node


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def dotted_name(node: ast.AST) -> tuple[str, ...] | None:
    """Return the parts of ``a.b.c``, or None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))
