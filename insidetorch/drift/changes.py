"""What changed between two texts of a definition: statement by statement, and what kind of change.

Layout, comments, docstrings, hints and the kernels of other backends do not count, so that a
changed statement is one that may mean something else.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from insidetorch.drift.definitions import OPERATORS, Found
from insidetorch.drift.meaning import Plain, counted, plain_cpp, same
from insidetorch.locate.definition import Definition
from insidetorch.locate.normalise import cpp_tokens

_WORD = re.compile(r"[^\W\d]\w+")
_CONDITION = re.compile(r"^(?:if|elif|while|assert|raise|TORCH_CHECK\w*|else if|TORCH_INTERNAL)\b")
_RESULT = re.compile(r"^return\b")
_REMARK = re.compile(r"\s*(?://|/?\*(?:\s|/|$)|# )")
_IMPORT = re.compile(r"^(?:import|from) ")
IMPORTS, VALUE, WORDING = "imports changed", "value changed", "wording changed"
_MESSAGE = re.compile(
    r"(?:\b[a-zA-Z]{1,2})?('(?:\\.|[^'\\])*\s(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\s(?:\\.|[^\"\\])*\")"
)
_LITERAL = re.compile(
    r"\b(?:\d[\w.]*|true|false|True|False|None|nullptr)\b|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
)
_LONGEST = 4_000_000
_TELLING = 20


@dataclass(frozen=True)
class Change:
    """One place at which two texts of a definition differ.

    :param old: the lines as they were; empty where lines were only added.
    :param new: the lines as they are.
    :param lines: first and last line in the old file; of what was added, where.
    :param shown: whether a chapter shows those lines.
    :param names: the identifiers that stand on one side of the place alone.
    :param only: those of them that stand in one of the two definitions alone.
    :param inside: the members it stands in, outermost first.
    :param why: what kind of change it is, in a word or two.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    lines: tuple[int, int]
    shown: bool
    names: tuple[str, ...]
    only: tuple[str, ...]
    inside: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class _Piece:
    """A statement, or the head of a block: its plain text, its lines, what it stands in."""

    text: str
    first: int
    last: int
    inside: tuple[str, ...] = ()


def alike(was: Found, now: Found) -> bool:
    """Tell whether two definitions mean the same to those who call or read them."""
    mine, theirs = ([piece.text for piece in _pieces(one)] for one in (was, now))
    if mine == theirs:
        return True
    # Other names of locals, other orders of keys: as many statements, another text of them.
    return len(mine) == len(theirs) and same(was, now)


def changes(was: Found, now: Found, shown: Sequence[tuple[int, int]]) -> list[Change]:
    """Return the places at which two texts differ, in order.

    :param shown: first and last line of each stretch that a chapter shows, in the old file. What
        was only added counts as shown where the lines on both sides are shown without a gap.
    """
    mine, theirs = _pieces(was), _pieces(now)
    shown = [lines for lines in shown if not _kept(lines, mine, theirs)]
    whole = [{word for p in side for word in _WORD.findall(p.text)} for side in (mine, theirs)]
    found = []
    for start, end, begin, stop in _differing([p.text for p in mine], [p.text for p in theirs]):
        gone, come = mine[start:end], theirs[begin:stop]
        if gone:
            lines = gone[0].first, max(piece.last for piece in gone)
            seen = [p for p in gone if any(a <= p.last and p.first <= b for a, b in shown)]
            gone = seen or gone
        else:
            before = mine[start - 1].last if start else was.definition.first
            after = mine[start].first if start < len(mine) else was.definition.last
            lines = before, after
            seen = [p for p in come if any(a <= before and after <= b for a, b in shown)]
        texts = [" ".join(piece.text for piece in side) for side in (gone, come)]
        words = [set(_WORD.findall(text)) for text in texts]
        apart = words[0] ^ words[1]
        only = apart & (whole[0] ^ whole[1])
        old, new = _apart(_lines(was, gone), _lines(now, come))
        found.append(Change(
            old, new, lines, bool(seen), tuple(sorted(apart)), tuple(sorted(only)),
            (gone or come)[0].inside, _kind([p.text for p in gone], [p.text for p in come], words),
        ))  # fmt: skip
    return found


def _kept(lines: tuple[int, int], mine: Sequence[_Piece], theirs: Sequence[_Piece]) -> bool:
    """Tell whether what stands in these lines stands in the new text too, without a gap."""
    first, last = lines
    seen = [piece.text for piece in mine if first <= piece.last and piece.first <= last]
    if sum(map(len, seen)) < _TELLING:
        return False
    new, count = [piece.text for piece in theirs], len(seen)
    return any(new[at : at + count] == seen for at in range(len(new) - count + 1))


def _differing(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the stretches in which two sequences differ; shared ends are cut off first."""
    head = 0
    while head < min(len(mine), len(theirs)) and mine[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < min(len(mine), len(theirs)) - head and mine[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    old, new = mine[head : len(mine) - tail], theirs[head : len(theirs) - tail]
    if len(old) * len(new) > _LONGEST:
        yield head, head + len(old), head, head + len(new)
        return
    for tag, start, end, begin, stop in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag != "equal":
            yield head + start, head + end, head + begin, head + stop


def _apart(old: Sequence[str], new: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two texts without the lines that both begin or end with."""
    spans = list(_differing(old, new)) or [(0, len(old), 0, len(new))]
    first, last = spans[0], spans[-1]
    return tuple(old[first[0] : last[1]]), tuple(new[first[2] : last[3]])


def _lines(found: Found, pieces: Sequence[_Piece]) -> tuple[str, ...]:
    """Return the lines of some statements, without the margin that they share."""
    if not pieces:
        return ()
    parts = found.parts or (found,)
    kept: list[str] = []
    for one in (part.definition for part in parts):
        numbers = {n for p in pieces for n in range(p.first, p.last + 1)}
        kept += [line for n, line in enumerate(one.lines, one.first) if n in numbers]
    kept = [line for line in kept if line.strip() and not _REMARK.match(line)]
    return tuple(textwrap.dedent("\n".join(kept)).split("\n"))


def _kind(old: Sequence[str], new: Sequence[str], words: Sequence[set[str]]) -> str:
    if all(map(_IMPORT.match, [*old, *new])):
        return IMPORTS
    if len({_MESSAGE.sub("", " ".join(side)) for side in (old, new)}) == 1:
        return WORDING
    conditions = [[text for text in side if _CONDITION.match(text)] for side in (old, new)]
    if len(conditions[1]) > len(conditions[0]):
        return "condition added"
    if len(conditions[0]) > len(conditions[1]):
        return "condition removed"
    if not old or not new:
        return "code added" if new else "code removed"
    if conditions[0] and conditions != [[], []]:
        return "condition changed"
    if [_LITERAL.sub("0", text) for text in old] == [_LITERAL.sub("0", text) for text in new]:
        return VALUE
    if len(words[0] - words[1]) == len(words[1] - words[0]) == 1 and len(old) == len(new):
        return "renamed"
    if any(map(_RESULT.match, old)) and any(map(_RESULT.match, new)):
        return "result changed"
    return "code changed"


def _pieces(found: Found) -> list[_Piece]:
    if found.parts:
        return [piece for part in found.parts for piece in _pieces(part)]
    return _of(found.definition)


@lru_cache(maxsize=256)
def _of(definition: Definition) -> list[_Piece]:
    if definition.language == "cpp":
        return list(_cpp(definition))
    if definition.language == "yaml":
        return list(_yaml(definition))
    try:
        return list(_python(definition))
    except SyntaxError:
        lines = enumerate(definition.lines, definition.first)
        return [_Piece(line.strip(), n, n) for n, line in lines if line.strip()]


def _python(definition: Definition) -> Iterator[_Piece]:
    code, indented = definition.text, definition.text[:1].isspace()
    body = ast.parse(f"if 1:\n{code}" if indented else code).body
    if indented:
        assert isinstance(body[0], ast.If)
        body = body[0].body
    offset = definition.first - 1 - indented
    plain = Plain().visit(ast.Module(body, []))
    yield from _statements(plain.body, offset, (), definition.last)


def _statements(
    body: Iterable[ast.stmt], offset: int, inside: tuple[str, ...], end: int
) -> Iterator[_Piece]:
    for node in body:
        blocks = [
            (name, value)
            for name, value in ast.iter_fields(node)
            if isinstance(value, list)
            and value
            and isinstance(value[0], ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        first = _first(node)
        last = node.end_lineno or node.lineno
        within = inside
        if blocks:
            shell = type(node)(**{**dict(ast.iter_fields(node)), **{n: [] for n, _ in blocks}})
            if isinstance(node, ast.Try):
                yield _Piece("try:", first + offset, first + offset, inside)
            else:
                shell.body = [ast.Pass()]  # type: ignore[attr-defined]
                text = ast.unparse(ast.copy_location(shell, node)).removesuffix("pass").strip()
                last = max(first, _first(blocks[0][1][0]) - 1)
                if last > first and isinstance(node, ast.ClassDef | ast.FunctionDef):
                    last = max(first, node.lineno, _head_end(node))
                yield _Piece(text, first + offset, last + offset, inside)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                within = (*inside, node.name)
        else:
            yield _Piece(ast.unparse(node), first + offset, last + offset, inside)
        for name, block in blocks:
            if name in ("orelse", "finalbody"):
                at = max(first, _first(block[0]) - 1) + offset
                yield _Piece("else:" if name == "orelse" else "finally:", at, at, inside)
            if isinstance(block[0], ast.stmt):
                yield from _statements(block, offset, within, end)
                continue
            for one in block:  # handlers of a try, cases of a match
                at = getattr(one, "lineno", _first(one.body[0]) - 1) + offset
                head = getattr(one, "type", None) or getattr(one, "pattern", None)
                yield _Piece(f"case {ast.unparse(head) if head else ''}:", at, at, inside)
                yield from _statements(one.body, offset, within, end)


def _head_end(node: ast.ClassDef | ast.FunctionDef) -> int:
    """Return the last line of what a class or function begins with, its docstring left out."""
    parts: list[ast.AST] = [*node.decorator_list]
    parts += node.bases if isinstance(node, ast.ClassDef) else ast.walk(node.args)
    return max([node.lineno, *(getattr(part, "end_lineno", 0) or 0 for part in parts)])


def _first(node: ast.AST) -> int:
    decorators = [one.lineno for one in getattr(node, "decorator_list", ())]
    return int(min([getattr(node, "lineno", 1), *decorators]))


def _cpp(definition: Definition) -> Iterator[_Piece]:
    """Yield the statements of C++: what ends at ``;``, at a brace, or at a comma between values."""
    words: list[str] = []
    first = last = definition.first
    stack: list[str] = []
    depth, named = 0, ""
    for line, token in cpp_tokens(definition.text, definition.first):
        directive = bool(words) and words[0] == "#"
        if directive and line > last and words[-1] != "\\":
            yield _Piece(plain_cpp(" ".join(words)), first, last, tuple(filter(None, stack)))
            words, depth = [], 0
        if not words:
            first = line
        last = line
        words.append(token)
        depth += (token == "(") - (token == ")")
        if token == "(" and depth == 1 and len(words) > 1 and not named:
            named = words[-2]
        if token in "{};" or (token == "," and depth <= 0 and not directive):
            inside = tuple(filter(None, stack[1:]))
            yield _Piece(plain_cpp(" ".join(words)), first, last, inside)
            if token == "{":
                stack.append(named if named.isidentifier() and named not in _BLOCKS else "")
            elif token == "}" and stack:
                stack.pop()
            words, depth, named = [], 0, ""
    if words:
        yield _Piece(plain_cpp(" ".join(words)), first, last, tuple(filter(None, stack[1:])))


_BLOCKS = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype"})


def _yaml(definition: Definition) -> Iterator[_Piece]:
    """Yield the lines of an entry, each with the key it stands below."""
    key = ""
    for number, line in enumerate(definition.lines, definition.first):
        text = re.sub(r"(?:^|\s)#.*", "", line).strip().removeprefix("- ")
        if not text:
            continue
        if not line.startswith("   "):
            key = text.split(":")[0]
        head, _, value = text.partition(":")
        if definition.file != OPERATORS or key != "dispatch" or head == "dispatch":
            if head != "dispatch":
                yield _Piece(
                    f"{key}|{' '.join(text.split())}", number, number, (definition.symbol,)
                )
            continue
        for backend in filter(counted, map(str.strip, head.split(","))):
            yield _Piece(f"{backend}: {value.strip()}", number, number, (definition.symbol,))
