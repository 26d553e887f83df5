"""The part of a definition that means something: comments, layout and line numbers do not count."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator

from insidetorch.locate.definition import Language

_CPP_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
  | (?P<splice>  \\\n )
  | (?P<token>   (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
               | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
               | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+'
               | \.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*
               | [^\W\d]\w*
               | \S )
    """,
    re.VERBOSE | re.DOTALL,
)


def normalise(code: str, language: Language) -> str:
    """Return `code` in a form that changes only when its meaning may have changed.

    :param code: a definition; Python may be indented.
    :return: C++: its tokens, one space apart. Python: its syntax tree without docstrings, written
        the same by every Python. YAML: its value as JSON with sorted keys.
    :raises SyntaxError: for Python that does not parse.
    """
    if language == "python":
        # A block around it takes any indentation, also where a comment or string has less.
        block = ast.parse(f"if 1:\n{code}" if code[:1].isspace() else code)
        body = block.body[0].body if code[:1].isspace() else block.body  # type: ignore[attr-defined]
        return _shape(ast.Module(body, []))
    if language == "yaml":
        import yaml

        return json.dumps(yaml.safe_load(code), sort_keys=True, default=str)
    return " ".join(token for _, token in cpp_tokens(code))


def cpp_tokens(code: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the tokens of C++, comments left out, each with its line.

    :param first: the number of the first line.
    """
    line, position = first, 0
    for match in _CPP_TOKEN.finditer(code):
        if match["token"]:
            line += code.count("\n", position, match.start())
            position = match.start()
            yield line, match["token"]


def digest(code: str, language: Language) -> str:
    """Return the SHA-256 of the normalised `code`, in hexadecimal."""
    return hashlib.sha256(normalise(code, language).encode()).hexdigest()


def _shape(node: object) -> str:
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if name != "kind"}
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and _opens_with_string(node.body):
            fields["body"] = node.body[1:]
        inside = ", ".join(
            f"{name}={_shape(value)}"
            for name, value in fields.items()
            if value is not None and value != []
        )
        if isinstance(node, ast.Constant):
            inside = repr(node.value)
        return f"{type(node).__name__}({inside})"
    if isinstance(node, list):
        return "[" + ", ".join(_shape(item) for item in node) + "]"
    return repr(node)


def _opens_with_string(body: list[ast.stmt]) -> bool:
    return bool(
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )
