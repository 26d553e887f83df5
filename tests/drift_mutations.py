"""Seeded mutations of the sample: of Python, of C++ headers, of YAML."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from dataclasses import replace

from drift_trees import HEADERS, PYTHON, YAML, Mutation, entries

from insidetorch.drift.definitions import OPERATORS, Found, definitions, language_of, names
from insidetorch.drift.trees import Tree

_OTHER_BACKEND = re.compile(r"(?:(?:MPS|XPU|MTIA|Mkldnn|Sparse|Nested|Quantized)\w*(?:, )?)+")


Mutator = Callable[[Tree, str, random.Random], Mutation | None]


def mutations(tree: Tree, seed: int, each: int) -> list[Mutation]:
    """Return `each` mutations of every kind, drawn with a fixed seed."""
    found = []
    for number, (mutate, files) in enumerate(_KINDS):
        draw = random.Random(f"{seed} {number}")
        made: dict[str, Mutation] = {}
        for _ in range(2000):
            if len(made) == each:
                break
            mutation = mutate(tree, draw.choice(files), draw)
            if mutation is not None:
                made.setdefault(f"{mutation.file}:{mutation.symbol}", mutation)
        assert len(made) == each, f"only {len(made)} of {mutate.__name__}"
        found += made.values()
    return found


def _pick(
    tree: Tree, file: str, draw: random.Random, fits: Callable[[Found], bool]
) -> Found | None:
    known = names(tree, file)
    for name in draw.sample(known, len(known)):
        found = [one for one in definitions(tree, file, name) if one.body]
        if len(found) == 1 and fits(found[0]):
            return found[0]
    return None


def _lines(tree: Tree, file: str) -> list[str]:
    return (tree.text(file) or "").splitlines(keepends=True)


def _function(tree: Tree, file: str, symbol: str) -> ast.FunctionDef | None:
    node: ast.AST = ast.parse(tree.text(file) or "")
    for part in symbol.split("."):
        inside = [
            child
            for child in ast.walk(node)
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == part
        ]
        if not inside:
            return None
        node = inside[0]
    return node if isinstance(node, ast.FunctionDef) else None


def _python(
    tree: Tree, file: str, draw: random.Random
) -> tuple[Found, ast.FunctionDef, list[str]] | None:
    found = _pick(tree, file, draw, lambda one: True)
    node = _function(tree, file, found.definition.symbol) if found else None
    if found is None or node is None or node.end_lineno != found.definition.last:
        return None
    return found, node, _lines(tree, file)


def rename(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Rename a Python function or method."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    row = node.lineno - 1
    lines[row] = lines[row].replace(f"def {node.name}(", f"def {node.name}_renamed(", 1)
    return _made("rename", file, found, (row + 1, row + 1), lines)


def remove_parameter(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Remove the last parameter of a Python function."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    args = [a for a in node.args.args if a.arg not in ("self", "cls")]
    if (
        not args
        or node.args.defaults
        or node.args.vararg
        or node.args.kwonlyargs
        or node.args.kwarg
    ):
        return None
    last = args[-1]
    assert last.end_lineno is not None and last.end_col_offset is not None
    if last.lineno != last.end_lineno:
        return None
    line = lines[last.lineno - 1]
    cut = line[: last.col_offset].rstrip(", ") + line[last.end_col_offset :].removeprefix(",")
    if line[: last.col_offset].strip() == "":
        cut = "\n"
    lines[last.lineno - 1] = cut
    return _made("remove_parameter", file, found, (last.lineno, last.lineno), lines)


def require_parameter(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add a required parameter to a Python function."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    if node.decorator_list:
        return None
    row = node.lineno - 1
    first = node.args.args[0].arg if node.args.args else None
    if first in ("self", "cls"):
        head = re.sub(rf"\({first}\b", f"({first}, mutated", lines[row], count=1)
    else:
        head = lines[row].replace(f"{node.name}(", f"{node.name}(mutated, ", 1)
    if head == lines[row]:
        return None
    lines[row] = head
    return _made("require_parameter", file, found, (row + 1, row + 1), lines)


def change_default(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Change the default of a parameter."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    defaults = [d for d in node.args.defaults if isinstance(d, ast.Constant)]
    if not defaults:
        return None
    default = draw.choice(defaults)
    row, start, end = default.lineno - 1, default.col_offset, default.end_col_offset
    lines[row] = lines[row][:start] + "'mutated'" + lines[row][end:]
    return _made("change_default", file, found, (row + 1, row + 1), lines)


def change_body(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add a statement to the body of a Python function."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    last = node.body[-1]
    if last.lineno == node.lineno:
        return None
    lines.insert(last.lineno - 1, " " * last.col_offset + "mutated = 0\n")
    return _made("change_body", file, found, (last.lineno, last.lineno), lines)


def comment(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add comments and blank lines to a Python function; some at the start of the line."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    last = node.body[-1]
    if last.lineno == node.lineno:
        return None
    pad = " " * last.col_offset if draw.random() < 0.5 else ""
    lines.insert(last.lineno - 1, f"{pad}# mutated\n\n")
    return _made("comment", file, found, (last.lineno, last.lineno), lines, neutral=True)


def spread(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Break a Python function's parameter list over two lines."""
    got = _python(tree, file, draw)
    if got is None:
        return None
    found, node, lines = got
    row = node.lineno - 1
    changed = lines[row].replace(f"def {node.name}(", f"def {node.name}(  \n        ", 1)
    if changed == lines[row]:
        return None
    lines[row] = changed
    return _made("spread", file, found, (row + 1, row + 1), lines, neutral=True)


def _cpp(tree: Tree, file: str, draw: random.Random, fits: Callable[[str], bool]) -> Found | None:
    return _pick(tree, file, draw, lambda found: fits(found.definition.text))


def cpp_rename(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Rename a C++ function or type where it is defined."""
    found = _cpp(tree, file, draw, lambda text: "{" in text)
    if found is None:
        return None
    what, lines = found.definition, _lines(tree, file)
    own = what.symbol.rsplit("::", 1)[-1]
    head = lines[what.first - 1]
    if own.startswith(("operator", "~")) or head.count(own) != 1 or not own.isidentifier():
        return None
    if what.symbol.split("::")[-2:-1] == [own]:
        return None  # a constructor is named after its class
    lines[what.first - 1] = re.sub(rf"\b{own}\b", f"{own}_renamed", head)
    if lines[what.first - 1] == head:
        return None
    return _made("cpp_rename", file, found, (what.first, what.first), lines)


def cpp_parameter(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Remove a parameter of a C++ function."""
    found = _cpp(tree, file, draw, lambda text: "{" in text)
    if found is None or "(" not in found.definition.signature:
        return None
    what, lines = found.definition, _lines(tree, file)
    for row in range(what.first - 1, min(what.first + 3, what.last)):
        inside = re.search(r"(\w\([^()]+), [^(),]+\)", lines[row])
        if inside:
            lines[row] = lines[row][: inside.end(1)] + ")" + lines[row][inside.end() :]
            return _made("cpp_parameter", file, found, (row + 1, row + 1), lines)
        if "{" in lines[row]:
            break
    return None


def cpp_body(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add a statement inside a C++ definition of several lines."""
    found = _cpp(tree, file, draw, lambda text: text.count("\n") > 2)
    if found is None:
        return None
    what, lines = found.definition, _lines(tree, file)
    rows = [row for row in range(what.first, what.last - 1) if re.match(r"\s+return\b", lines[row])]
    if not rows:
        return None
    row = draw.choice(rows)
    lines[row] = lines[row].replace("return", "mutated(); return", 1)
    return _made("cpp_body", file, found, (row + 1, row + 1), lines)


def _members(lines: list[str], found: Found) -> list[int]:
    """Return the rows of plain data members of a class, in one line each."""
    what = found.definition
    member = re.compile(
        r"\s+(?!return|using|friend|delete)(?:const )?[\w:<>*]+ \w+_?(?:\{[\w:]*\}| = \w+)?;\n"
    )
    return [row for row in range(what.first, what.last - 1) if member.fullmatch(lines[row])]


def cpp_swap(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Swap two members of a class."""
    found = _cpp(tree, file, draw, lambda text: re.match(r"\s*(class|struct)\b", text) is not None)
    if found is None:
        return None
    lines = _lines(tree, file)
    rows = [row for row in _members(lines, found) if not _inner(tree, file, found, row)]
    if len(rows) < 2:
        return None
    one, other = sorted(draw.sample(rows, 2))
    lines[one], lines[other] = lines[other], lines[one]
    made = _made("cpp_swap", file, found, (one + 1, one + 1), lines)
    return replace(made, swapped=other + 1)


def cpp_move(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Move a member of a class to the end of a class in another header."""
    found = _cpp(tree, file, draw, lambda text: re.match(r"\s*(class|struct)\b", text) is not None)
    there = draw.choice([one for one in HEADERS if one != file])
    home = _cpp(tree, there, draw, lambda text: re.match(r"\s*(class|struct)\b", text) is not None)
    if found is None or home is None:
        return None
    lines, others = _lines(tree, file), _lines(tree, there)
    rows = [row for row in _members(lines, found) if not _inner(tree, file, found, row)]
    last = home.definition.last - 1
    if not rows or others[last].strip() != "};":
        return None
    row = draw.choice(rows)
    moved = lines.pop(row)
    # The new member takes a line of its own just before the class ends.
    others.insert(last, moved)
    also = (there, "".join(others), (last + 1, last + 1))
    return replace(_made("cpp_move", file, found, (row + 1, row + 1), lines), also=also)


def _inner(tree: Tree, file: str, found: Found, row: int) -> bool:
    """Tell whether a row lies in a definition of several lines inside the class."""
    what = found.definition
    spans = [
        (inner.definition.first, inner.definition.last)
        for name in names(tree, file)
        for inner in definitions(tree, file, name)
    ]
    return any(
        what.first <= first < last <= what.last and first <= row + 1 <= last
        for first, last in spans
        if (first, last) != (what.first, what.last)
    )


def cpp_comment(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add comments of both kinds inside a C++ definition."""
    found = _cpp(tree, file, draw, lambda text: text.count("\n") > 2)
    if found is None:
        return None
    what, lines = found.definition, _lines(tree, file)
    rows = [
        row
        for row in range(what.first, what.last - 1)
        if lines[row].rstrip().endswith(";") and "//" not in lines[row] and "#" not in lines[row]
    ]
    if not rows:
        return None
    row = draw.choice(rows)
    lines[row] = "  // mutated {\n" + lines[row].rstrip() + " /* mutated; */ // mutated\n"
    return _made("cpp_comment", file, found, (row + 1, row + 1), lines, neutral=True)


def cpp_space(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Break a C++ line in two at a comma, or widen it."""
    found = _cpp(tree, file, draw, lambda text: ", " in text and "#" not in text)
    if found is None:
        return None
    what, lines = found.definition, _lines(tree, file)
    rows = [
        row
        for row in range(what.first - 1, what.last)
        if ", " in lines[row]
        and "//" not in lines[row]
        and '"' not in lines[row]
        and not lines[row].lstrip().startswith("*")
    ]
    if not rows:
        return None
    row = draw.choice(rows)
    lines[row] = lines[row].replace(", ", ",\n\t   ", 1)
    return _made("cpp_space", file, found, (row + 1, row + 1), lines, neutral=True)


def _entry(tree: Tree, file: str, draw: random.Random) -> tuple[Found, list[str]] | None:
    if draw.random() < 0.2:  # an entry that most likely has no anchor
        found = _pick(tree, file, draw, lambda one: True)
        return (found, _lines(tree, file)) if found else None
    there = definitions(tree, file, draw.choice(entries(tree, file)))
    return (there[0], _lines(tree, file)) if len(there) == 1 else None


def yaml_schema(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add an argument to the schema of an entry."""
    got = _entry(tree, file, draw)
    if got is None:
        return None
    found, lines = got
    row = found.definition.first - 1
    changed = re.sub(r"\((?=\w)", "(Scalar mutated, ", lines[row], count=1)
    if changed == lines[row]:
        return None
    lines[row] = changed
    return _made("yaml_schema", file, found, (row + 1, row + 1), lines)


def yaml_value(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Change another value of an entry."""
    return _value(tree, file, draw, neutral=False)


def yaml_backend(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Change the kernel of a backend that the book does not speak of."""
    return _value(tree, file, draw, neutral=True)


def _value(tree: Tree, file: str, draw: random.Random, *, neutral: bool) -> Mutation | None:
    got = _entry(tree, file, draw)
    if got is None or got[0].definition.last == got[0].definition.first:
        return None
    found, lines = got
    row = found.definition.last - 1
    value = re.match(r"\s+([\w, ]+): [\w:]+\s*$", lines[row])
    if value is None or neutral != bool(_OTHER_BACKEND.fullmatch(value[1])):
        return None
    lines[row] = lines[row].rstrip() + "_mutated\n"
    kind = "yaml_backend" if neutral else "yaml_value"
    return _made(kind, file, found, (row + 1, row + 1), lines, neutral=neutral)


def yaml_remove(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Remove an entry."""
    got = _entry(tree, file, draw)
    if got is None:
        return None
    found, lines = got
    what = found.definition
    del lines[what.first - 1 : what.last]
    return _made("yaml_remove", file, found, (what.first, what.last), lines)


def yaml_comment(tree: Tree, file: str, draw: random.Random) -> Mutation | None:
    """Add a comment and a blank line to an entry."""
    got = _entry(tree, file, draw)
    if got is None or got[0].definition.last == got[0].definition.first:
        return None
    found, lines = got
    row = found.definition.first
    lines.insert(row, "  # mutated: yes\n\n")
    return _made("yaml_comment", file, found, (row, row), lines, neutral=True)


def _made(
    kind: str, file: str, found: Found, touched: tuple[int, int], lines: list[str],
    *, neutral: bool = False,
) -> Mutation:  # fmt: skip
    text = "".join(lines)
    if language_of(file) == "python":
        ast.parse(text)
    return Mutation(kind, file, found.definition.symbol, touched, text, neutral)


_KINDS: tuple[tuple[Mutator, tuple[str, ...]], ...] = (
    *((mutate, PYTHON) for mutate in (
        rename, remove_parameter, require_parameter, change_default, change_body, comment, spread,
    )),
    *((mutate, HEADERS) for mutate in (
        cpp_rename, cpp_parameter, cpp_body, cpp_swap, cpp_move, cpp_comment, cpp_space,
    )),
    *((mutate, YAML) for mutate in (yaml_schema, yaml_value, yaml_remove, yaml_comment)),
    (yaml_backend, (OPERATORS,)),
)  # fmt: skip
