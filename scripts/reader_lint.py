"""What a reader would stumble over in a chapter, found in its file without running it.

``python scripts/reader_lint.py`` counts findings, chapter by chapter; with names of chapters it
lists theirs. A chapter is held to the rules once its front matter says
``insidetorch: {form: new}``. What is folded on the page, and sections marked *Deeper*, count for
pictures and terms alone. Cells for a GPU are left as they are.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from insidetorch import _HOME
from insidetorch.book.project import Chapter, Project, front_matter, open_project
from insidetorch.publish.two_layers import CHECKS, parts
from insidetorch.site.chapter import DEEPER, TAKEAWAY
from insidetorch.site.glossary import FILE as GLOSSARY
from insidetorch.site.glossary import Entry, read_glossary

ROOT = Path(__file__).resolve().parent.parent
LINES, LINES_WITH_COMMENT, WITHOUT_COMMENT = 8, 10, 6
RULES = {
    "long": "a visible cell has at most 8 lines, or 10 with a comment",
    "comment": "a visible cell of more than 6 lines has a comment",
    "check": "what only a check needs is not in sight",
    "tuple": "no tuple as a statement",
    "trick": "no lambda for its side effect, no slice of a formatted string",
    "kinds": "a name stands for one kind of thing",
    "picture": "a picture has a caption and alternative text",
    "drawn": "a section of the walk has a picture",
    "takeaway": "a section of the walk has a takeaway",
    "link": "a term of the glossary is a link where it is first used",
    "later": "a term that a later section defines is explained where it is first used",
}
WALK = "The walk"
ROOMS = frozenset(
    {"The short answer", "Build it small", "Measure it", "What to do", "Settled", "Exercises",
     "Where next"}
)  # fmt: skip
"""The sections of a chapter that are not its walk, where it has no section of that name."""
CARD = "This chapter"
DRAWN = frozenset({"figure", "graph", "captioned", "replay"})
"""What draws; a function that calls one of these draws too."""
FRAMES = frozenset({"captioned", "replay"})
"""What gives a caption to the pictures inside it."""
EQUAL = frozenset({"equal", "allclose", "isclose", "array_equal", "isinstance", "issubclass"})
_CHANGES = """append appendleft extend add update insert setdefault pop popitem remove discard clear
    write put __setitem__ setattr delattr"""
CHANGES = frozenset(_CHANGES.split())
_PROSE = """admonition note tip warning important caution seealso hint exercise solution dropdown
    margin sidebar"""
PROSE = frozenset(_PROSE.split())
"""Directives whose content is prose of the chapter."""
_EVERYDAY = """claim verdict excerpt recording miniature root depth event steal capture module
    parameter buffer view meta region policy source program grid sector bank lane frame guard store
    future overlap wave scope stub symbol binding virtual template pack archive fallback
    functionality alignment atomic moment launch closure context materialize tangent schedule
    wrapper edge node checkpoint reorder realize lowering decomposition fusion fused boxed exponent
    pickle storage stream overload"""
EVERYDAY = frozenset(_EVERYDAY.split()) | {
    "in place", "inlined function", "version counter", "dynamic loader", "closed form",
}  # fmt: skip
"""Terms with an everyday meaning too: they count where the chapter links or shows them."""

_FOLDED = frozenset({"hide-input", "remove-input", "hide-cell"})
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*#*$")
_LABEL = re.compile(r"^\(([\w.:-]+)\)=\s*$")
_TERM = re.compile(r"\{term\}`([^`]+)`")
_EXPLAINS = re.compile(
    r"\*{0,2}(?:\s*\(|,\s+(?:a|an|the|that|which|where|what|one|its|so|or)\b|\s*[:–—]|"
    r"\s+(?:is|are|means)\b)"
)


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
    """

    line: int
    text: str
    raw: str
    deeper: bool
    linked: dict[int, str] = field(default_factory=dict)
    code: dict[int, str] = field(default_factory=dict)


@dataclass
class Read:
    """A chapter taken apart: its cells, its prose, its sections, and the line of each label."""

    cells: list[Cell]
    prose: list[Prose]
    sections: list[Section]
    labels: dict[str, int]
    pictures: frozenset[str]


def declared(chapter: Chapter) -> bool:
    """Tell whether a chapter is held to the rules."""
    own = front_matter(chapter.text, chapter.path).get("insidetorch") or {}
    return isinstance(own, dict) and own.get("form") == "new"


def findings(chapter: Chapter, entries: Sequence[Entry], root: Path = ROOT) -> list[Finding]:
    """Return what breaks the rules, by line.

    :param root: where the modules are that the chapter imports.
    """
    read = take_apart(chapter, root)
    found = [
        *_lengths(read), *_checks(read), *_statements(read), *_kinds(read),
        *_pictures(read), *_sections(read), *_terms(read, entries),
    ]  # fmt: skip
    return sorted(set(found), key=lambda one: (one.line, list(RULES).index(one.rule), one.said))


# The chapter as the page has it


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
    return Read(cells, prose, sections, labels, _drawing(cells, root))


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
    list(blank(r"\[[^\]]*\]\([^)]*\)|<https?:[^>]*>"))
    for one in blank(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL):
        made.code[one.start()] = one[2].strip()
    list(blank(r"\$\$.*?\$\$|\$[^$\n]+\$|<!--.*?-->", re.DOTALL))
    return made


def _without_question(text: str) -> str:
    """Blank the question below a chapter's title, which is in the reader's words."""
    return re.sub(
        r"\A\s*\*[^*].*?\*[ \t]*(?=\n\s*\n|\Z)",
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


# Rules about cells


def _in_sight(read: Read) -> list[Cell]:
    return [cell for cell in read.cells if cell.seen and not cell.deeper]


def _lengths(read: Read) -> Iterator[Finding]:
    for cell in _in_sight(read):
        lines = [line for line in cell.seen.splitlines() if line.strip()]
        commented = _has_comment(cell.seen)
        most = LINES_WITH_COMMENT if commented else LINES
        where = next(
            (cell.at(node) for node, layer in cell.statements if layer == "seen"), cell.line
        )
        if len(lines) > most:
            yield Finding("long", where, f"{len(lines)} visible lines, {most} allowed")
        if len(lines) > WITHOUT_COMMENT and not commented:
            yield Finding("comment", where, f"{len(lines)} visible lines without a comment")


def _has_comment(code: str) -> bool:
    import io
    import tokenize

    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return "#" in code
    return any(token.type == tokenize.COMMENT for token in tokens)


def _checks(read: Read) -> Iterator[Finding]:
    """Find comparisons in sight whose value a later check reads, and checks that do not fold."""
    compared: dict[str, tuple[int, bool]] = {}
    for cell in read.cells:
        for node, layer in cell.statements:
            seen = layer == "seen" and not cell.deeper
            if seen:
                for call in _calls(node):
                    if _called(call) in CHECKS:
                        said = f"{_called(call)}(…) inside a statement does not fold"
                        yield Finding("check", cell.at(call), said)
                for each in ast.walk(node):
                    if isinstance(each, ast.Assert):
                        yield Finding("check", cell.at(each), "assert")
            if layer in ("check", "folded"):
                for name in _needed(node):
                    line, is_compared = compared.get(name, (0, False))
                    if is_compared and layer == "check":
                        yield Finding("check", line, f"a comparison makes {name!r} for a check")
            for name, value in _bindings(node):
                compared[name] = (cell.at(node), seen and _compares(value))


def _needed(node: ast.stmt) -> set[str]:
    """Return the names that the condition of a check reads, or what prepares one."""
    wanted: list[ast.AST] = [node]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if _called(call) in CHECKS:
            wanted = [
                *call.args[1:],
                *(k.value for k in call.keywords if k.arg in ("holds", "over")),
            ]
    return {
        one.id
        for each in wanted
        for one in ast.walk(each)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def _compares(value: ast.AST | None) -> bool:
    """Tell whether a value is, or contains, the result of a comparison."""
    if value is None:
        return False
    if isinstance(value, ast.FunctionDef):
        returns = [one.value for one in ast.walk(value) if isinstance(one, ast.Return)]
        return any(_compares(one) for one in returns)
    if isinstance(value, ast.Compare):
        return True
    if isinstance(value, ast.Call) and _last(value.func) in EQUAL:
        return True
    if isinstance(value, ast.IfExp):
        return _compares(value.body) or _compares(value.orelse)
    if isinstance(value, ast.comprehension):
        return _compares(value.iter)
    return any(_compares(one) for one in ast.iter_child_nodes(value))


def _statements(read: Read) -> Iterator[Finding]:
    for cell in _in_sight(read):
        for node, layer in cell.statements:
            if layer != "seen":
                continue
            for one in ast.walk(node):
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Tuple):
                    yield Finding("tuple", cell.at(one), _short(one))
                elif _is_trick(one):
                    yield Finding("trick", cell.at(one), _short(one))


def _is_trick(node: ast.AST) -> bool:
    if isinstance(node, ast.Lambda):
        return _has_effect(node.body)
    return isinstance(node, ast.Subscript) and _is_formatted(node.value)


def _has_effect(body: ast.AST) -> bool:
    for one in ast.walk(body):
        if isinstance(one, ast.NamedExpr):
            return True
        if isinstance(one, ast.Call) and _last(one.func) in CHANGES and not _of_library(one.func):
            return True
        if (
            isinstance(one, ast.Subscript)
            and isinstance(one.value, ast.Tuple | ast.List)
            and any(isinstance(each, ast.Call) for each in one.value.elts)
        ):
            return True
    return False


def _of_library(function: ast.AST) -> bool:
    """Tell `torch.add` from `seen.add`."""
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in ("torch", "np", "numpy", "F")


def _is_formatted(value: ast.AST) -> bool:
    if isinstance(value, ast.Subscript):
        return _is_formatted(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr == "format" and isinstance(value.func.value, ast.Constant)
    return isinstance(value, ast.JoinedStr)


def _kinds(read: Read) -> Iterator[Finding]:
    """Find names that the page binds to two kinds of things, one of them in sight at least."""
    known: dict[str, str] = {}
    for cell in read.cells:
        if cell.deeper:
            continue
        for node, layer in cell.statements:
            if layer in ("gpu", "folded"):
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    known[(alias.asname or alias.name).split(".")[0]] = "what was imported"
                continue
            for name, value in _bindings(node):
                kind, before = _kind(value, known), known.get(name)
                if before == "what was imported" and not kind:
                    kind = "something else"
                if kind and before and kind != before and layer == "seen" and name != "_":
                    yield Finding("kinds", cell.at(node), f"{name!r} was {before}, now {kind}")
                if kind:
                    known[name] = kind


_METHODS = "clone detach requires_grad_ to_sparse contiguous t"
_FACTORIES = f"""tensor ones zeros empty rand randn randint arange eye full linspace ones_like
    zeros_like empty_like rand_like randn_like {_METHODS}"""
_CALLS = {
    **dict.fromkeys(("list", "sorted", "tolist", "split", "splitlines"), "a list"),
    **dict.fromkeys(("dict", "Counter", "defaultdict", "state_dict"), "a dictionary"),
    **dict.fromkeys(("set", "frozenset"), "a set"),
    **dict.fromkeys(("str", "repr", "join", "format", "replace", "strip", "getvalue"), "a text"),
    **dict.fromkeys(
        ("len", "int", "float", "round", "item", "numel", "perf_counter", "dim", "count"),
        "a number",
    ),
    **dict.fromkeys(("bool", "equal", "allclose", "all", "any", "isinstance"), "a truth value"),
    **dict.fromkeys(_FACTORIES.split(), "a tensor"),
    **dict.fromkeys(("partial", "compile"), "a function"),
}


def _kind(value: ast.AST | None, known: Mapping[str, str]) -> str:
    """Return what kind of thing a value is, or nothing where its text does not tell."""
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        ((ast.List, ast.ListComp), "a list"), ((ast.Dict, ast.DictComp), "a dictionary"),
        ((ast.Set, ast.SetComp), "a set"), (ast.Tuple, "a tuple"), (ast.JoinedStr, "a text"),
        (ast.Compare, "a truth value"), (ast.Lambda, "a function"),
        ((ast.FunctionDef, ast.AsyncFunctionDef), "a function"), (ast.ClassDef, "a class"),
    ]  # fmt: skip
    for types, kind in kinds:
        if isinstance(value, types):
            return kind
    if isinstance(value, ast.Constant):
        words = {str: "a text", bool: "a truth value", int: "a number", float: "a number"}
        return words.get(type(value.value), "")
    if isinstance(value, ast.Name):
        kind = known.get(value.id, "")
        return "" if kind == "what was imported" else kind
    if isinstance(value, ast.BinOp):
        sides = {_kind(value.left, known), _kind(value.right, known)}
        return sides.pop() if sides == {"a number"} else ("a tensor" if "a tensor" in sides else "")
    if isinstance(value, ast.UnaryOp):
        return "a truth value" if isinstance(value.op, ast.Not) else _kind(value.operand, known)
    if isinstance(value, ast.Call):
        name, owner = _last(value.func), ""
        if isinstance(value.func, ast.Attribute):
            owner = ast.unparse(value.func.value)
        if owner in ("nn", "torch.nn"):
            return "a module"
        if name == "compile" and owner not in ("torch", ""):
            return ""
        if _CALLS.get(name) == "a tensor" and owner != "torch" and name not in _METHODS.split():
            return ""
        return _CALLS.get(name, "")
    return ""


# Rules about pictures and sections


def _drawing(cells: Sequence[Cell], root: Path) -> frozenset[str]:
    """Return the names that draw in a chapter: the toolkit's and miniatures' that it imports."""
    names = set[str]()
    for cell in cells:
        for node, _ in cell.statements:
            for one in ast.walk(node):
                if isinstance(one, ast.ImportFrom):
                    names |= {a.asname or a.name for a in one.names if _draws(one, a.name, root)}
    return frozenset(names)


def _draws(node: ast.ImportFrom, name: str, root: Path) -> bool:
    """Tell whether what is imported draws."""
    module = node.module or ""
    if module == "insidetorch":
        if name in DRAWN or name not in _HOME:
            return name in DRAWN
        module = f"insidetorch.{_HOME[name]}"
    path = Path(*module.split(".")).with_suffix(".py") if module else Path()
    return name in _module_draws(ROOT / path if module.startswith("insidetorch") else root / path)


@cache
def _module_draws(path: Path) -> frozenset[str]:
    """Return the functions of a module that call what draws, be it over others of the module."""
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    calls = {
        one.name: {_called(call) for call in _calls(one)}
        for one in body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }
    drawn = {
        alias.asname or alias.name
        for one in body
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("insidetorch")
        for alias in one.names
        if alias.name in DRAWN
    }
    before = set[str]()
    while drawn != before:
        before = set(drawn)
        drawn |= {name for name, called in calls.items() if called & before}
    return frozenset(drawn & set(calls)) - {"source", "listing"}


def _pictures(read: Read) -> Iterator[Finding]:
    for cell in read.cells:
        framed = {
            name.id
            for node, _ in cell.statements
            for call in _calls(node)
            if _called(call) in FRAMES & read.pictures
            for name in ast.walk(call)
            if isinstance(name, ast.Name)
        }
        for node, _ in cell.statements:
            inside = {
                id(one)
                for call in _calls(node)
                if _called(call) in FRAMES & read.pictures
                for each in [*call.args, *(keyword.value for keyword in call.keywords)]
                for one in ast.walk(each)
            }
            handed_on = bool(_touched(node) & framed)
            for call in _calls(node):
                name = _called(call)
                if name not in read.pictures:
                    continue
                if cell.section and not cell.deeper:
                    cell.section.drawn = True
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                if name in ("figure", "graph") and not _says(given.get("alt")):
                    yield Finding("picture", cell.at(call), f"{name}(…) has no alternative text")
                caption = given.get("caption")
                if name == "captioned" and len(call.args) > 1:
                    caption = call.args[1]
                if id(call) in inside or handed_on:
                    continue
                if not _says(caption) and not any(k.arg is None for k in call.keywords):
                    yield Finding("picture", cell.at(call), f"{name}(…) has no caption")
    for prose in read.prose:
        for one in re.finditer(r"!\[([^\]]*)\]\(", prose.text):
            yield Finding("picture", _line(prose, one.start()), "an image without a caption")


def _says(value: ast.AST | None) -> bool:
    """Tell whether an argument is there, and no empty text."""
    if value is None:
        return False
    return not isinstance(value, ast.Constant) or bool(str(value.value or "").strip())


def _touched(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds, or puts something into."""
    found = {name for name, _ in _bindings(node)}
    for call in _calls(node):
        if isinstance(call.func, ast.Attribute) and call.func.attr in CHANGES:
            found |= {one.id for one in ast.walk(call.func.value) if isinstance(one, ast.Name)}
    return found


def _sections(read: Read) -> Iterator[Finding]:
    """After `_pictures`, which notes where pictures are."""
    for section in read.sections:
        if section.walk and not section.drawn:
            yield Finding("drawn", section.line, section.title)
        if section.walk and not section.takeaway:
            yield Finding("takeaway", section.line, section.title)


# Rules about terms


@dataclass(frozen=True)
class _Use:
    line: int
    linked: bool
    explained: bool


def _terms(read: Read, entries: Sequence[Entry]) -> Iterator[Finding]:
    words = {name.lower(): entry for entry in entries for name in entry.names}
    uses: dict[str, list[_Use]] = {}
    for deeper in (False, True):
        for prose in read.prose:
            if prose.deeper == deeper:
                found = sorted(_uses(prose, entries, words), key=lambda each: each[0])
                for _, entry, use in found:
                    uses.setdefault(entry.term, []).append(use)
    for entry in entries:
        found = uses.get(entry.term, [])
        here = read.labels.get(entry.shown)
        is_linked = any(use.linked for use in found)
        if not found or (_everyday(entry) and not is_linked and here is None):
            continue
        first = found[0]
        if not first.linked:
            more = "" if is_linked else "; it is no link anywhere"
            yield Finding("link", first.line, f"{entry.term}{more}")
        if here is not None and here > first.line and not first.explained:
            yield Finding("later", first.line, f"{entry.term} is shown at line {here}")


def _everyday(entry: Entry) -> bool:
    return entry.term.lower() in EVERYDAY


def _uses(
    prose: Prose, entries: Sequence[Entry], words: Mapping[str, Entry]
) -> Iterator[tuple[int, Entry, _Use]]:
    for place, target in prose.linked.items():
        if target in words:
            end = prose.raw.index("`", prose.raw.index("`", place) + 1) + 1
            bold = prose.raw[max(0, place - 1) : place] == "*"
            called = re.search(r"\b(?:called|is|are)\s+(?:an?\s+|the\s+)?$", prose.raw[:place])
            explained = bold or bool(called) or bool(_EXPLAINS.match(prose.raw, end))
            yield place, words[target], _Use(_line(prose, place), True, explained)
    as_code, as_words = _patterns(tuple(entries))
    for place, code in prose.code.items():
        if code in as_code:
            yield place, words[code.lower()], _Use(_line(prose, place), False, False)
    for found in as_words.finditer(prose.text) if as_words.pattern else ():
        name = " ".join(found[1].split()).lower()
        explained = prose.text[max(0, found.start() - 2) : found.start()] == "**"
        yield found.start(), words[name], _Use(_line(prose, found.start()), False, explained)


@cache
def _patterns(entries: tuple[Entry, ...]) -> tuple[frozenset[str], re.Pattern[str]]:
    """Return the terms that are code, and a pattern that finds the others, the longest first."""
    forms = [name for entry in entries for name in (entry.term, *entry.also)]
    code = frozenset(name.strip("`") for name in forms if name.startswith("`"))
    plain = sorted((name.replace("`", "") for name in forms if "`" not in name), key=len)
    each = [
        spaced if name != name.lower() else f"(?i:{spaced})"
        for name in reversed(plain)
        for spaced in [r"\s+".join(map(re.escape, name.split(" ")))]
    ]
    either = "|".join(each)
    return code, re.compile(rf"(?<![\w-])({either})(?:s|es)?(?![\w-])" if either else "")


def _line(prose: Prose, place: int) -> int:
    return prose.line + prose.raw.count("\n", 0, place)


# Small things about syntax


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _called(call: ast.Call) -> str:
    """Return the name of what is called, if it is a plain name."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _last(node: ast.AST) -> str:
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
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
            yield from _bindings(inner)


def _unpacked(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        paired = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for at, one in enumerate(target.elts):
            if paired:
                yield from _unpacked(one, value.elts[at])  # type: ignore[attr-defined]
            elif isinstance(one, ast.Name):
                yield one.id, value if _compares(value) else None


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


# The command


def chapters(project: Project) -> list[Chapter]:
    """Return the chapters of the book, and appendices that are held to the rules."""
    return [
        page
        for page in project.pages(project.limits())
        if isinstance(page, Chapter) and (page.doc.startswith("notebooks/") or declared(page))
    ]


def report(found: Sequence[tuple[Chapter, Sequence[Finding]]], named: Iterable[str] = ()) -> str:
    """Return the counts by chapter and rule, and the findings of those named and those held."""
    width = max((len(Path(chapter.doc).name) for chapter, _ in found), default=0) + 2
    lines = [" " * width + "".join(f"{rule:>9}" for rule in RULES)]
    for chapter, listed in found:
        counts = Counter(one.rule for one in listed)
        name = f"{'*' if declared(chapter) else ' '} {Path(chapter.doc).name}"
        lines.append(f"{name:<{width}}" + "".join(f"{counts[rule] or '·':>9}" for rule in RULES))
    lines.append("* is held to the rules; its front matter has `insidetorch: {form: new}`")
    lines += [f"  {rule + ':':<10}{meaning}" for rule, meaning in RULES.items()]
    wanted = {Path(name).stem for name in named}
    for chapter, listed in found:
        if declared(chapter) or Path(chapter.doc).name in wanted:
            lines += [f"{chapter.doc}.md:{one.line}: {one.rule}: {one.said}" for one in listed]
    return "\n".join(lines)


def main(named: Sequence[str]) -> int:
    """Print the report; return 1 if a chapter that is held to the rules breaks one."""
    entries = read_glossary(ROOT / GLOSSARY)
    found = [(one, findings(one, entries)) for one in chapters(open_project(ROOT))]
    print(report(found, named))
    return int(any(listed and declared(chapter) for chapter, listed in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
