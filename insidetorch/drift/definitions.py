"""The definitions in one file of a release, by name, whatever the language."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from insidetorch.drift.trees import HEADERS, UNSHIPPED, Tree
from insidetorch.errors import BookError
from insidetorch.locate import python, yamls
from insidetorch.locate.cpp_symbols import Symbol, symbols
from insidetorch.locate.definition import Definition, Language
from insidetorch.locate.normalise import digest

OPERATORS = yamls.FILES["native_functions.yaml"]
_CPP = (*HEADERS, *UNSHIPPED)
_ENTRY = re.compile(r"^(?:- |  )(?:func|name|tag):\s*([\w.]+)", re.MULTILINE)
_BODY = frozenset({"class", "struct", "union", "enum", "function"})


@dataclass(frozen=True)
class Found:
    """A definition in one release.

    :param definition: where and what it is.
    :param body: whether it defines, or only declares.
    :param parts: what it is joined from, e.g. the overloads of a name.
    """

    definition: Definition
    body: bool = True
    parts: tuple[Found, ...] = ()

    @cached_property
    def sha256(self) -> str:
        """The hash of its normalised text, hexadecimal."""
        if self.parts:
            together = " ".join(one.sha256 for one in self.parts)
            return hashlib.sha256(together.encode()).hexdigest()
        return fingerprint(self.definition.text, self.definition.language)


def language_of(file: str) -> Language:
    """Return the language of a file, judged by its suffix."""
    if file.endswith(_CPP):
        return "cpp"
    return "yaml" if file.endswith(".yaml") else "python"


def definitions(tree: Tree, file: str, symbol: str) -> list[Found]:
    """Return the definitions of a full name in one file, in order; empty if there is none.

    :param symbol: e.g. ``torch::autograd::Node``, ``Tensor.backward``, ``mul.Tensor``; "" for the
        whole file.
    """
    text = tree.text(file)
    if text is None:
        return []
    if not symbol:
        lines = python.lines_of(text)
        whole = Definition(file, file, language_of(file), 1, lines, "")
        return [Found(whole)]
    language = language_of(file)
    if language == "cpp":
        return list(_cpp(text, file).get(symbol, ()))
    if language == "yaml":
        return _entries(text, file, symbol)
    return [Found(definition) for definition in _python(text, file, symbol)]


def in_text(text: str, file: str, symbol: str) -> list[Found]:
    """Return the definitions of a C++ name in a text; its leading namespaces may be missing."""
    index = _cpp(text, file)
    if not symbol:
        return [Found(Definition(file, file, "cpp", 1, python.lines_of(text), ""))]
    full = [name for name in index if f"::{name}".endswith(f"::{symbol}")]
    return [one for name in full for one in index[name]]


def group(tree: Tree, file: str, symbol: str) -> Found | None:
    """Return all that a name stands for in a file as one definition: its overloads.

    The name of an operator, e.g. ``mul``, stands for all its entries.
    """
    if language_of(file) == "yaml" and "." not in symbol:
        text = tree.text(file) or ""
        found = [
            one for name in _yaml_index(text).get(symbol, ()) for one in _entries(text, file, name)
        ]
    else:
        found = definitions(tree, file, symbol)
    return joined(found) if found else None


def joined(found: list[Found]) -> Found:
    """Return several definitions as one, in the order given."""
    if len(found) == 1:
        return found[0]
    first = found[0].definition
    lines = tuple(line for one in found for line in one.definition.lines)
    signature = " | ".join(one.definition.signature for one in found)
    name = first.symbol.split(".")[0] if first.language == "yaml" else first.symbol
    whole = Definition(
        name, first.file, first.language, first.first, lines, signature, siblings=len(found)
    )
    return Found(whole, any(one.body for one in found), tuple(found))


def names(tree: Tree, file: str) -> list[str]:
    """Return the full names that a file defines, in order and without repetition."""
    text = tree.text(file)
    if text is None:
        return []
    language = language_of(file)
    if language == "cpp":
        return list(_cpp(text, file))
    if language == "yaml":
        return [name for entries in _yaml_index(text).values() for name in entries]
    return list(dict.fromkeys(_python_names(text)))


def own_name(symbol: str, language: Language) -> str:
    """Return the last part of a full name."""
    if language == "cpp":
        return symbol.rsplit("::", 1)[-1]
    return symbol.split(".")[0] if language == "yaml" else symbol.rsplit(".", 1)[-1]


@lru_cache(maxsize=4096)
def fingerprint(code: str, language: Language) -> str:
    """Return the SHA-256 of normalised code; of code that does not parse, of its words."""
    try:
        return digest(code, language)
    except SyntaxError:
        return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()


def _python(text: str, file: str, symbol: str) -> list[Definition]:
    try:
        return python.find(file, text, symbol, docstrings=False)
    except (BookError, SyntaxError):
        return []


@lru_cache(maxsize=512)
def _python_names(text: str) -> tuple[str, ...]:
    try:
        tree = python.parse(text)
    except SyntaxError:
        return ()

    def walk(scope: ast.AST, prefix: str) -> Iterator[str]:
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name
                if isinstance(node, ast.ClassDef):
                    yield from walk(node, f"{prefix}{node.name}.")
            elif isinstance(node, ast.If | ast.Try | ast.With):
                yield from walk(node, prefix)

    return tuple(walk(tree, ""))


@lru_cache(maxsize=64)
def _yaml_index(text: str) -> dict[str, dict[str, list[tuple[int, str]]]]:
    """Return operator → entry → for each time it is listed, its line and its text."""
    index: dict[str, dict[str, list[tuple[int, str]]]] = {}
    line, position = 1, 0
    for item in re.finditer(r"^- .*(?:\n(?:[ \t].*)?)*", text, re.MULTILINE):
        line += text.count("\n", position, item.start())
        position = item.start()
        head = _ENTRY.search(item[0])
        if head:
            entries = index.setdefault(head[1].split(".")[0], {})
            entries.setdefault(head[1], []).append((line, item[0]))
    return index


def _entries(text: str, file: str, name: str) -> list[Found]:
    found = []
    for first, part in _yaml_index(text).get(name.split(".")[0], {}).get(name, ()):
        lines = tuple(part.rstrip().splitlines())
        head = next(line for line in lines if _ENTRY.match(line))
        signature = head.split(":", 1)[1].strip()
        placed = Definition(name, file, "yaml", first, lines, signature)
        found.append(Found(placed))
    return found


@lru_cache(maxsize=1024)
def _cpp(text: str, file: str) -> dict[str, tuple[Found, ...]]:
    source = text.encode()
    lines = python.lines_of(text)
    first = symbols(source)
    certain = {symbol.path for symbol in first}
    # What shows only with every branch of `#if` kept is added; its lines are less certain.
    rest = (one for one in symbols(source, all_branches=True) if one.path not in certain)
    index: dict[str, dict[tuple[int, int], Found]] = {}
    for symbol in [*first, *rest]:
        lean = tuple(part for i, part in enumerate(symbol.path) if i not in symbol.optional)
        for path in {symbol.path, lean}:
            name = "::".join(path).replace("(anonymous)::", "")
            span = (symbol.first, symbol.last)
            index.setdefault(name, {}).setdefault(span, _found(symbol, name, file, lines))
    return {name: tuple(spans.values()) for name, spans in index.items()}


def _found(symbol: Symbol, name: str, file: str, lines: Sequence[str]) -> Found:
    text = tuple(lines[symbol.first - 1 : symbol.last])
    definition = Definition(name, file, "cpp", symbol.first, text, symbol.signature)
    body = symbol.body or symbol.kind not in _BODY
    return Found(definition, body)
