"""Files of data as records: YAML or JSON in, and for each mistake one sentence, with its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin

import msgspec

from insidetorch.errors import BookError

T = TypeVar("T")
Words = Annotated[str, msgspec.Meta(min_length=1)]
"""Text that is not empty."""

_WORDS = {
    "array": "a list", "object": "a mapping", "str": "a text", "int": "a number",
    "float": "a number", "bool": "true or false", "null": "nothing", "date": "a date",
    "datetime": "a time",
}  # fmt: skip
_STEP = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\d+)\]|\[\.\.\.\]")


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a mapping is read into; a key that is none of its fields is a mistake."""


def decode(kind: type[T], path: Path, *, mend: str = "mend it") -> T:
    """Read a file of YAML, or of JSON if its name says so.

    :param kind: what it holds, e.g. ``list[Entry]``; an empty file holds an empty list.
    :param mend: what to do about a file that is broken.
    :raises BookError: the file is missing or broken, or holds something else; the message names
        the file and, if it can, the line and the entry.
    """
    try:
        content = path.read_bytes()
        is_json = path.suffix == ".json"
        data = msgspec.json.decode(content) if is_json else msgspec.yaml.decode(content)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
        problem = " ".join(str(error).replace('in "<byte string>",', "at").split())
        raise BookError(f"{path.name} cannot be read ({problem}); {mend}.") from None
    if data is None and get_origin(kind) is list:
        data = []
    try:
        return msgspec.convert(data, kind, builtin_types=() if is_json else (date, datetime))
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        steps = [int(i) if i else name for name, i in _STEP.findall(place)]
        where = path.name
        if steps:
            line = "" if is_json else f", line {_line(content, steps)}"
            where += f"{line}: {_subject(data, steps)}"
        raise BookError(f"{where} {_problem(said)}; {mend}.") from None


def _subject(data: Any, steps: Sequence[str | int]) -> str:
    """Return what a path leads to, in words; an entry with the text that it begins with."""
    said: list[str] = []
    for step in steps:
        if step == "":  # a key of a mapping, which msgspec does not name
            return ", ".join([*said, "a value"])
        data = data[step]
        if isinstance(step, str):
            said.append(f"{step!r}")
            continue
        name = next(iter(data.values()), None) if isinstance(data, dict) else None
        about = f" ({name[:60]})" if name and isinstance(name, str) else ""
        said.append(f"entry {step + 1}{about}")
    return ", ".join(said)


def _line(content: bytes, steps: Sequence[str | int]) -> int:
    """Return the line of a YAML text that a path leads to."""
    import yaml

    node: Any = yaml.compose(content)
    for step in steps:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == step), None) or node
    return int(node.start_mark.line) + 1


def _problem(said: str) -> str:
    """Return msgspec's sentence in words for people."""
    said = re.sub(r"^Object missing required field `(.+)`$", r"lacks '\1'", said)
    said = re.sub(r"^Object contains unknown field `(.+)`$", r"has '\1', which means nothing", said)
    said = re.sub(r"^Expected (.+), got (.+)$", r"must be \1, not \2", said)
    return re.sub(r"`([\w |]+)`", _in_words, re.sub("^Expected", "must be", said))


def _in_words(found: re.Match[str]) -> str:
    kinds = (_WORDS.get(kind, kind) for kind in found[1].split(" | "))
    return " or ".join(dict.fromkeys(kinds))
