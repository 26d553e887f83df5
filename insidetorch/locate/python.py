"""Finding a Python definition: from an object to its file, from a name to its lines."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError
from insidetorch.locate.definition import Definition

_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Compiled(BookError):
    """The target is written in C or C++, so there is no Python source of it."""


def find(file: str, source: str, name: str, *, docstrings: bool = True) -> list[Definition]:
    """Return the definitions of a qualified name in Python text.

    :param file: how to call the file in the result and the error.
    :param source: the module's text.
    :param name: e.g. ``Engine.run``; ``outer.<locals>.inner`` is read as ``outer.inner``.
    :param docstrings: whether to look for the docstrings in it, which takes a walk through it.
    :raises BookError: if there is none; it names the nearest ones.
    """
    parts = [part for part in name.split(".") if part and part != "<locals>"]
    tree = parse(source)
    lines = lines_of(source)
    nodes: list[ast.AST] = [tree]
    for part in parts:
        nodes = [node for scope in nodes for node in _named(scope).get(part, ())]
    if not nodes:
        known = [".".join(path) for path in _all_names(tree)]
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "nothing there has a similar name"
        raise BookError(f"{name} is not in {file}; {hint}")
    nodes = [node for node in nodes if not _stands_in(node)] or nodes
    return [_definition(file, lines, name, node, len(nodes), docstrings) for node in nodes]


def module_file(module: str) -> Path | None:
    """Return the source file of a module, found without importing the module itself."""
    try:
        spec = util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def resolve(dotted: str) -> Any:
    """Import what a dotted name names.

    :param dotted: e.g. ``torch.autograd.backward``.
    :raises BookError: if a part of it does not exist; it names the nearest ones.
    """
    parts = dotted.split(".")
    try:
        value = import_module(parts[0])
    except ImportError as error:
        raise BookError(f"{dotted}: there is no module {parts[0]}; is it installed?") from error
    for index, part in enumerate(parts[1:], start=1):
        so_far = ".".join(parts[:index])
        try:
            value = getattr(value, part)
            continue
        except AttributeError:
            pass
        try:
            value = import_module(f"{so_far}.{part}")
        except ImportError:
            near = get_close_matches(part, dir(value), n=3)
            hint = ", ".join(f"{so_far}.{name}" for name in near)
            hint = f"did you mean {hint}?" if near else "nothing in it has a similar name"
            raise BookError(f"{dotted}: {so_far} has no {part}; {hint}") from None
    return value


def origin(target: Any, called: str) -> tuple[Path, str]:
    """Return the file that defines a Python object, and its name there; "" for a module.

    Decorators that keep ``__wrapped__``, bound methods, properties and partials are seen through.

    :param target: a module, class, function, method or property.
    :param called: how to call it in the error.
    :raises Compiled: if it is not written in Python.
    :raises BookError: if it has no source file for another reason.
    """
    plain = unwrap(target)
    if inspect.ismodule(plain):
        name, file = "", getattr(plain, "__file__", None)
    elif inspect.isclass(plain) or inspect.isfunction(plain):
        name = plain.__qualname__
        try:
            file = inspect.getsourcefile(plain)
        except TypeError:
            file = None
    elif inspect.isroutine(plain) or inspect.isdatadescriptor(plain):
        raise Compiled(f"{called} is compiled, so there is no Python source of it")
    else:
        raise BookError(
            f"{called} is an instance of {type(plain).__qualname__}; "
            "name a class, function or method instead"
        )
    if file is None or not Path(file).is_file():
        raise BookError(
            f"{called} has no source file; name a class, function or method of an installed module"
        )
    return Path(file), name


def unwrap(target: Any) -> Any:
    """Return the function or class behind decorators, descriptors, bound methods and partials."""
    while True:
        if isinstance(target, functools.partial | functools.partialmethod):
            target = target.func
        elif isinstance(target, property):
            target = target.fget
        elif isinstance(target, functools.cached_property):
            target = target.func
        elif isinstance(target, staticmethod | classmethod) or inspect.ismethod(target):
            target = target.__func__
        elif not inspect.isclass(target) and hasattr(target, "__wrapped__"):
            target = target.__wrapped__
        else:
            return target


@lru_cache(maxsize=64)
def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module's text; those of the last texts are kept."""
    return ast.parse(source)


@lru_cache(maxsize=64)
def lines_of(source: str) -> tuple[str, ...]:
    """Return the lines of a text; those of the last texts are kept."""
    return tuple(source.removesuffix("\n").split("\n"))


@lru_cache(maxsize=1024)
def _named(scope: ast.AST) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for name, node in _members(scope):
        found.setdefault(name, []).append(node)
    return found


def _members(scope: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a module, class or function defines, also inside ``if``, ``try`` and ``with``."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((t.id, node) for t in targets if isinstance(t, ast.Name))
        elif not isinstance(node, ast.expr):
            yield from _members(node)


def _stands_in(node: ast.AST) -> bool:
    """Tell whether a function is a typing overload, or the setter or deleter of a property."""
    decorators = getattr(node, "decorator_list", ())
    names = {ast.unparse(decorator).rsplit(".", 1)[-1].lstrip("_") for decorator in decorators}
    return not names.isdisjoint({"overload", "setter", "deleter"})


def _all_names(scope: ast.AST, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for own, node in _members(scope):
        yield (*prefix, own)
        if isinstance(node, ast.ClassDef):
            yield from _all_names(node, (*prefix, own))


def _definition(
    file: str, lines: tuple[str, ...], name: str, node: ast.AST, siblings: int, walked: bool
) -> Definition:
    docstrings = tuple(_docstrings(node)) if walked else ()
    if isinstance(node, ast.Module):
        return Definition(name, file, "python", 1, lines, name, docstrings)
    assert isinstance(node, ast.stmt)
    first, last = node.lineno, node.end_lineno or node.lineno
    signature = lines[first - 1].strip()
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        head = lines[first - 1 : max(first, node.body[0].lineno - 1)]
        signature = " ".join(" ".join(line.split()) for line in head)
        first = min([first, *(decorator.lineno for decorator in node.decorator_list)])
    return Definition(
        name, file, "python", first, lines[first - 1 : last], signature, docstrings, siblings
    )


def _docstrings(node: ast.AST) -> Iterator[tuple[int, int]]:
    for scope in ast.walk(node):
        if isinstance(scope, _SCOPES) and ast.get_docstring(scope, clean=False) is not None:
            yield scope.body[0].lineno, scope.body[0].end_lineno or scope.body[0].lineno
