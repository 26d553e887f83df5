"""What a CUDA cell is: its label, its code, and a digest that only changes when its code does."""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NoReturn

import insidetorch
from insidetorch.errors import BookError

_MAGIC = re.compile(r"\s*%%cuda(?![\w-])[ \t]*([^\n]*)(?:\n|\Z)")
_NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|TiB|KB|MB|GB|TB)")
_UNITS = {
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_USAGE = '%%cuda name [--title "…"] [--memory 8GiB] [--gpus 1]'
# What a parser of another Python may fill in differently, and what says nothing about the code.
_SILENT_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_MEASURING = (
    "measure.timing",
    "measure.cpu_beside_gpu",
    "watch.ops",
    "watch.modes",
    "watch.stacks",
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COUNTED = ("miniatures", *(f"insidetorch.{name}" for name in _MEASURING))
"""Modules in which it counts what a cell reaches; what of the toolkit shows or replays does not."""
_TOOLKIT = Path(insidetorch.__file__).parent.parent

Reached = Callable[[Sequence[str]], str]
"""Takes code; returns a text that changes only when what the code reaches in modules does."""


@dataclass(frozen=True)
class Label:
    """The first line of a CUDA cell.

    :param name: of the cell, unique in its chapter; it names the file of the recording.
    :param title: what the page shows instead of the name; empty for none.
    :param memory: bytes of GPU memory that the cell needs; 0 if it does not say.
    :param gpus: number of GPUs that the cell needs.
    """

    name: str
    title: str = ""
    memory: int = 0
    gpus: int = 1

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BookError(f"%%cuda: {message}; write {_USAGE}.")


def split(source: str) -> tuple[str, str] | None:
    """Return the arguments and the body of a CUDA cell, or None for any other cell."""
    found = _MAGIC.match(source)
    return (found[1].strip(), source[found.end() :]) if found else None


def label(line: str) -> Label:
    """Read what stands after ``%%cuda``.

    :raises BookError: there is no name, or an option is unknown or malformed.
    """
    parser = _Arguments(add_help=False, allow_abbrev=False)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--memory", default="")
    parser.add_argument("--gpus", default="1")
    try:
        words = shlex.split(line)
    except ValueError:
        raise BookError(f"%%cuda {line}: a quotation mark is missing; write {_USAGE}.") from None
    given = parser.parse_args(words)
    if not _NAME.fullmatch(given.name) or len(given.name) > 60 or given.name.startswith("run-"):
        raise BookError(
            f"%%cuda {line}".rstrip() + ": a CUDA cell starts with a name of letters, digits and "
            f"single hyphens, at most 60, that does not begin with `run-`; write {_USAGE}."
        )
    if not given.gpus.isdecimal() or int(given.gpus) < 1:
        raise BookError(
            f"%%cuda {given.name}: --gpus {given.gpus!r} is no number of GPUs; write --gpus 2."
        )
    return Label(given.name, given.title, _bytes(given.name, given.memory), int(given.gpus))


def _bytes(name: str, text: str) -> int:
    if not text:
        return 0
    size = _SIZE.fullmatch(text)
    if size is None:
        raise BookError(
            f"%%cuda {name}: --memory {text!r} is no amount of memory; write it like --memory 8GiB."
        )
    return int(float(size[1]) * _UNITS[size[2]])


def labels(sources: Iterable[str]) -> dict[str, Label]:
    """Return the labels of the CUDA cells of one chapter, by name and in order.

    :param sources: the chapter's code cells.
    :raises BookError: a label is malformed, or two cells have one name.
    """
    found: dict[str, Label] = {}
    for source in sources:
        parts = split(source)
        if parts is None:
            continue
        entry = label(parts[0])
        if entry.name in found:
            raise BookError(
                f"%%cuda {entry.name}: two cells of the chapter have this name; rename one."
            )
        found[entry.name] = entry
    return found


def digest(body: str, earlier: Sequence[str] = (), reached: Reached = lambda sources: "") -> str:
    """Return what identifies the code of a CUDA cell: SHA-256, in hexadecimal.

    It covers the cell's syntax tree, and the top-level statements of earlier cells that make the
    names it uses what they are, and those that do so for the names these use, and so on; and what
    all of these reach in modules. White space and comments do not count.

    :param body: the cell without its magic line.
    :param earlier: the code cells before it, with their magics.
    :param reached: tells what they reach in modules, as `reached_in` does.
    """
    tree = parse(body)
    if tree is None:
        return hashlib.sha256(b"text\0" + body.strip().encode()).hexdigest()
    pool = [
        statement
        for source in earlier
        if (cell := parse(parts[1] if (parts := split(source)) else source)) is not None
        for statement in cell.body
    ]
    kept = {canonical(part): part for part in _needed(_used(tree), pool)}
    code = [ast.unparse(part) for part in (tree, *kept.values())]
    text = "\n".join([canonical(tree), *sorted(kept), reached(code)])
    return hashlib.sha256(text.encode()).hexdigest()


def reached_in(roots: Sequence[Path]) -> Reached:
    """Return a look-up of what code reaches in the modules that count.

    Of these, the statements count that the imported names need. Nothing is imported for this.

    :param roots: the folders that miniatures are imported from.
    """
    find = _module_source([*roots, _TOOLKIT])

    @cache
    def statements(name: str) -> list[ast.stmt]:
        counts = name.startswith(tuple(f"{counted}." for counted in COUNTED)) or name in COUNTED
        source = find(name) if counts else None
        tree = parse(source) if source is not None else None
        return tree.body if tree else []

    def reached(sources: Sequence[str]) -> str:
        kept: set[str] = set()
        _follow(
            [part for source in sources for part in ast.parse(source).body], "", statements, kept
        )
        return "\n".join(sorted(kept))

    return reached


def cells_to_run(sources: Sequence[str], wanted: Collection[str]) -> list[int]:
    """Return the indices of the cells to run so that the CUDA cells `wanted` can be recorded.

    These are all ordinary cells up to the last wanted one, the wanted ones, and the CUDA cells
    that bind a name which a later one of these uses.

    :param sources: the chapter's code cells.
    :param wanted: names of CUDA cells.
    """
    chosen: list[int] = []
    needed: set[str] = set()
    for index in range(len(sources) - 1, -1, -1):
        parts = split(sources[index])
        if parts is None:
            if chosen:
                chosen.append(index)
            continue
        tree = parse(parts[1]) or ast.Module([], [])
        if label(parts[0]).name in wanted or _bound(tree) & needed:
            chosen.append(index)
            needed |= _used(tree)
    return chosen[::-1]


@lru_cache(maxsize=1024)
def parse(source: str) -> ast.Module | None:
    """Parse a cell as IPython does, magics and shell lines included; None if it is no Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        pass
    try:
        from IPython.core.inputtransformer2 import TransformerManager

        return ast.parse(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    except (SyntaxError, ValueError):
        return None


def canonical(node: Any) -> str:
    """Write a syntax tree as text that is the same on every Python from 3.11 on."""
    if isinstance(node, ast.AST):
        fields = ", ".join(
            f"{name}={canonical(value)}"
            for name, value in ast.iter_fields(node)
            if name not in _SILENT_FIELDS and value is not None and value != []
        )
        return f"{type(node).__name__}({fields})"
    if isinstance(node, list):
        return f"[{', '.join(canonical(item) for item in node)}]"
    return repr(node)


def _needed(names: set[str], pool: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return what in `pool` makes `names` what they are at its end, and so on.

    Of what binds a name the last one counts that sets it anew, and what changes it afterwards.
    """
    bindings = [pair for statement in pool for pair in _bindings(statement)]
    todo = {(name, len(bindings)) for name in names}
    done, found = set[tuple[str, int]](), set[int]()
    while todo:
        name, end = todo.pop()
        done.add((name, end))
        for index in range(end - 1, -1, -1):
            statement, bound = bindings[index]
            if name not in bound:
                continue
            found.add(index)
            # What is inside a function is looked up when it is called: here, or before its use.
            ends = (index, end) if _waits(statement) else (index,)
            todo |= {(used, one) for used in _used(statement) for one in ends} - done
            if _sets_anew(statement, name):
                break
    return [bindings[index][0] for index in sorted(found)]


def _waits(statement: ast.stmt) -> bool:
    """Tell whether code in a statement may run later than the statement."""
    later = (*_FUNCTIONS, ast.ClassDef, ast.Lambda, ast.GeneratorExp)
    return any(isinstance(node, later) for node in ast.walk(statement))


def _sets_anew(statement: ast.stmt, name: str) -> bool:
    """Tell whether a statement makes a name what it is, whatever it was before."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    each = [one.elts if isinstance(one, ast.Tuple | ast.List) else [one] for one in targets]
    return any(isinstance(one, ast.Name) and one.id == name for row in each for one in row)


def _follow(
    statements: Iterable[ast.stmt],
    module: str,
    body: Callable[[str], list[ast.stmt]],
    kept: set[str],
) -> None:
    """Add to `kept` what the imports in statements of `module` need of other modules."""
    for name, imported in (pair for part in statements for pair in _imports(part, module)):
        if name == "insidetorch":
            name += f".{insidetorch._HOME.get(imported)}"
        names = {imported} if imported else {n for s in body(name) for n in _bound(s)}
        new = {canonical(part): part for part in _needed(names, body(name))}
        unseen = [part for text, part in new.items() if text not in kept]
        kept.update(new)
        _follow(unseen, name, body, kept)


def _imports(statement: ast.stmt, module: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for what a statement imports; the name is empty for all of it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: -node.level]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", ""
                yield base, "" if alias.name == "*" else alias.name


def _bindings(statement: ast.stmt) -> Iterator[tuple[ast.stmt, set[str]]]:
    """Yield the statement with the names it binds; an import, each of its names apart."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            part: ast.stmt = ast.Import(names=[alias])
            yield part, {alias.asname or alias.name.partition(".")[0]}
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            part = ast.ImportFrom(module=statement.module, names=[alias], level=statement.level)
            yield part, {alias.asname or alias.name}
    else:
        yield statement, _bound(statement)


def _bound(node: ast.AST) -> set[str]:
    """Return the names that running `node` binds where it stands."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Lambda):
        return set()
    if isinstance(node, _COMPREHENSIONS):
        return {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    names = set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        names.add(node.id)
    elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        # `model.weight = …` and `sizes[0] = …` change what `model` and `sizes` are.
        owner: ast.AST = node
        while isinstance(owner, ast.Attribute | ast.Subscript):
            owner = owner.value
        if isinstance(owner, ast.Name):
            names.add(owner.id)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        names.add(node.name)
    for child in ast.iter_child_nodes(node):
        names |= _bound(child)
    return names


def _used(node: ast.AST) -> set[str]:
    """Return the names that `node` reads from outside, anywhere inside."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Store) else {node.id}
    names = {name for child in ast.iter_child_nodes(node) for name in _used(child)}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        names.add(node.target.id)
    if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
        args = node.args
        outside: list[ast.AST] = [*args.defaults, *filter(None, args.kw_defaults)]
        outside += getattr(node, "decorator_list", [])
        return names - _own(node) | {name for part in outside for name in _used(part)}
    if isinstance(node, _COMPREHENSIONS):
        return names - {one.id for part in node.generators for one in _stored(part.target)}
    return names


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the names that are a function's own: its parameters, and what it stores itself."""
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [one for statement in body for one in _here(statement)]
    shared = {n for one in nodes if isinstance(one, ast.Global | ast.Nonlocal) for n in one.names}
    given = function.args
    several = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    own = {one.arg for one in (*several, given.vararg, given.kwarg) if one is not None}
    own |= {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return own - shared


def _here(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, but not into what has names of its own: those are not its surroundings'."""
    yield node
    if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from _here(child)


def _stored(node: ast.AST) -> Iterator[ast.Name]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            yield one


def _module_source(roots: Sequence[Path]) -> Callable[[str], str | None]:
    """Return a look-up of modules below the folders `roots`, which imports nothing."""

    def find(name: str) -> str | None:
        path = [str(root) for root in roots]
        spec = None
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            spec = PathFinder.find_spec(".".join(parts[:end]), path)
            if spec is None:
                return None
            path = list(spec.submodule_search_locations or ())
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        return Path(spec.origin).read_text(encoding="utf-8")

    return find
