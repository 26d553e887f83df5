"""A chapter as drift reads it: its sentences, what they name, what its cells call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from insidetorch.drift.names import dotted_name
from insidetorch.gpu.cell import parse

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(\{code-cell\})?")
_SPAN = re.compile(r"(\}?)(`+)(?!`)(.+?)(?<!`)\2(?!`)")
_NAME = re.compile(r"[^\W\d]\w+")
_ENDS = re.compile(r"(?<=[.?!])[)\"”*_]*\s+(?=[^a-z\s])")
_POINTERS = "Where next"
_MARKER = re.compile(r"^\s*(?:[-*+>|]|\d+\.)\s+|\s*\|\s*$")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chapter.

    :param line: where its paragraph begins in the file, from 1.
    :param section: the number of the section it stands in, from 0.
    :param cell: how many code cells stand before it.
    :param kind: ``prose``, ``heading``, ``pointer`` (it says where to read on), ``claim`` (a cell
        checks it), ``note`` (at a line of an excerpt).
    :param at: of a note, the text on the line that it is about.
    """

    text: str
    line: int
    section: int
    cell: int
    kind: str = "prose"
    at: str = ""

    @cached_property
    def names(self) -> frozenset[str]:
        """The identifiers that it writes as code; a path and a term of the glossary name none."""
        found = _SPAN.findall(self.text)
        spans = (code for role, _, code in found if not role and "/" not in code)
        return frozenset(name for code in spans for name in _NAME.findall(code))


@dataclass(frozen=True)
class Call:
    """How a cell calls something: how many values by place, which by name."""

    given: int
    named: frozenset[str]


@dataclass
class Prose:
    """What one chapter says and calls.

    :param sections: for each code cell, the number of its section.
    :param lines: for each code cell, where it begins in the file, from 1.
    :param code: the sources of its code cells, and of modules that are its own.
    """

    sentences: list[Sentence] = field(default_factory=list)
    sections: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    @cached_property
    def said(self) -> list[Sentence]:
        """Its sentences that say something: no headings, and not where to read on."""
        return [one for one in self.sentences if one.kind not in ("heading", "pointer")]

    @cached_property
    def calls(self) -> dict[str, list[Call]]:
        """The calls in its code, by the last part of the name that is called."""
        found: dict[str, list[Call]] = {}
        imports = [n for n in self._nodes if isinstance(n, ast.Import | ast.ImportFrom)]
        aliases = {
            a.asname: a.name.rpartition(".")[2] for n in imports for a in n.names if a.asname
        }
        for node in self._nodes:
            if isinstance(node, ast.Call):
                name = (dotted_name(node.func) or (getattr(node.func, "attr", ""),))[-1]
                name = aliases.get(name, name)
                many = any(isinstance(one, ast.Starred) for one in node.args)
                named = frozenset(one.arg or "**" for one in node.keywords)
                found.setdefault(name, []).append(Call(99 if many else len(node.args), named))
        return found

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The attributes that its code asks for."""
        return frozenset(node.attr for node in self._nodes if isinstance(node, ast.Attribute))

    def line(self, cells: Iterable[int]) -> int:
        """Return where the first of some code cells begins; 0 if none is known."""
        return next((self.lines[cell - 1] for cell in cells if 0 < cell <= len(self.lines)), 0)

    def section(self, cells: Iterable[int]) -> int:
        """Return the section in which the first of some code cells stands; -1 if none is known."""
        return next((self.sections[cell - 1] for cell in cells if 0 < cell <= len(self.lines)), -1)

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        trees = filter(None, map(parse, self.code))
        return [node for tree in trees for node in ast.walk(tree)]

    def near(self, cells: Iterable[int]) -> list[Sentence]:
        """Return the sentences of the sections that some code cells stand in, the nearest first."""
        known = [cell for cell in cells if 0 < cell <= len(self.sections)]
        sections = {self.sections[cell - 1] for cell in known}
        found = [one for one in self.said if one.section in sections]
        return sorted(found, key=lambda one: min(_distance(one.cell, cell) for cell in known))


def _distance(before: int, cell: int) -> float:
    """Return how far a sentence is from a cell; one just below it is nearer than one above."""
    return before - cell if before >= cell else cell - before - 0.5


def read(text: str) -> Prose:
    """Read a chapter from its text."""
    prose, section, kind = Prose(), 0, "prose"
    paragraph: list[str] = []
    start, lines, number = 0, text.splitlines(), 0
    if lines[:1] == ["---"]:
        number = next((n for n, one in enumerate(lines[1:], 2) if one in ("---", "...")), 0)

    def ended() -> None:
        said = " ".join(_MARKER.sub("", line).strip() for line in paragraph)
        for words in _sentences(said):
            if len(words) > 2:
                sentence = Sentence(words.strip(), start, section, len(prose.sections), kind)
                prose.sentences.append(sentence)
        paragraph.clear()

    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence or not line.strip() or line.startswith("#") or _MARKER.match(line):
            ended()
        if fence:
            end = number + 1
            while end < len(lines) and not lines[end].strip().startswith(fence[1]):
                end += 1
            if fence[2]:
                prose.sections.append(section)
                prose.lines.append(number + 1)
                _read_cell(prose, lines[number + 1 : end], number + 2, section)
            number = end
        elif line.startswith("#"):
            section += 1
            kind = "pointer" if line.strip("# ") == _POINTERS else "prose"
            prose.sentences.append(
                Sentence(line.strip("# "), number + 1, section, len(prose.sections), "heading")
            )
        elif line.strip() and not re.match(r"\(.*\)=$|:::|<", line):
            start = start if paragraph else number + 1
            paragraph.append(line)
        number += 1
    ended()
    return prose


def _sentences(said: str) -> Iterator[str]:
    """Take a paragraph apart; words in bold that lead a sentence in stay with it."""
    lead = ""
    for words in _ENDS.split(said):
        if words.startswith("**") and words.count("**") == 1:
            lead = f"{words}** "
        else:
            yield lead + words
            lead = ""
    yield lead


def _read_cell(prose: Prose, lines: list[str], first: int, section: int) -> None:
    body = [line for line in lines if not line.startswith(":")]
    source = "\n".join(body)
    prose.code.append(source)
    tree = parse(source)
    number = len(prose.sections)
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.Call):
            continue
        called = (dotted_name(node.func) or ("",))[-1]
        said = node.args[0] if called == "claim" and node.args else None
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            prose.sentences.append(Sentence(said.value, first, section, number, "claim"))
        for keyword in node.keywords:
            if keyword.arg == "notes" and isinstance(keyword.value, ast.Dict):
                for at, note in _pairs(keyword.value):
                    prose.sentences.append(Sentence(note, first, section, number, "note", at))


def _pairs(table: ast.Dict) -> Iterator[tuple[str, str]]:
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            yield str(key.value), str(value.value)


def chapters(root: Path, docs: Iterable[str]) -> dict[str, Prose]:
    """Return the chapters of a book as drift reads them, with the code of their own modules."""
    found = {}
    for doc in docs:
        page = root / f"{doc}.md"
        prose = read(page.read_text(encoding="utf-8")) if page.is_file() else Prose()
        own = root / "miniatures" / doc.rpartition("/")[2].replace("-", "_")
        folder = own if page.is_file() else (root / doc).parent
        prose.code += [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
        found[doc] = prose
    return found
