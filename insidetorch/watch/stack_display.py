"""How a stack is shown: a table with links into the source, the same as text, and a record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from insidetorch.display import Display, escape
from insidetorch.errors import BookError
from insidetorch.watch.frames import Frame, fold_text, groups

_MEMBER = re.compile(r"\b[A-Z]\w*::[^:]+$")


@dataclass(frozen=True, repr=False)
class Stack(Display):
    """A stack, and how it is shown.

    :param frames: outermost first, folded ones included.
    """

    frames: tuple[Frame, ...] = ()

    @property
    def functions(self) -> list[str]:
        """Names of the frames that are shown, outermost first."""
        return [frame.function for frame in self.frames if frame.kind == "shown"]


def display_stack(frames: Sequence[Frame], what: str, note: str, python: bool) -> Stack:
    kept = tuple(
        frame for frame in frames if python or frame.layer != "Python" or not frame.function
    )
    caption = f"Stack from {what}, outermost call first"
    lines: list[tuple[str, str, str]] = []
    rows: list[str] = []
    for shown, run in groups(kept):
        if not shown:
            text = fold_text(run)
            lines.append(("", text, ""))
            rows.append(f'<tr><td></td><td colspan="2">{_folded(text, run)}</td></tr>')
            continue
        previous = ""
        for frame in run:
            layer = frame.layer if frame.layer != previous else ""
            previous = frame.layer
            name = frame.code or frame.function
            lines.append((layer, name, frame.where))
            rows.append(
                f"<tr><td>{escape(layer)}</td><td>{_linked(name, link(frame))}</td>"
                f"<td>{_breakable(frame.where)}</td></tr>"
            )
    html = (
        '<div class="it it-stack it-scroll" tabindex="0" role="group" '
        f'aria-label="{escape(caption)}">'
        f'<table class="it-table"><caption>{escape(caption)}</caption><thead><tr>'
        '<th scope="col">layer</th><th scope="col">function</th><th scope="col">where</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        + (f"<p>{escape(note)}</p>" if note else "")
        + "</div>"
    )
    record = {
        "kind": "stack",
        "frames": [
            {"layer": frame.layer, "function": frame.function}
            for frame in kept
            if frame.kind == "shown"
        ],
    }
    text = "\n".join([caption, *_columns(lines), *([note] if note else [])])
    return Stack(html, text, record, frames=kept)


def link(frame: Frame) -> str | None:
    """Return the address of a frame's function in PyTorch's source at the installed commit.

    A Python frame leads to its line; a C++ member function to its declaration in a header of the
    wheel. None where the release does not ship one.
    """
    from insidetorch.facts import torch_facts
    from insidetorch.locate.lookup import Absent, locate
    from insidetorch.locate.paths import permalink, upstream

    facts = torch_facts()
    if facts is None or not facts.commit:
        return None
    if frame.layer == "Python":
        file, _, line = frame.where.rpartition(":")
        path = upstream(file) if file.startswith("torch/") else None
        return permalink(path, facts.commit, int(line)) if path else None
    if not _MEMBER.search(frame.function) or "::generated::" in frame.function:
        return None
    try:
        found = locate(frame.function)
    except BookError:
        return None
    if isinstance(found, Absent):
        return None
    path = upstream(found[0].file)
    return permalink(path, facts.commit, found[0].first, found[0].last) if path else None


def _linked(name: str, address: str | None) -> str:
    code = f"<code>{_breakable(name)}</code>"
    return f'<a href="{escape(address)}">{code}</a>' if address else code


def _folded(text: str, run: Sequence[Frame]) -> str:
    named = [frame for frame in run if frame.function]
    if not named:
        return escape(text)
    items = "".join(
        f"<li><code>{_breakable(frame.function)}</code> {escape(frame.where)}</li>"
        for frame in named
    )
    return f"<details><summary>{escape(text)}</summary><ul>{items}</ul></details>"


def _breakable(name: str) -> str:
    return re.sub(r"(::|/|_(?=[a-z]))", r"\1<wbr>", escape(name))


def _columns(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    first = max((len(line[0]) for line in lines), default=0)
    second = max((len(line[1]) for line in lines if line[2]), default=0)
    return [f"{a.ljust(first)}  {b.ljust(second)}  {c}".rstrip() for a, b, c in lines]
