"""`source`: an excerpt of the installed PyTorch or of a miniature, with place and permalink."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from insidetorch.display import Display, escape, marked
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.locate.definition import Definition, Language
from insidetorch.locate.lookup import Absent, locate
from insidetorch.locate.normalise import digest
from insidetorch.locate.paths import absence, permalink, upstream
from insidetorch.locate.select import Range, Row, choose, stretches

FOLD_ABOVE = 60
"""An excerpt of more rows than this is folded."""


def source(
    target: Any,
    *,
    lines: Range | Sequence[Range] | None = None,
    start: str | None = None,
    end: str | None = None,
    only: Sequence[str | tuple[str, str]] = (),
    elide: Sequence[tuple[str, str]] | None = None,
    docstring: bool = False,
    path: str | None = None,
    notes: Mapping[str, str] | None = None,
) -> Display:
    """Show how something is defined in the installed torch or in a miniature.

    ==========================================  ==================================================
    target                                      shows
    ==========================================  ==================================================
    ``torch.autograd.backward`` (object, text)  a Python function, class, method or property
    ``"torch.autograd.graph:Node.name"``        the same by module and name, without importing it
    ``"torch::autograd::GraphTask"``            a C++ type, function, method, alias, field or macro
    ``"engine.h:ReadyQueue"``                   the same, looked for in one header
    ``"native_functions.yaml:mul.Tensor"``      an operator's entry; also ``derivatives.yaml``
    ``"aten::mul.Tensor"``, an ``OpOverload``   the same entry of ``native_functions.yaml``
    ``"miniatures.autograd_engine.engine:Engine.run"``          a part of a miniature
    ``"torch/csrc/autograd/engine.cpp:…"``      a link, since no wheel carries ``.cpp`` or ``.cu``;
                                                the code where ``PYTORCH_SRC`` is a checkout of
                                                the commit this torch was built from
    ==========================================  ==================================================

    Of overloads, the first that holds all the texts given is shown. Texts outlive a release
    better than line numbers: a text that is gone is an error, a line that moved is not. Lines are
    numbered as in PyTorch's own tree; the wheel's copy of a header may have one line more on top.

    :param lines: first and last line in the file, or several such pairs.
    :param start: begin with the first line that holds this text.
    :param end: stop at the first line, from there on, that holds this text.
    :param only: show the opening, these statements and the closing. A statement is given by a
        text on its first line, or by texts on its first and its last line.
    :param elide: pairs of texts; the lines strictly between the two are left out.
    :param docstring: show long Python docstrings whole.
    :param path: look only in this file; the same as ``"path:target"``.
    :param notes: text on a shown line → what that line decides. The line gets a number, and the
        notes stand below the code.
    :raises BookError: if there is no such definition or text, or more than one file has it.
    """
    found = locate(target, path)
    if isinstance(found, Absent):
        if notes:
            raise BookError(
                f"source({target!r}, notes=…): {found.upstream} is not in the installed torch, so "
                "no line can be checked; say in the text what the code does, with a link."
            )
        return _card(found)
    definition, rows = _first_fit(
        found,
        lines=lines,
        start=start,
        end=end,
        only=only,
        elide=elide or (),
        docstring=docstring,
    )
    asked = target if isinstance(target, str) else definition.symbol
    return _excerpt(asked, definition, rows, _noted(asked, rows, notes or {}))


def _noted(asked: str, rows: Sequence[Row], notes: Mapping[str, str]) -> dict[int, tuple[int, str]]:
    """Return line → number and text of its note; each note is on the first line that has it."""
    found: dict[int, tuple[int, str]] = {}
    for text, note in notes.items():
        line = next((row.number for row in rows if not row.gap and text in row.text), None)
        if line is None or line in found:
            problem = "no shown line has it" if line is None else "its line has a note already"
            raise BookError(
                f"source({asked!r}, notes=…): {problem}: {text!r}; give a text of another line."
            )
        found[line] = (0, note)
    return {line: (at, found[line][1]) for at, line in enumerate(sorted(found), start=1)}


def _first_fit(definitions: Sequence[Definition], **choice: Any) -> tuple[Definition, list[Row]]:
    refused: BookError | None = None
    for definition in definitions:
        try:
            return definition, choose(definition, **choice)
        except BookError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _excerpt(
    asked: str,
    definition: Definition,
    rows: Sequence[Row],
    notes: Mapping[int, tuple[int, str]],
) -> Display:
    origin = upstream(definition.file)
    shown = [row for row in rows if not row.gap]
    first, last = shown[0].number, shown[-1].number
    commit = _commit()
    link = permalink(origin, commit, first, last) if origin and commit else None
    place = origin or definition.file
    span = f"line {first}" if first == last else f"lines {first}–{last}"
    note = f"1 of {definition.siblings} definitions of this name" if definition.siblings > 1 else ""
    why = absence(definition.file)
    record = {
        "kind": "excerpt",
        "target": asked,
        "symbol": definition.symbol,
        "file": definition.file,
        "upstream": origin,
        "language": definition.language,
        "lines": [first, last],
        "shown": stretches(rows),
        "defined": [definition.first, definition.last],
        "sha256": _digest(definition.text, definition.language),
        "signature": definition.signature,
    }
    tail = [part for part in (span, note, why) if part]
    name = _full_name(definition)
    said = [f"{number}. {' '.join(words.split())}" for number, words in notes.values()]
    text = "\n".join([f"{name} · {place} · {' · '.join(tail)}", *_plain(rows, notes), *said])
    caption = (
        f'<span class="it-symbol">{escape(name)}</span>'
        f'<span class="it-place">{_breakable(place)}</span>'
        + "".join(f"<span>{escape(part)}</span>" for part in tail)
        + (f'<a href="{escape(link)}">view at {commit[:10]}</a>' if link else "")
    )
    body = _table(definition, rows, notes)
    if len(rows) > FOLD_ABOVE:
        body = f"<details><summary>Show {len(shown)} lines</summary>{body}</details>"
    items = "".join(f"<li>{marked(words)}</li>" for _, words in notes.values())
    listed = f'<ol class="it-notes">{items}</ol>' if items else ""
    html = (
        f'<figure class="it it-excerpt"><figcaption>{caption}</figcaption>{body}{listed}</figure>'
    )
    return Display(html, text, record)


def _card(absent: Absent) -> Display:
    commit = _commit()
    link = permalink(absent.upstream, commit)
    kind = "." + absent.upstream.rsplit(".", 1)[-1]
    reason = f"The installed torch carries no {kind} files, so the code is not shown here."
    remedy = (
        "To see it in place, set PYTORCH_SRC to a checkout of PyTorch at this commit."
        if not absent.why
        else absent.why
    )
    name = absent.symbol or absent.upstream.rsplit("/", 1)[-1]
    record = {
        "kind": "excerpt",
        "target": f"{absent.upstream}:{absent.symbol}" if absent.symbol else absent.upstream,
        "symbol": absent.symbol,
        "file": None,
        "upstream": absent.upstream,
        "language": "cpp",
        "lines": None,
        "defined": None,
        "sha256": None,
        "signature": None,
    }
    html = (
        '<figure class="it it-excerpt it-card"><figcaption>'
        f'<span class="it-symbol">{escape(name)}</span>'
        f'<span class="it-place">{_breakable(absent.upstream)}</span>'
        f'<a href="{escape(link)}">view at {commit[:10]}</a></figcaption>'
        f"<p>{escape(reason)} {escape(remedy)}</p></figure>"
    )
    return Display(html, f"{name} · {absent.upstream}\n{reason} {remedy}\n{link}", record)


def _full_name(definition: Definition) -> str:
    if definition.language != "python":
        return definition.symbol
    module = definition.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{module}.{definition.symbol}" if definition.symbol else module


@cache
def _digest(code: str, language: Language) -> str:
    return digest(code, language)


def _commit() -> str:
    facts = torch_facts()
    return facts.commit if facts else ""


def _breakable(path: str) -> str:
    return escape(path).replace("/", "/<wbr>")


def _plain(rows: Sequence[Row], notes: Mapping[int, tuple[int, str]]) -> list[str]:
    width = max(len(str(row.number)) for row in rows)
    marks = {line: f"  ({number})" for line, (number, _) in notes.items()}
    return [
        f"{'⋯':>{width}}  {_gap(row)}"
        if row.gap
        else f"{row.number:>{width}}  {row.text}".rstrip() + marks.get(row.number, "")
        for row in rows
    ]


def _gap(row: Row) -> str:
    return "1 line" if row.gap == 1 else f"{row.gap} lines"


def _table(
    definition: Definition, rows: Sequence[Row], notes: Mapping[int, tuple[int, str]]
) -> str:
    """Return the code; the style sheet prints the line numbers, so that no one copies them."""
    coloured = _highlight(definition.text, definition.language)
    indent = min(
        (len(row.text) - len(row.text.lstrip()) for row in rows if row.text.strip()), default=0
    )
    width = max(len(str(row.number)) for row in rows)
    out = []
    for row in rows:
        if row.gap:
            pad = " " * _indent_near(rows, row, indent)
            out.append(
                f'<span class="it-line it-gap" data-n="⋯">{pad}'
                f'<span class="it-left-out">{_gap(row)}</span>\n</span>'
            )
        else:
            line = _dedent(coloured[row.number - definition.first], indent)
            number = notes[row.number][0] if row.number in notes else 0
            mark = f'<span class="it-note" data-note="{number}"></span>' if number else ""
            out.append(f'<span class="it-line" data-n="{row.number}">{line}{mark}\n</span>')
    return (
        f'<div class="highlight"><pre class="it-code" style="--it-digits:{width}" tabindex="0" '
        f'role="group" aria-label="{escape(definition.symbol or definition.file)}">'
        f"{''.join(out)}</pre></div>"
    )


def _indent_near(rows: Sequence[Row], gap: Row, indent: int) -> int:
    place = rows.index(gap)
    near = [row.text for row in rows[place + 1 :] if row.text.strip()][:1]
    return max(0, len(near[0]) - len(near[0].lstrip()) - indent) if near else 0


def _dedent(line: str, indent: int) -> str:
    """Return highlighted HTML without its first `indent` spaces, which may lie inside spans."""
    taken = 0

    def drop(match: re.Match[str]) -> str:
        nonlocal taken
        if match[1] or taken >= indent:
            return match[0]
        spaces = len(match[2]) - len(match[2].lstrip(" "))
        cut = min(spaces, indent - taken)
        taken = taken + cut if cut == len(match[2]) else indent
        return match[2][cut:]

    return re.sub(r"(<[^>]*>)|([^<]+)", drop, line) if indent else line


@cache
def _highlight(code: str, language: Language) -> tuple[str, ...]:
    """Return the code's lines as HTML with Pygments' classes."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return tuple(highlight(code, lexer, HtmlFormatter(nowrap=True)).split("\n"))
