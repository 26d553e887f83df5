"""A chapter as its page has it: cells with what is seen of them, prose, sections, labels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from insidetorch.book.project import Chapter
from insidetorch.publish.two_layers import parts
from insidetorch.site.chapter import DEEPER, TAKEAWAY
from reader.syntax import drawing

WALK = "The walk"
ROOMS = frozenset(
    {"The short answer", "Build it small", "Measure it", "What to do", "Settled", "Exercises",
     "Where next"}
)  # fmt: skip
"""The sections of a chapter that are not its walk, where it has no section of that name."""
CARD = "This chapter"
_PROSE = """admonition note tip warning important caution seealso hint exercise solution dropdown
    margin sidebar"""
PROSE = frozenset(_PROSE.split())
"""Directives whose content is prose of the chapter."""

_FOLDED = frozenset({"hide-input", "remove-input", "hide-cell"})
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*#*$")
_LABEL = re.compile(r"^\(([\w.:-]+)\)=\s*$")
_TERM = re.compile(r"\{term\}`([^`]+)`")


@dataclass(frozen=True)
class Finding:
    """One place that breaks a rule.

    :param rule: one of `RULES`.
    :param line: of the chapter's file, from 1.
    :param said: what is there.
    """

    rule: str
    line: int
    said: str


@dataclass
class Section:
    """A section of a chapter, with those below it.

    :param line: of its heading.
    :param walk: it is one of those that walk through the mechanism.
    """

    title: str
    line: int
    walk: bool
    drawn: bool = False
    takeaway: bool = False


@dataclass
class Cell:
    """A code cell as the page has it.

    :param line: of the file, where its code begins.
    :param statements: each with its layer; ``folded`` if none of the cell's code is seen.
    :param deeper: it stands in a section marked *Deeper*.
    """

    line: int
    source: str
    statements: list[tuple[ast.stmt, str]]
    seen: str
    deeper: bool
    section: Section | None

    def at(self, node: ast.AST) -> int:
        """Return the line of the file in which a node of the cell stands."""
        return self.line + int(getattr(node, "lineno", 1)) - 1


@dataclass
class Prose:
    """Text between code cells: what is no text is blank, what is a term is noted.

    :param linked: place in the text → the term that is a link there.
    :param code: place → a name that is set as code there.
    :param images: places of images in Markdown.
    """

    line: int
    text: str
    raw: str
    deeper: bool
    linked: dict[int, str] = field(default_factory=dict)
    code: dict[int, str] = field(default_factory=dict)
    images: list[int] = field(default_factory=list)


@dataclass
class Read:
    """A chapter taken apart: its cells, its prose, its sections, and the line of each label."""

    cells: list[Cell]
    prose: list[Prose]
    sections: list[Section]
    labels: dict[str, int]
    pictures: frozenset[str]


def take_apart(chapter: Chapter, root: Path) -> Read:
    """Return the cells, the prose and the sections of a chapter."""
    lines = chapter.text.splitlines()
    has_walk = any(
        (found := _HEADING.match(line)) and found[1] == "##" and found[2] == WALK for line in lines
    )
    cells, prose, sections, labels = list[Cell](), list[Prose](), list[Section](), dict[str, int]()
    in_walk, deeper, section = False, 0, None
    pairs = zip(chapter.notebook["cells"], chapter.lines, strict=True)
    for cell, begins in pairs:
        source = cell["source"]
        first = source.splitlines()[0] if source else ""
        begins = next(
            (n for n in range(begins, len(lines) + 1) if lines[n - 1].strip() == first.strip()),
            begins,
        )
        if cell["cell_type"] == "code":
            made = _cell(cell, begins, bool(deeper), section)
            cells.append(made)
            continue
        if cell["cell_type"] != "markdown":
            continue
        begun, fence = 0, ""
        text = source.splitlines()
        for number, line in enumerate(text):
            mark = re.match(r"^\s*(`{3,}|~{3,}|:{3,})", line)
            if mark and (not fence or (line.strip() == fence)):
                fence = "" if fence else mark[1]
            label = None if fence else _LABEL.match(line)
            if label:
                labels[label[1]] = begins + number
            heading = None if fence else _HEADING.match(line)
            if heading:
                prose.append(_prose(text, begun, number, begins, bool(deeper)))
                begun = number
                level, title = len(heading[1]), heading[2]
                if deeper and level <= deeper:
                    deeper = 0
                if not deeper and title.startswith(DEEPER):
                    deeper = level
                if level <= 2:
                    in_walk = level == 2 and (title == WALK if has_walk else title not in ROOMS)
                top = 3 if has_walk else 2
                if level <= top:
                    walk = in_walk and level == top and not deeper
                    section = Section(title, begins + number, walk)
                    sections.append(section)
            elif section and not deeper and line.startswith(f"> **{TAKEAWAY}**"):
                section.takeaway = True
            elif (
                section
                and not deeper
                and re.match(r"^(`{3,}|:{3,})\{(figure|mermaid)\}|^!\[", line)
            ):
                section.drawn = True
        prose.append(_prose(text, begun, len(text), begins, bool(deeper)))
    return Read(
        cells,
        prose,
        sections,
        labels,
        drawing((node for cell in cells for node, _ in cell.statements), root),
    )


def _cell(cell: Mapping[str, object], line: int, deeper: bool, section: Section | None) -> Cell:
    source = str(cell["source"])
    metadata = cell.get("metadata") or {}
    tags = set((metadata.get("tags") if isinstance(metadata, Mapping) else None) or ())
    if source.startswith("%%"):
        rest = "\n" + source.split("\n", 1)[1] if "\n" in source else ""
        return Cell(line, source, _with_layers(rest, "gpu"), "", deeper, section)
    folded = "folded" if tags & _FOLDED else ""
    seen = "" if folded else "\n".join(p.text for p in parts(source) if p.layer == "seen")
    return Cell(line, source, _with_layers(source, folded), seen, deeper, section)


def _with_layers(source: str, layer: str) -> list[tuple[ast.stmt, str]]:
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    if layer:
        return [(node, layer) for node in body]
    return [(node, part.layer) for node, part in zip(body, parts(source), strict=True)]


def _prose(text: Sequence[str], start: int, end: int, line: int, deeper: bool) -> Prose:
    """Return lines of Markdown without what is no prose, each character in its place."""
    raw = "\n".join(text[start:end])
    made = Prose(line + start, _without_question(_only_prose(raw)), raw, deeper)

    def blank(pattern: str, flags: int = 0) -> Iterator[re.Match[str]]:
        found = list(re.finditer(pattern, made.text, flags))
        for one in found:
            hole = re.sub(r"[^\n]", " ", one[0])
            made.text = made.text[: one.start()] + hole + made.text[one.end() :]
        yield from found

    for one in blank(_TERM.pattern):
        target = re.search(r"<([^>]+)>\s*$", one[1])
        made.linked[one.start()] = " ".join((target[1] if target else one[1]).split()).lower()
    list(blank(r"\{[\w:-]+\}`[^`]*`"))
    for one in blank(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL):
        made.code[one.start()] = one[2].strip()
    for one in blank(r"!?\[[^\]]*\]\([^)]*\)|<https?:[^>]*>"):
        if one[0].startswith("!"):
            made.images.append(one.start())
        for place in [at for at in made.code if one.start() < at < one.end()]:
            del made.code[place]
    list(blank(r"\$\$.*?\$\$|\$[^$\n]+\$|<!--.*?-->", re.DOTALL))
    return made


def _without_question(text: str) -> str:
    """Blank the question below a chapter's title, which is in the reader's words."""
    return re.sub(
        r"\A\s*\*[^*].*?\*[ \t]*(?=\s*\Z|\s*\n\s*\n)",
        lambda found: re.sub(r"[^\n]", " ", found[0]),
        text,
        flags=re.DOTALL,
    )


def _only_prose(raw: str) -> str:
    """Blank headings, labels, comments, code, the card at the top, and options of directives."""
    kept, inside = [], list[tuple[str, bool]]()
    for line in raw.split("\n"):
        fence = re.match(r"^\s*(`{3,}|~{3,}|:{3,})(.*)$", line)
        if fence and inside and not fence[2].strip() and len(fence[1]) >= len(inside[-1][0]):
            inside.pop()
            kept.append("")
            continue
        if fence and (not inside or inside[-1][1]):
            directive = re.match(r"\{(\w+)\}\s*(.*)$", fence[2].strip())
            prose = bool(directive) and directive[1] in PROSE and directive[2] != CARD
            inside.append((fence[1], prose))
            kept.append("")
            continue
        hidden = bool(inside) and (not inside[-1][1] or line.startswith(":"))
        hidden |= bool(_HEADING.match(line) or _LABEL.match(line) or line.startswith("% "))
        kept.append("" if hidden else line)
    # What is blank keeps its length, so that places stay what they are.
    pairs = zip(kept, raw.split("\n"), strict=True)
    return "\n".join(line if line else " " * len(was) for line, was in pairs)


def line_of(prose: Prose, place: int) -> int:
    """Return the line of the file in which a place of its text stands."""
    return prose.line + prose.raw.count("\n", 0, place)
