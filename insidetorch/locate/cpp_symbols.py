"""What one C++ file defines: names, kinds and lines, read with tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_PLATFORMS_ELSEWHERE = rb"_WIN32|_MSC_VER|__APPLE__|__ANDROID__|C10_MOBILE"
_STRING = rb'"(?:\\.|[^"\\\n])*"'
_ARGUMENTS = rb"\((?:[^()\"]|%b|\((?:[^()\"]|%b|\([^()\"]*\))*\))*\)" % (_STRING, _STRING)
_EXPORT = re.compile(
    rb"\b(?:(?:[A-Z][A-Z0-9]*_)+(?:API|EXPORT|HIDDEN|IMPORT|VISIBILITY_HIDDEN)"
    rb"|C10_(?:NODISCARD|UNUSED|NOINLINE|RESTRICT|HOST_DEVICE|HOST|DEVICE|ALWAYS_INLINE\w*"
    rb"|LAUNCH_BOUNDS_\d\([^()]*\)|DEPRECATED(?:_MESSAGE" + _ARGUMENTS + rb")?)"
    rb"|FORCE_INLINE|__ubsan_ignore\w*__|__forceinline__|__global__|__device__|__host__)(?!\w)"
)
_BEFORE_NAME = re.compile(
    rb"\b(?:class|struct|union)\s+([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?=\s+[A-Za-z_]\w*\s*[:{;f])"
)
_STATEMENT = re.compile(
    rb"^[ \t]*[A-Z][A-Z0-9]*_[A-Z0-9_]+" + _ARGUMENTS + rb"[ \t]*$(?!\s*[{:;.,)+-])",
    re.MULTILINE,
)
_UNREADABLE = re.compile(
    rb"(?<==)\s*\{[^{}();\n]*\}(?=\s*[,)])"  # a default argument in braces
    rb"|(?:->|\.)operator(?:\[\]|\(\)|[^\w\s(]+)(?=\()"  # a call of an operator by name
    rb"|(?<=\boperator)~(?=\s*\()"
)
_DIRECTIVE = re.compile(
    rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_HIDDEN_BEGIN = re.compile(rb"\bHIDDEN_NAMESPACE_BEGIN\(([\w, ]+)\)")
_HIDDEN_END = re.compile(rb"\bHIDDEN_NAMESPACE_END\([\w, ]+\)")
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)

_TYPES = {
    "class_specifier": "class",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
}
_NAMES = {
    "identifier",
    "field_identifier",
    "type_identifier",
    "operator_name",
    "operator_cast",
    "destructor_name",
    "template_function",
    "template_method",
    "template_type",
    "qualified_identifier",
}


@dataclass(frozen=True)
class Symbol:
    """One declaration or definition in a C++ file.

    :param path: the name's parts, outermost first; the last is its own.
    :param optional: how many leading parts, by index, a caller may leave out (inline namespaces).
    :param kind: class, struct, union, enum, enumerator, function, alias, concept, variable, macro.
    :param first: number of its first line, from 1.
    :param last: number of its last line.
    :param body: whether it is defined here, not only declared.
    :param signature: its text up to the body, on one line.
    """

    path: tuple[str, ...]
    optional: frozenset[int]
    kind: str
    first: int
    last: int
    body: bool
    signature: str

    @property
    def name(self) -> str:
        """The full name."""
        return "::".join(self.path)


def split_name(name: str) -> tuple[str, ...]:
    """Return the parts of a qualified name; ``::`` inside template arguments does not split."""
    parts, depth, part = [], 0, ""
    text = re.sub(r"\s+", " ", name.strip())
    index = 0
    while index < len(text):
        if "operator" in part[:8] and text[index] in "<>":
            part += text[index]
        elif text[index] == "<":
            depth, part = depth + 1, part + "<"
        elif text[index] == ">":
            depth, part = depth - 1, part + ">"
        elif depth == 0 and text.startswith("::", index):
            parts.append(part)
            part, index = "", index + 1
        else:
            part += text[index]
        index += 1
    return tuple(_tidy(part) for part in [*parts, part] if part)


def bare(part: str) -> str:
    """Return one part of a name without template arguments."""
    return part if part.startswith("operator") else part.split("<", 1)[0]


def blank_macros(source: bytes) -> bytes:
    """Return C++ text with export and attribute macros blanked at equal length.

    The grammar takes ``class TORCH_API Node`` for a variable, so such words become spaces; offsets
    and lines stay as they are. ``HIDDEN_NAMESPACE_BEGIN(a, b)`` becomes the namespace it opens.
    """
    source = _EXPORT.sub(_spaces, source)
    source = _BEFORE_NAME.sub(lambda m: m[0][: m.start(1) - m.start()] + b" " * len(m[1]), source)
    source = _HIDDEN_BEGIN.sub(
        lambda m: (b"namespace " + b"::".join(p.strip() for p in m[1].split(b",")) + b" {").ljust(
            len(m[0])
        ),
        source,
    )
    source = _HIDDEN_END.sub(lambda m: b"}".ljust(len(m[0])), source)
    return _STATEMENT.sub(_spaces, source)


def choose_branches(source: bytes) -> bytes:
    """Return C++ text with one branch of each conditional kept, the rest blanked at equal length.

    Branches for Windows, macOS and mobile are dropped, otherwise the first branch stays: the
    grammar cannot read two openings of one class.
    """
    out = bytearray(source)
    stack: list[list[bool]] = []  # per conditional: [this branch is kept, some branch was kept]
    position = 0
    for match in _DIRECTIVE.finditer(source):
        if not all(kept for kept, _ in stack):
            _blank(out, position, match.start())
        word, condition = match[1], match[2].strip()
        if word in (b"if", b"ifdef", b"ifndef"):
            kept = not _elsewhere(word, condition)
            stack.append([kept, kept])
        elif word == b"endif":
            if stack:
                stack.pop()
        elif stack:
            kept = not stack[-1][1] and (word == b"else" or not _elsewhere(b"if", condition))
            stack[-1] = [kept, stack[-1][1] or kept]
        _blank(out, match.start(), match.end())
        position = match.end()
    return bytes(out)


def keep_all_branches(source: bytes) -> bytes:
    """Return C++ text with the conditionals' own lines blanked and every branch kept."""
    return _DIRECTIVE.sub(_spaces, source)


def symbols(source: bytes, *, all_branches: bool = False) -> tuple[Symbol, ...]:
    """Return what a C++ file declares and defines, in order.

    :param source: the file's bytes.
    :param all_branches: keep every branch of ``#if``; finds more names, with less certain lines.
    """
    blanked = blank_macros(_MACRO.sub(_spaces, source))
    blanked = keep_all_branches(blanked) if all_branches else choose_branches(blanked)
    tree = _parser().parse(_UNREADABLE.sub(_readable, blanked))
    found = [*_walk(tree.root_node, blanked, (), frozenset()), *_macros(source)]
    return tuple(sorted(found, key=lambda symbol: (symbol.first, symbol.last)))


@cache
def _parser() -> Parser:
    import tree_sitter_cpp
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_cpp.language()))


def _walk(
    node: Node, source: bytes, scope: tuple[str, ...], optional: frozenset[int]
) -> Iterator[Symbol]:
    for child in node.named_children:
        if child.type == "namespace_definition":
            yield from _namespace(child, source, scope, optional)
        elif child.type == "template_declaration":
            yield from _member(child, _templated(child), source, scope, optional)
        elif child.type in ("linkage_specification", "declaration_list", "ERROR"):
            yield from _walk(child, source, scope, optional)
        else:
            yield from _member(child, child, source, scope, optional)


def _namespace(
    node: Node, source: bytes, scope: tuple[str, ...], optional: frozenset[int]
) -> Iterator[Symbol]:
    name = node.child_by_field_name("name")
    parts = split_name(_text(name, source)) if name else ("(anonymous)",)
    inline = name is None or any(child.type == "inline" for child in node.children)
    body = node.child_by_field_name("body")
    if inline:
        optional = optional | set(range(len(scope), len(scope) + len(parts)))
    if body:
        yield from _walk(body, source, scope + parts, optional)


def _templated(node: Node) -> Node:
    inner = node.named_children[-1] if node.named_children else node
    return _templated(inner) if inner.type == "template_declaration" else inner


def _member(
    outer: Node, node: Node, source: bytes, scope: tuple[str, ...], optional: frozenset[int]
) -> Iterator[Symbol]:
    def symbol(path: tuple[str, ...], kind: str, body: Node | None, *, defined: bool) -> Symbol:
        end = body.start_byte if body else outer.end_byte
        text = source[outer.start_byte : end].decode("utf-8", "replace")
        return Symbol(
            scope + path,
            optional,
            kind,
            outer.start_point[0] + 1,
            outer.end_point[0] + 1,
            defined,
            one_line(text),
        )

    if node.type in _TYPES:
        yield from _type(outer, node, source, scope, optional)
        return
    if node.type == "function_definition":
        path = _declared(node, source)
        body = node.child_by_field_name("body")
        if path:
            yield symbol(path, "function", body, defined=True)
        return
    if node.type in ("declaration", "field_declaration", "type_definition"):
        inner = node.child_by_field_name("type")
        if inner is not None and inner.type in _TYPES:
            yield from _type(outer, inner, source, scope, optional)
    if node.type in ("declaration", "field_declaration"):
        for declarator in node.children_by_field_name("declarator"):
            function = _function(declarator) is not None
            path = _name(declarator, source)
            if path:
                kind = "function" if function else "variable"
                yield symbol(path, kind, None, defined=not function)
    elif node.type == "type_definition":
        for declarator in node.children_by_field_name("declarator"):
            path = _name(declarator, source)
            if path:
                yield symbol(path, "alias", None, defined=True)
    elif node.type in ("alias_declaration", "concept_definition"):
        name = node.child_by_field_name("name")
        if name:
            kind = "alias" if node.type == "alias_declaration" else "concept"
            yield symbol((_tidy(_text(name, source)),), kind, None, defined=True)


def _type(
    outer: Node, node: Node, source: bytes, scope: tuple[str, ...], optional: frozenset[int]
) -> Iterator[Symbol]:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None:
        if body:
            yield from _walk(body, source, scope, optional)
        return
    own = split_name(_text(name, source))
    if not own:
        return
    path = scope + own
    end = body.start_byte if body else outer.end_byte
    signature = one_line(source[outer.start_byte : end].decode("utf-8", "replace"))
    first, last = outer.start_point[0] + 1, outer.end_point[0] + 1
    kind = _TYPES[node.type]
    yield Symbol(path, optional, kind, first, last, body is not None, signature)
    if body and kind == "enum":
        for child in body.named_children:
            label = child.child_by_field_name("name")
            if child.type == "enumerator" and label:
                row = child.start_point[0] + 1, child.end_point[0] + 1
                text = one_line(_text(child, source))
                yield Symbol(
                    (*path, _text(label, source)), optional, "enumerator", *row, True, text
                )
    elif body:
        yield from _walk(body, source, path, optional)


def _declared(node: Node, source: bytes) -> tuple[str, ...]:
    declarator = node.child_by_field_name("declarator")
    return _name(declarator, source) if declarator else ()


def _function(node: Node | None) -> Node | None:
    while node is not None:
        if node.type in ("function_declarator", "operator_cast"):
            inner = node.child_by_field_name("declarator")
            pointer = inner is not None and inner.type == "parenthesized_declarator"
            return None if pointer else node
        if node.type in _NAMES or not node.named_children:
            return None
        node = node.child_by_field_name("declarator") or node.named_children[-1]
    return None


def _name(node: Node, source: bytes) -> tuple[str, ...]:
    current: Node | None = node
    while current is not None:
        if current.type in _NAMES:
            if current.type == "qualified_identifier":
                deepest = current
                while deepest.type == "qualified_identifier":
                    inner = deepest.child_by_field_name("name")
                    if inner is None:
                        break
                    deepest = inner
                if deepest.type == "operator_cast":
                    head = source[current.start_byte : deepest.start_byte].decode()
                    return (*split_name(head), _cast(deepest, source))
            if current.type == "operator_cast":
                return (_cast(current, source),)
            return split_name(_text(current, source))
        following = current.child_by_field_name("declarator")
        if following is None:
            following = next(
                (
                    child
                    for child in current.named_children
                    if child.type in _NAMES or child.type.endswith("declarator")
                ),
                None,
            )
        current = following
    return ()


def _cast(node: Node, source: bytes) -> str:
    return _tidy(re.sub(r"\(.*", "", _text(node, source), flags=re.DOTALL))


def _macros(source: bytes) -> Iterator[Symbol]:
    line, position = 1, 0
    for match in _MACRO.finditer(source):
        line += source.count(b"\n", position, match.start())
        position = match.start()
        text = match[0].decode("utf-8", "replace")
        head = re.match(r"\s*#\s*define\s+\w+(?:\([^)]*\))?", text)
        yield Symbol(
            (match[1].decode(),),
            frozenset(),
            "macro",
            line,
            line + text.count("\n"),
            True,
            one_line(head[0] if head else text),
        )


def one_line(text: str) -> str:
    """Return C++ text without comments, on one line."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text.replace("\\\n", " ")).strip().rstrip(";").rstrip()


def _tidy(part: str) -> str:
    part = re.sub(r"\s+", " ", part.strip())
    return re.sub(r"(?<=\W) | (?=\W)", "", part)


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _readable(match: re.Match[bytes]) -> bytes:
    text = match[0]
    if text == b"~":
        return b"!"
    return (b"->at" if b"operator" in text else b"0").ljust(len(text))


def _spaces(match: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", match[0])


def _blank(text: bytearray, start: int, end: int) -> None:
    text[start:end] = re.sub(rb"[^\n]", b" ", bytes(text[start:end]))


def _elsewhere(word: bytes, condition: bytes) -> bool:
    if word == b"ifndef":
        return False
    if word == b"ifdef":
        return re.fullmatch(_PLATFORMS_ELSEWHERE, condition) is not None
    if condition == b"0":
        return True
    terms = [term.strip() for term in re.split(rb"\|\|", condition)]
    return all(
        re.match(rb"\(?\s*defined\s*\(?\s*(?:" + _PLATFORMS_ELSEWHERE + rb")\b", term)
        for term in terms
    )
