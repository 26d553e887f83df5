"""One module as pieces: what runs on import, and each definition, with what it names.

A piece's digest is that of its syntax tree: comments, layout and docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby

Chain = tuple[str, ...]
"""A name and attributes after it: ``a.b.c`` is ``("a", "b", "c")``."""
HOLE = "\0"
"""Stands for what a formatted string computes."""

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_SHOW_SOURCE = frozenset({"source", "getsource", "getsourcelines"})
_JOIN_PATHS = frozenset({"joinpath", "Path", "join"})
_IMPORT = re.compile(
    r"(?:^|;)[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+[\w.*][^\n;]*)", re.MULTILINE
)
# Calls without effect: an assignment of such a value counts only where its name is read.
# (`Name`, a private name of PyTorch, notes itself in a list, of which no output depends.)
_PURE = """abs bool bytes chr dict enumerate float frozenset int len list max min object ord range
    repr reversed round set sorted str sum tuple zip Path PurePosixPath Fraction Decimal TypeVar
    ParamSpec NewType namedtuple Counter defaultdict deque OrderedDict ContextVar timedelta Struct
    compile escape count itemgetter attrgetter partial getLogger split rsplit join strip format
    replace keys values items fromkeys with_name with_suffix joinpath resolve absolute lower upper
    encode decode union intersection splitlines removeprefix removesuffix Name"""
_INERT_CALLS = frozenset(_PURE.split())
_HARMLESS = """cache lru_cache cached_property contextmanager asynccontextmanager wraps dataclass
    total_ordering overload final override runtime_checkable no_grad jit property"""
_INERT_DECORATORS = frozenset(_HARMLESS.split())


@dataclass(frozen=True)
class Target:
    """What an import binds: a module, or with `name` what that name is in it."""

    module: str
    name: str = ""


@dataclass
class Uses:
    """What a piece of code names.

    :param chains: names that it reads, with the attributes after them.
    :param shown: those of them whose source text it asks for.
    :param shown_names: texts it asks the source of.
    :param strings: its strings; of formatted ones with `HOLE`.
    :param bound: name → what the piece's own imports bind it to.
    :param loaded: modules that its imports load.
    :param stars: modules that it imports all names of.
    :param dynamic: it looks up names of its module that are computed.
    """

    chains: set[Chain] = field(default_factory=set)
    shown: set[Chain] = field(default_factory=set)
    shown_names: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    bound: dict[str, set[Target]] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    dynamic: bool = False


@dataclass(eq=False)
class Piece:
    """Statements that count together.

    :param package: dotted name of the package that relative imports start from.
    :param postponed: annotations of functions are not evaluated.
    """

    nodes: list[ast.stmt]
    package: str = ""
    postponed: bool = True

    @cached_property
    def digest(self) -> str:
        """The hash of the syntax trees; of imports, only which modules they load."""
        plain = [node for node in self.nodes if not isinstance(node, ast.Import | ast.ImportFrom)]
        text = [ast.dump(node) for node in plain]
        if len(plain) < len(self.nodes):
            text += sorted(self.uses.loaded)
        return hashlib.sha256("\n".join(text).encode()).hexdigest()

    @cached_property
    def uses(self) -> Uses:
        """What the statements name."""
        reader = _Reader(self.package, self.postponed)
        for node in self.nodes:
            reader.visit(node)
        return reader.uses


@dataclass(frozen=True, eq=False)
class Syntax:
    """A module in pieces.

    :param on_import: what runs when the module is imported.
    :param main: what runs when it is run as a program.
    :param pieces: name → its definition: a function, a class, or a constant.
    :param assigned: names that `on_import` binds by other than imports.
    :param table: the entries of tables of text that ``__getattr__`` reads.
    """

    on_import: Piece
    main: Piece
    pieces: Mapping[str, Piece]
    assigned: frozenset[str]
    table: Mapping[str, str]

    @property
    def bindings(self) -> Mapping[str, set[Target]]:
        """Name → what the module's own imports bind it to."""
        return self.on_import.uses.bound

    @property
    def lazy(self) -> bool:
        """Names that are absent are looked up by a function."""
        return "__getattr__" in self.pieces

    def defines(self, name: str) -> bool:
        """Tell whether the module binds `name` itself."""
        return name in self.pieces or name in self.bindings or name in self.assigned


@lru_cache(maxsize=4096)
def syntax(text: str, package: str, docstrings: bool = False) -> Syntax:
    """Return a module in pieces.

    :param package: dotted name of the package that relative imports start from.
    :param docstrings: let docstrings count; those of a module that reads ``__doc__`` always do.
    :raises SyntaxError: the text is no Python.
    """
    tree = ast.parse(text)
    if not (docstrings or "__doc__" in text):
        _drop_bare_strings(tree)
    postponed = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    registers = "__init_subclass__" in text or "__subclasses__" in text or "metaclass=" in text
    on_import, main = Piece([], package, postponed), Piece([], package, postponed)
    looked_up = {
        part.id
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        for part in ast.walk(node)
        if isinstance(part, ast.Name)
    }
    pieces: dict[str, Piece] = {}
    assigned: set[str] = set()
    table: dict[str, str] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.If) and _compares_name(node.test):
            main.nodes += node.body
            continue
        names = _defined(node)
        if names == ["__all__"]:
            continue
        entries = _entries(node) if looked_up.issuperset(names) else {}
        table |= entries
        if entries:
            names, on = [], False
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            on = not all(map(_inert_decorator, node.decorator_list))
            on = on or (registers and isinstance(node, ast.ClassDef))
        else:
            on = not names or not _inert(getattr(node, "value", None))
        if on:
            on_import.nodes.append(node)
            assigned |= _stored(node)
        for name in names if not on else ():
            pieces.setdefault(name, Piece([], package, postponed)).nodes.append(node)
    return Syntax(on_import, main, pieces, frozenset(assigned), table)


@lru_cache(maxsize=4096)
def code_in(text: str) -> Uses | None:
    """Return what a string names if it holds Python that imports something, else None.

    Of a text that is only in part Python, such as a template, the imports are read.
    """
    if "import" not in text or not (lines := _IMPORT.findall(text)):
        return None
    for source in (textwrap.dedent(text.replace(HOLE, "_")), "\n".join(lines)):
        try:
            return Piece(list(ast.parse(source).body), postponed=False).uses
        except (SyntaxError, ValueError):
            continue
    return None


@lru_cache(maxsize=256)
def cells(sources: tuple[str, ...]) -> Uses:
    """Return what a chapter's code cells name; IPython's own lines are read word by word."""
    reader = _Reader("", postponed=False)
    for source in sources:
        body, rest = _cell(source)
        for node in body:
            reader.visit(node)
        words = re.findall(r"[A-Za-z_]\w*(?:\.\w+)*", rest)
        reader.uses.chains |= {tuple(word.split(".")) for word in words}
    return reader.uses


def _cell(source: str) -> tuple[list[ast.stmt], str]:
    """Return the statements of a cell, and the text that is no Python."""
    head = ""
    if source.lstrip().startswith("%%"):
        head, _, source = source.lstrip().partition("\n")
    lines = re.findall(r"^[ \t]*[%!?].*$", source, flags=re.MULTILINE)
    plain = re.sub(r"^[ \t]*[%!?].*$", "", source, flags=re.MULTILINE)
    for text, rest in ((source, []), (plain, lines)):
        try:
            return ast.parse(text).body, "\n".join([head, *rest]).strip()
        except (SyntaxError, ValueError):
            continue
    return [], source


class _Reader(ast.NodeVisitor):
    """Collects what statements name."""

    def __init__(self, package: str, postponed: bool) -> None:
        self.uses = Uses()
        self.package, self.postponed = package, postponed
        self.scopes: list[ast.AST] = []

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.uses.chains.add((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if chain := _chain(node):
            self.uses.chains.add(chain)
        else:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.uses.strings.add(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
        self.uses.strings.add("".join(map(str, parts)))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Div):
            parts: list[ast.expr] = []
            left: ast.expr = node
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div):
                parts.append(left.right)
                left = left.left
            self._join(parts[::-1])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _chain(node.func)
        if name and name[-1] in _SHOW_SOURCE:
            for argument in (*node.args, *(word.value for word in node.keywords)):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self.uses.shown_names.add(argument.value)
                elif chain := _chain(argument):
                    self.uses.shown.add(chain)
        elif name and name[-1] in _JOIN_PATHS:
            self._join(node.args)
        bare = name in {("globals",), ("vars",)} and not node.args
        alone = name in {("eval",), ("exec",)} and len(node.args) + len(node.keywords) == 1
        self.uses.dynamic |= bare or alone
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if not self.postponed and node.returns:
            self.visit(node.returns)
        for part in (*node.decorator_list, node.args):
            self.visit(part)
        self.scopes.append(node)
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scopes.append(node)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_arg(self, node: ast.arg) -> None:
        if not self.postponed and node.annotation:
            self.visit(node.annotation)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # Those of a class are read by whatever makes a dataclass or a decoder of it.
        if isinstance(self.scopes[-1], ast.ClassDef) if self.scopes else not self.postponed:
            self.visit(node.annotation)
        self.visit(node.target)
        if node.value:
            self.visit(node.value)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self._bind(alias.asname or name, Target(name))
            self.uses.loaded.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            above = parts[: len(parts) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        if not base or base == "__future__":
            return
        self.uses.loaded.add(base)
        for alias in node.names:
            if alias.name == "*":
                self.uses.stars.add(base)
            else:
                self._bind(alias.asname or alias.name, Target(base, alias.name))

    def _bind(self, name: str, target: Target) -> None:
        self.uses.bound.setdefault(name, set()).add(target)

    def _join(self, parts: Iterable[ast.expr]) -> None:
        texts = [_string(part) for part in parts]
        for given, run in groupby(texts, key=lambda text: text is not None):
            if given:
                self.uses.strings.add("/".join(text or "" for text in run))


def _chain(node: ast.AST) -> Chain:
    """Return the names of ``a.b.c``; empty if there is more to it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _string(node: ast.AST) -> str | None:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if constant else None  # type: ignore[attr-defined]


def _drop_bare_strings(tree: ast.Module) -> None:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                block[:] = [
                    part
                    for part in block
                    if not (isinstance(part, ast.Expr) and _string(part.value) is not None)
                ]
                waiting += block


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module without those that are for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and _chain(node.test)[-1:] == ("TYPE_CHECKING",):
            yield from _statements(node.orelse)
        else:
            yield node


def _compares_name(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _chain(test.left) == ("__name__",)


def _defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement does nothing but define; empty if it may do more."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    flat = [
        part
        for target in targets
        for part in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    names = [part.id for part in flat if isinstance(part, ast.Name)]
    return names if len(names) == len(flat) else []


def _entries(node: ast.stmt) -> dict[str, str]:
    """Return the entries of an assigned table whose keys and values are all text."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(value, ast.Dict):
        return {}
    pairs = [
        (_string(key) if key else None, _string(entry))
        for key, entry in zip(value.keys, value.values, strict=True)
    ]
    found = {key: entry for key, entry in pairs if key is not None and entry is not None}
    return found if len(found) == len(pairs) else {}


def _inert(node: ast.AST | None) -> bool:
    """Tell whether computing a value changes nothing else."""
    if node is None or isinstance(node, ast.Lambda):
        return True
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
        return False
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else _chain(node.func)[-1:]
        if (name if isinstance(name, str) else "".join(name)) not in _INERT_CALLS:
            return False
    return all(map(_inert, ast.iter_child_nodes(node)))


def _inert_decorator(node: ast.expr) -> bool:
    called = _chain(node.func if isinstance(node, ast.Call) else node)
    return bool(called) and called[-1] in _INERT_DECORATORS


def _stored(node: ast.AST) -> set[str]:
    """Return the names that a statement binds, other than by imports, wherever it does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {part.name for part in ast.walk(node) if isinstance(part, kinds)} | {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
