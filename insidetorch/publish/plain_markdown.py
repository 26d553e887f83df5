"""MyST Markdown as plain Markdown, for notebooks that are read outside the site."""

from __future__ import annotations

import re
from collections.abc import Callable

_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w-]+)\}(?P<title>[^\n]*))?[^\n]*\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
TARGET = re.compile(r"^\((?P<label>[\w-]+)\)=[ \t]*\n?", re.MULTILINE)
# A role, a link to another page, or code, which is left alone.
_INLINE = re.compile(
    r"\{(?P<role>[a-z:]+)\}`(?P<text>[^`]+?)(?:\s*<(?P<target>[^<>`]+)>)?`"
    r"|\]\((?P<path>(?![a-z]+:)[^\s()#]+)\.(?:md|ipynb)(?P<anchor>#[^\s()]*)?\)"
    r"|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)",
    re.DOTALL,
)
_OPTION = re.compile(r"\A(?::[\w-]+:[^\n]*\n)+\n*")
_LINKING = frozenset({"doc", "ref", "term", "numref"})

Place = Callable[[str, str], str]


def plain(text: str, place: Place) -> str:
    """Return a cell's MyST Markdown as Markdown that every notebook reader shows.

    Labels are left out, boxes become quotations with a bold title, and roles their text: a link
    where `place` knows an address.

    :param place: returns the address of what a role leads to, given the role and its target, or
        an empty text; for a Markdown link to another page the role is ``doc``.
    """
    parts: list[str] = []
    end = 0
    for block in _FENCE.finditer(text):
        parts.append(_inline(text[end : block.start()], place))
        parts.append(_block(block, place))
        end = block.end()
    parts.append(_inline(text[end:], place))
    return "".join(parts).strip("\n")


def _block(block: re.Match[str], place: Place) -> str:
    """Return a fenced block: code as it is, a directive as a quotation."""
    if block["name"] is None:
        return block[0]
    title = (block["title"] or "").strip()
    body = _inline(_OPTION.sub("", block["body"]), place).strip("\n")
    if block["name"] != "admonition" and title:
        body, title = f"{title}\n{body}".rstrip("\n"), ""
    lines = [f"**{title}**", "", *body.splitlines()] if title else body.splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _inline(text: str, place: Place) -> str:
    def written(found: re.Match[str]) -> str:
        if found["tick"]:
            return found[0]
        if found["path"]:
            goal = place("doc", found["path"])
            return f"]({goal}{found['anchor'] or ''})" if goal else found[0]
        if found["role"] not in _LINKING:
            return f"[{found['text']}]" if found["role"].startswith("cite") else found["text"]
        goal = place(found["role"], found["target"] or found["text"])
        return f"[{found['text']}]({goal})" if goal else found["text"]

    return _INLINE.sub(written, TARGET.sub("", text))
