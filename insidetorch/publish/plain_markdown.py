"""MyST Markdown as plain Markdown, for notebooks that are read outside the site."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

# Blocks are told apart; what is in a line is read by `_INLINE`.
_MARKDOWN = MarkdownIt("commonmark").use(colon_fence_plugin).disable("inline")
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\}(?P<title>.*)")
_OPTIONS = re.compile(r"\A(?:---\n.*?^---\n|(?::[\w-]+:[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_CODE = frozenset({"code", "code-block", "sourcecode"})
_TITLED = frozenset({"admonition", "card", "dropdown", "exercise", "grid-item-card", "tab-item"})
TARGET = re.compile(r"^\((?P<label>[\w-]+)\)=[ \t]*\n?", re.MULTILINE)
# A role, a link to another page or to a label, or code, which is left alone.
_INLINE = re.compile(
    r"\{(?P<role>[a-z:]+)\}`(?P<text>[^`]+?)(?:\s*<(?P<target>[^<>`]+)>)?`"
    r"|\]\((?P<path>(?![a-z]+:)[^\s()#]+)\.(?:md|ipynb)(?P<anchor>#[^\s()]*)?\)"
    r"|\[(?P<shown>(?:[^\[\]`]|`[^`]*`)+)\]\((?P<label>[\w-]+)\)"
    r"|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)",
    re.DOTALL,
)
_LINKING = frozenset({"doc", "ref", "term", "numref"})

Place = Callable[[str, str], str]


def plain(text: str, place: Place) -> str:
    """Return a cell's MyST Markdown as Markdown that every notebook reader shows.

    Labels are left out, boxes become quotations with a bold title, and roles their text: a link
    where `place` knows an address.

    :param place: returns the address of what a role leads to, given the role and its target, or
        an empty text; for a Markdown link to another page the role is ``doc``, to a label ``ref``.
    """
    lines = text.split("\n")
    for token in reversed(_MARKDOWN.parse(text)):  # what stands before a change keeps its lines
        if token.map is None:
            continue
        first, last = token.map
        fence = token.type in ("fence", "colon_fence")
        if fence and (directive := _DIRECTIVE.match(token.info.strip())):
            before = lines[first][: lines[first].index(token.markup)]
            below = re.sub(r"[^\s>]", " ", before)  # a list's mark stands on its first line alone
            made = _block(directive, token.content, place)
            if "".join(lines[last : last + 1]).strip(" >"):
                made.append("")  # else the next line would go on with the quotation
            starts = [before, *[below] * len(made)]
            lines[first:last] = [
                f"{start}{line}".rstrip() for start, line in zip(starts, made, strict=False)
            ]
        elif token.type == "inline":
            written = _inline("\n".join(lines[first:last]), place)
            lines[first:last] = [written] if written else []
    return "\n".join(lines).strip("\n")


def _block(directive: re.Match[str], content: str, place: Place) -> list[str]:
    """Return a directive's lines: code as code, a formula as one, all else as a quotation."""
    name, title, body = directive["name"], directive["title"].strip(), _OPTIONS.sub("", content)
    if name in _CODE:
        fence = max(re.findall(r"^`{3,}", body, re.MULTILINE), default="``") + "`"
        return [f"{fence}{title}", *body.strip("\n").split("\n"), fence]
    if name == "math":
        return ["$$", *f"{title}\n{body}".strip("\n").split("\n"), "$$"]
    if title and name in _TITLED:
        body, title = f"**{title}**\n\n{body}", ""
    shown = plain(f"{title}\n{body}".strip("\n"), place)
    return [f"> {line}".rstrip() for line in shown.split("\n")]


def _inline(text: str, place: Place) -> str:
    def written(found: re.Match[str]) -> str:
        if found["tick"]:
            return found[0]
        if found["path"]:
            goal = place("doc", found["path"])
            return f"]({goal}{found['anchor'] or ''})" if goal else found[0]
        if found["label"]:
            goal = place("ref", found["label"])
            return f"[{found['shown']}]({goal})" if goal else found["shown"]
        if found["role"] not in _LINKING:
            return f"[{found['text']}]" if found["role"].startswith("cite") else found["text"]
        goal = place(found["role"], found["target"] or found["text"])
        return f"[{found['text']}]({goal})" if goal else found["text"]

    return _INLINE.sub(written, TARGET.sub("", text))
