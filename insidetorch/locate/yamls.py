"""Finding one entry of torchgen's YAML files: native_functions, derivatives, tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from insidetorch.errors import BookError
from insidetorch.locate.definition import Definition

FILES = {
    "native_functions.yaml": "torchgen/packaged/ATen/native/native_functions.yaml",
    "tags.yaml": "torchgen/packaged/ATen/native/tags.yaml",
    "derivatives.yaml": "torchgen/packaged/autograd/derivatives.yaml",
    "deprecated.yaml": "torchgen/packaged/autograd/deprecated.yaml",
}
_ENTRY = re.compile(r"- (?:func|name|tag):\s*([\w.]+)")


def find(file: str, lines: Sequence[str], name: str) -> list[Definition]:
    """Return the entries called `name`.

    :param file: path below site-packages, for the result and the error.
    :param lines: the file's lines.
    :param name: e.g. ``mul.Tensor``; without an overload, that of the entry without one.
    :raises BookError: if there is none; it names the nearest entries.
    """
    starts = [
        (number, match[1])
        for number, line in enumerate(lines, start=1)
        if (match := _ENTRY.match(line))
    ]
    found = [
        _entry(file, lines, number, name, ends)
        for (number, entry), ends in zip(
            starts, [*(n for n, _ in starts[1:]), len(lines) + 1], strict=True
        )
        if entry == name
    ]
    if found:
        return found
    names = list(dict.fromkeys(entry for _, entry in starts))
    near = overloads(lines, name)[:5] or get_close_matches(name, names, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "nothing has a similar name"
    raise BookError(f"{name} is not an entry of {file}; {hint}")


def overloads(lines: Sequence[str], name: str) -> list[str]:
    """Return the names of all entries of one operator, e.g. of ``mul``."""
    entries = (match[1] for line in lines if (match := _ENTRY.match(line)))
    return [entry for entry in entries if entry.split(".")[0] == name.split(".")[0]]


def _entry(file: str, lines: Sequence[str], first: int, name: str, following: int) -> Definition:
    last = first
    for number in range(first + 1, following):
        line = lines[number - 1]
        if line[:1].strip():
            break
        if line.strip():
            last = number
    text = tuple(lines[first - 1 : last])
    signature = text[0].split(":", 1)[1].strip()
    return Definition(name, file, "yaml", first, text, signature)
