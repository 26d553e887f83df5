"""Whether a definition is marked as deprecated, read from its text."""

from __future__ import annotations

import ast
import re
import textwrap

from insidetorch.drift.definitions import Found

_CPP = re.compile(r"C10_DEPRECATED\w*|\[\[deprecated[^\]]*\]\]|TORCH_WARN_DEPRECATION")
_DOCUMENTED = re.compile(r"\.\. deprecated::|\b(?:is|are|been) deprecated\b|\[deprecated\]", re.I)
_PERHAPS = re.compile(r"deprecat|FutureWarning", re.I)  # else Python's text need not be parsed


def deprecation(found: Found) -> str:
    """Return how a definition says that it is deprecated, or "" if it does not.

    A decorator or attribute marks it; a warning in the body may stand for one way of calling it.
    """
    code = found.definition.text
    if found.definition.language == "cpp":
        mark = _CPP.search("\n".join(found.definition.lines[:3]))
        return f"marked {mark[0]}" if mark else ""
    if found.definition.language == "yaml" or not _PERHAPS.search(code):
        return ""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:
        return ""
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ""
    for decorator in node.decorator_list:
        name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if "deprecated" in name.lower():
            return f"marked @{name}"
    scope = _constructor(node) if isinstance(node, ast.ClassDef) else node
    for call in ast.walk(scope) if scope is not None else ():
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("warn"):
            said = ast.unparse(call)
            if re.search(r"\b(?:Future|Deprecation)Warning\b", said):
                return "may warn that something is deprecated"
    documented = _DOCUMENTED.search((ast.get_docstring(node) or "").split("\n\n")[0])
    return f"its documentation says “{documented[0]}”" if documented else ""


def _constructor(node: ast.ClassDef) -> ast.AST | None:
    return next(
        (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None
    )
