"""The rules about cells, pictures and sections, each a function that returns what breaks it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping

from insidetorch.publish.two_layers import CHECKS
from reader.page import Cell, Finding, Read, line_of
from reader.syntax import FRAMES, bindings, called, calls, compares, last, short

LINES, LINES_WITH_COMMENT, WITHOUT_COMMENT = 8, 10, 6
_CHANGES = """append appendleft extend add update insert setdefault pop popitem remove discard clear
    write put __setitem__ setattr delattr"""
CHANGES = frozenset(_CHANGES.split())


def _in_sight(read: Read) -> list[Cell]:
    return [cell for cell in read.cells if cell.seen and not cell.deeper]


def lengths(read: Read) -> Iterator[Finding]:
    """Find cells of which more is seen than is read at one go."""
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
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return "#" in code
    return any(token.type == tokenize.COMMENT for token in tokens)


def checks(read: Read) -> Iterator[Finding]:
    """Find comparisons in sight whose value a later check reads, and checks that do not fold."""
    compared: dict[str, tuple[int, bool]] = {}
    for cell in read.cells:
        for node, layer in cell.statements:
            seen = layer == "seen" and not cell.deeper
            if seen:
                for call in calls(node):
                    if called(call) in CHECKS:
                        said = f"{called(call)}(…) inside a statement does not fold"
                        yield Finding("check", cell.at(call), said)
                for each in ast.walk(node):
                    if isinstance(each, ast.Assert):
                        yield Finding("check", cell.at(each), "assert")
            if layer == "check":
                for name in sorted(_needed(node)):
                    line, is_compared = compared.get(name, (0, False))
                    if is_compared:
                        yield Finding("check", line, f"a comparison makes {name!r} for a check")
            for name, value in bindings(node):
                compared[name] = (cell.at(node), seen and compares(value))


def _needed(node: ast.stmt) -> set[str]:
    """Return the names that the condition of a check reads, or what prepares one."""
    wanted: list[ast.AST] = [node]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if called(call) in CHECKS:
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


def statements(read: Read) -> Iterator[Finding]:
    """Find code that nobody types who wants to be understood."""
    for cell in _in_sight(read):
        for node, layer in cell.statements:
            if layer != "seen":
                continue
            for one in ast.walk(node):
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Tuple):
                    yield Finding("tuple", cell.at(one), short(one))
                elif _is_trick(one):
                    yield Finding("trick", cell.at(one), short(one))


def _is_trick(node: ast.AST) -> bool:
    if isinstance(node, ast.Lambda):
        return _has_effect(node.body)
    return isinstance(node, ast.Subscript) and _is_formatted(node.value)


def _has_effect(body: ast.AST) -> bool:
    for one in ast.walk(body):
        if isinstance(one, ast.NamedExpr):
            return True
        if isinstance(one, ast.Call) and last(one.func) in CHANGES and not _of_library(one.func):
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


def kinds(read: Read) -> Iterator[Finding]:
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
            for name, value in bindings(node):
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
    by_syntax: list[tuple[type | tuple[type, ...], str]] = [
        ((ast.List, ast.ListComp), "a list"), ((ast.Dict, ast.DictComp), "a dictionary"),
        ((ast.Set, ast.SetComp), "a set"), (ast.Tuple, "a tuple"), (ast.JoinedStr, "a text"),
        (ast.Compare, "a truth value"), (ast.Lambda, "a function"),
        ((ast.FunctionDef, ast.AsyncFunctionDef), "a function"), (ast.ClassDef, "a class"),
    ]  # fmt: skip
    for types, kind in by_syntax:
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
        name, owner = last(value.func), ""
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


def pictures(read: Read) -> Iterator[Finding]:
    """Find pictures without words, and note which sections have a picture."""
    own = _own_helpers(read)
    for cell in read.cells:
        nodes = [node for node, _ in cell.statements]
        frames = [c for node in nodes for c in calls(node) if called(c) in FRAMES & read.pictures]
        framed = {
            one.id for frame in frames for one in ast.walk(frame) if isinstance(one, ast.Name)
        }
        inside = {
            id(one)
            for frame in frames
            for given in (*frame.args, *(keyword.value for keyword in frame.keywords))
            for one in ast.walk(given)
        }
        for node in nodes:
            # What a helper draws is framed where the helper is called.
            excused = isinstance(node, ast.FunctionDef) or bool(_touched(node) & framed)
            for call in calls(node):
                name = called(call)
                drawn = name in read.pictures or name in own
                if drawn and cell.section and not cell.deeper:
                    cell.section.drawn |= not isinstance(node, ast.FunctionDef)
                if not drawn:
                    continue
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                if name in ("figure", "graph") and not _says(given.get("alt")):
                    yield Finding("picture", cell.at(call), f"{name}(…) has no alternative text")
                caption = given.get("caption")
                if name == "captioned" and len(call.args) > 1:
                    caption = call.args[1]
                known = _says(caption) or None in given or own.get(name, False)
                if not known and not excused and id(call) not in inside:
                    yield Finding("picture", cell.at(call), f"{name}(…) has no caption")
    for prose in read.prose:
        for place in prose.images:
            yield Finding("picture", line_of(prose, place), "an image without a caption")


def _own_helpers(read: Read) -> dict[str, bool]:
    """Return the functions of the chapter that draw, and whether they give a caption."""
    found: dict[str, bool] = {}
    for cell in read.cells:
        for node, _ in cell.statements:
            if isinstance(node, ast.FunctionDef):
                drawing = [c for c in calls(node) if called(c) in read.pictures | found.keys()]
                if drawing:
                    found[node.name] = any(
                        _says(keyword.value) and keyword.arg == "caption"
                        for call in drawing
                        for keyword in call.keywords
                    ) or any(called(call) == "captioned" for call in drawing)
    return found


def _says(value: ast.AST | None) -> bool:
    """Tell whether an argument is there, and no empty text."""
    if value is None:
        return False
    return not isinstance(value, ast.Constant) or bool(str(value.value or "").strip())


def _touched(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds, or puts something into."""
    found = {name for name, _ in bindings(node)}
    for call in calls(node):
        if isinstance(call.func, ast.Attribute) and call.func.attr in CHANGES:
            found |= {one.id for one in ast.walk(call.func.value) if isinstance(one, ast.Name)}
    return found


def sections(read: Read) -> Iterator[Finding]:
    """Find sections of the walk that lack their parts; `pictures` notes before where those are."""
    for section in read.sections:
        if section.walk and not section.drawn:
            yield Finding("drawn", section.line, section.title)
        if section.walk and not section.takeaway:
            yield Finding("takeaway", section.line, section.title)
