"""Whether two texts of a definition mean the same: hints, names of locals, other backends aside."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import yaml

from insidetorch.drift.definitions import OPERATORS, Found
from insidetorch.locate.normalise import normalise

_SILENT = re.compile(
    r"\[ \[ (?:nodiscard|maybe_unused|likely|unlikely)(?: \( [^()]* \))? \] \] ?|\bC10_NODISCARD "
    r"|\bnoexcept (?!\()"
)
_BACKENDS = ("CPU", "CUDA", "Meta", "Composite")
_LISTS = ("variants", "tags", "ufunc_inner_loop")
_SEES_NAMES = frozenset({"locals", "vars", "eval", "exec", "globals"})
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,  # codespell:ignore notin
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
}
_OPPOSITE |= {new: old for old, new in _OPPOSITE.items()}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def same(one: Found, other: Found) -> bool:
    """Tell whether two definitions mean the same to those who call or read them.

    Not counted are Python's hints and names of local variables, ``return`` beside ``return None``,
    an ``assert`` written as ``if`` and ``raise AssertionError``, C++ attributes such as
    ``[[nodiscard]]`` and ``noexcept``, and in ``native_functions.yaml`` the order of keys and the
    kernels of backends other than CPU, CUDA, Meta and Composite.
    """
    if one.definition.lines == other.definition.lines:
        return True
    mine, theirs = (
        _meaning(d.text, d.language, d.file) for d in (one.definition, other.definition)
    )
    return mine == theirs


@lru_cache(maxsize=1024)
def _meaning(code: str, language: str, file: str) -> str:
    try:
        if language == "cpp":
            return plain_cpp(normalise(code, "cpp"))
        if language == "yaml":
            return _entries(code, file)
        tree = ast.parse(plain_python(code))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        return ast.dump(tree if names & _SEES_NAMES else _Numbered().visit(tree))
    except (SyntaxError, yaml.YAMLError):
        return code


def plain_cpp(tokens: str) -> str:
    """Return normalised C++ without attributes that ask for a warning at most, and with one int."""
    return re.sub(r"\bint32_t\b", "int", _SILENT.sub("", tokens))


@lru_cache(maxsize=1024)
def plain_python(code: str) -> str:
    """Return Python without docstrings and hints, each assertion in one form.

    :raises SyntaxError: it does not parse.
    """
    block = ast.parse(f"if 1:\n{code}" if code[:1].isspace() else textwrap.dedent(code))
    body = block.body[0].body if code[:1].isspace() else block.body  # type: ignore[attr-defined]
    return ast.unparse(Plain().visit(ast.Module(body, [])))


def _entries(code: str, file: str) -> str:
    entries = yaml.load(code, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if file == OPERATORS and isinstance(entries, list):
        entries = sorted(map(_entry, entries), key=lambda entry: str(entry.get("func")))
    return json.dumps(entries, sort_keys=True, default=str)


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    found = dict(entry)
    for key in _LISTS:
        if isinstance(found.get(key), str):
            found[key] = sorted(word.strip() for word in found[key].split(","))
    kernels = found.pop("dispatch", None)
    if isinstance(kernels, dict):
        split = {one.strip(): value for key, value in kernels.items() for one in key.split(",")}
        kept = {key: value for key, value in split.items() if counted(key)}
        if kept:
            found["dispatch"] = kept
    return found


def counted(backend: str) -> bool:
    """Tell whether the kernels of a backend count."""
    return backend in _BACKENDS or backend.startswith(_BACKENDS[-1])


class Plain(ast.NodeTransformer):
    """Takes docstrings and hints out; writes each assertion as ``assert``, each bare return so."""

    def __init__(self) -> None:
        self.fields = False  # whether annotations here may make the fields of a dataclass

    def _scope(self, node: Any, fields: bool) -> Any:
        outer, self.fields = self.fields, fields
        self.generic_visit(node)
        self.fields = outer
        node.body = _without_overloads(node.body)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        if node.body and isinstance(node.body[-1], ast.Return) and node.body[-1].value is None:
            node.body = node.body[:-1]  # A function returns there anyway.
        node.body = node.body or [ast.copy_location(ast.Pass(), node)]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._scope(node, True)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self._scope(node, False)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        node.returns = None
        return self._scope(node, False)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        self.generic_visit(node)
        if self.fields:
            special = re.search(r"\b(?:ClassVar|InitVar|KW_ONLY)\b", ast.unparse(node.annotation))
            node.annotation = ast.Constant(special[0] if special else None)
            return node
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_Return(self, node: ast.Return) -> ast.Return:
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        self.generic_visit(node)
        return ast.copy_location(ast.Assert(_opposite(_opposite(node.test)), None), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        only = node.body[0] if len(node.body) == 1 and not node.orelse else None
        if isinstance(only, ast.Raise) and only.exc is not None:
            raised = only.exc.func if isinstance(only.exc, ast.Call) else only.exc
            if isinstance(raised, ast.Name) and raised.id == "AssertionError":
                test = _opposite(_opposite(_opposite(node.test)))
                return ast.copy_location(ast.Assert(test, None), node)
        node.body = node.body or [ast.copy_location(ast.Pass(), node)]
        return node


def _without_overloads(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a scope without the overloads that only tell a type checker of a function in it."""
    functions = [one for one in body if isinstance(one, ast.FunctionDef)]
    hints = {
        id(one): one.name
        for one in functions
        if any(ast.unparse(mark).endswith("overload") for mark in one.decorator_list)
    }
    real = {one.name for one in functions if id(one) not in hints}
    return [one for one in body if hints.get(id(one)) not in real]


def _opposite(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.BoolOp):
        swapped = ast.Or() if isinstance(test.op, ast.And) else ast.And()
        return ast.BoolOp(swapped, [_opposite(value) for value in test.values])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


class _Numbered(ast.NodeTransformer):
    """Gives the local variables of each function numbers for names, in the order they appear."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, str]] = []  # name → its number, "" if it has none yet
        self.count = 0

    def _called(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                if not scope[name]:
                    self.count += 1
                    scope[name] = f"local {self.count}"
                return scope[name]
        return name

    def _inside(self, scope: dict[str, str], nodes: Iterable[ast.AST]) -> None:
        self.scopes.append(scope)
        for node in nodes:
            self.visit(node)
        self.scopes.pop()

    def _function(self, node: Any) -> Any:
        if not isinstance(node, ast.Lambda):
            node.name = self._called(node.name)
            node.decorator_list = [self.visit(one) for one in node.decorator_list]
        self.visit(node.args)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        given = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        self._inside(_locals(body) | {name: name for name in given}, body)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        self._inside({name: name for name in _locals(node.body)}, node.body)
        return node

    def _comprehension(self, node: Any) -> Any:
        targets = [part for one in node.generators for part in ast.walk(one.target)]
        own = {part.id: "" for part in targets if isinstance(part, ast.Name)}
        self._inside(own, ast.iter_child_nodes(node))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._called(node.id)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        node.name = self._called(node.name) if node.name else None
        return self.generic_visit(node)


def _locals(body: Sequence[ast.AST]) -> dict[str, str]:
    """Return the names that a scope binds itself: "" to be numbered, or the name where it stays."""
    found: dict[str, str] = {}
    waiting, elsewhere = list(body), set[str]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere |= set(node.names)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(node.name, "")
        elif isinstance(node, _COMPREHENSIONS):
            walrus = [one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)]
            found |= dict.fromkeys(walrus, "")
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.id, "")
            elif isinstance(node, ast.ExceptHandler) and node.name:
                found.setdefault(node.name, "")
            elif isinstance(node, ast.alias):
                name = (node.asname or node.name).split(".")[0]
                found[name] = name
            waiting += ast.iter_child_nodes(node)
    return {name: called for name, called in found.items() if name not in elsewhere}
