"""Code that was written while a cell ran, by a generator or a compiler, shown like an excerpt."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from insidetorch.display import Display, escape
from insidetorch.errors import BookError


def listing(
    code: str,
    title: str,
    *,
    language: str = "cpp",
    place: str = "",
    note: str = "",
    start: str = "",
    end: str = "",
    without: str = "",
    first: int | None = None,
    width: int = 80,
) -> Display:
    """Show code that no file of the installation holds.

    :param title: what it is, such as the name of a function.
    :param language: as Pygments calls it.
    :param place: the file that the code would stand in.
    :param note: who wrote it, from what.
    :param start: begin with the first line that holds this text.
    :param end: stop at the first line, from there on, that holds this text.
    :param without: a regular expression; lines of what it matches are left out.
    :param first: the number of the code's first line; None shows no numbers.
    :param width: longer lines are broken at spaces, in characters; 0 breaks none.
    :raises BookError: a text is not in the code.
    """
    lines = code.splitlines()
    begin = _line(lines, start, title) if start else 0
    last = begin + _line(lines[begin:], end, title) if end else len(lines) - 1
    left_out = _rows(code, without) if without else set()
    rows = [
        ("" if first is None or part else str(first + row), text)
        for row in range(begin, last + 1)
        if row not in left_out
        for part, text in enumerate(_broken(lines[row], width))
    ]
    digits = max((len(number) for number, _ in rows), default=0)
    facts = [part for part in (place, note) if part]
    caption = f'<span class="it-symbol">{escape(title)}</span>' + "".join(
        f'<span class="it-place">{escape(part)}</span>'
        if part is place
        else f"<span>{escape(part)}</span>"
        for part in facts
    )
    html = (
        f'<figure class="it it-excerpt"><figcaption>{caption}</figcaption>'
        f'<div class="highlight">{_code(rows, language, title, digits)}</div></figure>'
    )
    plain = [f"{number:>{digits}}  {text}".rstrip() if digits else text for number, text in rows]
    return Display(html, "\n".join([" · ".join([title, *facts]), *plain]))


def _code(rows: Sequence[tuple[str, str]], language: str, title: str, digits: int) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    text = "\n".join(text for _, text in rows)
    coloured = highlight(text, lexer, HtmlFormatter(nowrap=True)).split("\n")
    label = f'tabindex="0" role="group" aria-label="{escape(title)}"'
    if not digits:
        body = "\n".join(coloured[: len(rows)])
        return f'<pre class="it-code" {label}>{body}</pre>'
    body = "".join(
        f'<span class="it-line" data-n="{number}">{line}\n</span>'
        for (number, _), line in zip(rows, coloured, strict=False)
    )
    return f'<pre class="it-code" style="--it-digits:{digits}" {label}>{body}</pre>'


def _rows(code: str, pattern: str) -> set[int]:
    """Return the rows, from 0, of all that a pattern matches."""
    return {
        row
        for block in re.finditer(pattern, code, re.MULTILINE | re.DOTALL)
        for row in range(code.count("\n", 0, block.start()), code.count("\n", 0, block.end()) + 1)
    }


def _broken(line: str, width: int) -> list[str]:
    """Return a line as lines of at most `width` characters, broken at spaces."""
    if not width or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    comment = re.match(r"\s*(//|#) ", line)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent + (f"{comment[1]} " if comment else "    "),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _line(lines: Sequence[str], text: str, title: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise BookError(f"The generated {title} has no line with {text!r}: choose another text.")
