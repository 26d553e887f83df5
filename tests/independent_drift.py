"""A second, separate way to compare a definition in two releases, to check drift against.

It shares no code with the toolkit: Python by `ast.unparse`, C++ by counting braces and by the
tokens of Pygments, YAML by loading the whole file. Run as

    python tests/independent_drift.py WHEEL… > tests/data/drift_checked.json

it writes what it finds for the anchors of `data/anchors.lock` in these wheels.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import yaml

Read = Callable[[str], str | None]
_GUARD = "#if !defined(TORCH_STABLE_ONLY)"


def installed() -> Read:
    """Return a reader of the installed torch."""
    spec = util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    site = Path(spec.origin).parent.parent

    def read(file: str) -> str | None:
        path = site / file
        return path.read_text(encoding="utf-8") if path.is_file() else None

    return cache(read)


def wheel(path: Path) -> tuple[str, Read]:
    """Return the release of a wheel and a reader of it."""
    archive = zipfile.ZipFile(path)
    names = set(archive.namelist())

    def read(file: str) -> str | None:
        return archive.read(file).decode() if file in names else None

    return path.name.split("-")[1], cache(read)


def verdict(old: Read, new: Read, file: str, symbol: str) -> str:
    """Return ``same``, ``other`` or ``away`` for a definition, looked for in one file alone.

    What this plain way cannot read in the installed torch, such as a field, is ``unread``.
    """
    before, after = _form(old(file), file, symbol), _form(new(file), file, symbol)
    if not before:
        return "unread"
    if not after:
        return "away"
    # Of a definition that gained overloads, the one that stayed is enough; of an operator, not.
    gained = not file.endswith(".yaml") and len(before) == 1 and before[0] in after
    return "same" if before == after or gained else "other"


def _form(text: str | None, file: str, symbol: str) -> list[Any]:
    if text is None:
        return []
    if file.endswith(".yaml"):
        return _yaml(text, symbol)
    if file.endswith((".py", ".pyi")):
        return _python(text, symbol)
    return _cpp(text.removeprefix(_GUARD), symbol)


@cache
def _loaded(text: str) -> list[dict[str, Any]]:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # type: ignore[no-any-return]


def _yaml(text: str, symbol: str) -> list[Any]:
    def name(entry: dict[str, Any]) -> str:
        return str(entry.get("func") or entry.get("name")).split("(")[0]

    entries = [entry for entry in _loaded(text) if name(entry).split(".")[0] == symbol]
    return entries or [entry for entry in _loaded(text) if name(entry) == symbol]


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


class _Bare(ast.NodeTransformer):
    """Takes the docstrings out."""

    def _strip(self, node: Any) -> Any:
        self.generic_visit(node)
        body = node.body
        first = body[0].value if body and isinstance(body[0], ast.Expr) else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            node.body = body[1:] or [ast.Pass()]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _strip


def _python(text: str, symbol: str) -> list[Any]:
    scopes: list[ast.AST] = [_parsed(text)]
    for part in symbol.split("."):
        scopes = [node for scope in scopes for node in _own(scope) if _binds(node, part)]
    stand_ins = ("setter", "overload")
    plain = [n for n in scopes if not any(
        ast.unparse(d).endswith(stand_ins) for d in getattr(n, "decorator_list", ())
    )]  # fmt: skip
    copies = [ast.parse(ast.unparse(node)) for node in plain or scopes]
    return [ast.unparse(_Bare().visit(copy)) for copy in copies]


def _own(scope: ast.AST) -> list[ast.AST]:
    """Return what stands in a scope itself, not in a function or class inside it."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(scope):
        found.append(child)
        if isinstance(child, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            found += _own(child)
    return found


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name
    return getattr(node, "name", None) == name and isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    )


def _cpp(text: str, symbol: str) -> list[Any]:
    own = re.escape(symbol.rsplit("::", 1)[-1])
    owner = symbol.split("::")[-2] if "::" in symbol else ""
    found = []
    for match in re.finditer(rf"\b{own}\b(?!::)", text):
        start = max(text.rfind(mark, 0, match.start()) for mark in (";", "{", "}", ">\n")) + 1
        opened = re.compile(r"[{;]").search(text, match.end())
        if opened is None or opened[0] == ";" or text[: match.start()].endswith(("~", "new ")):
            continue
        head = text[start : opened.start()]
        typed = re.search(rf"\b(class|struct|enum)\b[^(;{{}}]*\b{own}\b(?!.*\()", head, re.DOTALL)
        function = re.search(rf"[\w>&*]\s+(?:\w+::)*{own}\s*\(", head)
        if not (typed or function) or (owner and not _inside(text, match.start(), owner, head)):
            continue
        depth, end = 1, opened.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if depth:
            continue  # one of two openings of a class, in branches of an `#if`
        found.append(_tokens(text[start:end]))
    return found


def _inside(text: str, position: int, owner: str, head: str) -> bool:
    """Tell whether a place is inside the braces of a class or namespace called `owner`."""
    if f"{owner}::" in head:
        return True
    for opening in re.finditer(
        rf"\b(?:class|struct|namespace)\b[^;{{}}()]*\b{re.escape(owner)}\b[^;{{}}]*{{", text
    ):
        depth = 1
        for index in range(opening.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[index], 0)
            if index == position:
                return True
            if depth == 0:
                break
    return False


def _tokens(code: str) -> str:
    from pygments.lexers.c_cpp import CppLexer
    from pygments.token import Comment, Whitespace

    kept = (
        value.strip()
        for kind, value in CppLexer().get_tokens(code)
        if (kind not in Comment or kind in Comment.Preproc) and kind not in Whitespace
    )
    return " ".join("".join(kept).split())


def main(wheels: list[str]) -> None:
    """Print what became of each anchor in each wheel."""
    rows = [json.loads(line) for line in Path("data/anchors.lock").read_text().splitlines()[1:]]
    here = installed()
    found = {}
    for path in wheels:
        release, there = wheel(Path(path))
        verdicts = {
            f"{row['chapter']} {row['kind']} {row['target']}": verdict(
                here, there, row["file"], row["symbol"]
            )
            for row in rows
            if row["sha256"]
        }
        found[release] = {key: one for key, one in verdicts.items() if one != "unread"}
    print(json.dumps(found, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
