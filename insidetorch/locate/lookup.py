"""From what a cell asks for to its definitions, whatever the language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.locate import headers, python, yamls
from insidetorch.locate.checkout import checkout
from insidetorch.locate.definition import Definition
from insidetorch.locate.paths import UNSHIPPED, upstream

_CPP = frozenset({".h", ".hpp", ".cuh", ".inc"})
_IN_FILE = re.compile(
    r"([^:]*[\w-]\.(?:h|hpp|cuh|inc|py|yaml|cpp|cc|c|cu|mm|metal|S))(?::(?!:)(.*))?$"
)
_IN_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):(?!:)([A-Za-z_][\w.<>]*)$")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+$")


@dataclass(frozen=True)
class Absent:
    """A definition that exists upstream but not in this installation.

    :param symbol: its name, "" for the whole file.
    :param upstream: path in pytorch/pytorch.
    :param why: what a reader should know about a checkout that could not be used, or "".
    """

    symbol: str
    upstream: str
    why: str


def locate(target: Any, path: str | None = None) -> list[Definition] | Absent:
    """Return the definitions of `target`, all in one file, the best first.

    :param target: what `insidetorch.source` takes.
    :param path: look only in this file.
    :raises BookError: if there is no such definition, or several files have one.
    """
    if not isinstance(target, str):
        if type(target).__name__ == "OpOverload":
            return _operator(str(target))
        return _object(target, _called(target))
    asked = target.strip()
    if path:
        return _in_file(path, asked)
    if match := _IN_FILE.match(asked):
        return _in_file(match[1], (match[2] or "").strip())
    if match := _IN_MODULE.match(asked):
        file = python.module_file(match[1])
        if file is None:
            raise BookError(f"{asked}: there is no Python module {match[1]}; is it installed?")
        return _python(file, match[2])
    if _DOTTED.match(asked):
        return _object(python.resolve(asked), asked)
    if asked.startswith("aten::"):
        return _operator(asked.replace("::", ".", 1))
    return headers.find(site(), asked)


def site() -> Path:
    """Return the folder that holds the installed ``torch``.

    :raises BookError: if there is none.
    """
    facts = torch_facts()
    if facts is None:
        raise BookError("torch is not installed here; install it to see its source")
    return facts.root.parent


def _called(target: Any) -> str:
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if module and name else str(name or repr(target)[:60])


def _object(target: Any, called: str) -> list[Definition]:
    try:
        return _python(*python.origin(target, called))
    except python.Compiled as error:
        entries = _entries_of(called.rsplit(".", 1)[-1])
        if not entries:
            raise
        named = ", ".join(f'"native_functions.yaml:{entry}"' for entry in entries[:4])
        raise BookError(f"{error}; the operator's entries: {named}") from None


def _operator(name: str) -> list[Definition]:
    """Return the entry of an operator called as ``aten.mul.Tensor``."""
    return _entry("native_functions.yaml", name.removeprefix("aten.").removesuffix(".default"))


def _entry(path: str, name: str) -> list[Definition]:
    file = yamls.FILES[path]
    return yamls.find(file, headers.header_lines(site(), file), name)


def _entries_of(operator: str) -> list[str]:
    file = yamls.FILES["native_functions.yaml"]
    return yamls.overloads(headers.header_lines(site(), file), operator)


def _python(file: Path, name: str) -> list[Definition]:
    return python.find(_below(file), _text(file), name)


def _below(file: Path) -> str:
    """Return a file's path below site-packages or below the book, else its name."""
    book = Path(__file__).resolve().parents[2]
    for root in (site(), book):
        for form in (file, file.resolve()):
            if form.is_relative_to(root):
                return form.relative_to(root).as_posix()
    return file.name


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _in_file(path: str, name: str) -> list[Definition] | Absent:
    suffix = Path(path).suffix
    if suffix in UNSHIPPED:
        return _unshipped(path, name)
    forms = {file: (file, upstream(file) or file) for file in _files(suffix)}
    files = [file for file, both in forms.items() if path in both] or [
        file for file, both in forms.items() if any(form.endswith("/" + path) for form in both)
    ]
    if not files:
        near = get_close_matches(path, [both[1] for both in forms.values()], n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "no path there is similar"
        raise BookError(f"{path} is not in this installation of torch; {hint}")
    if suffix in _CPP:
        return _whole(files) if not name else headers.find(site(), name, files)
    if len(files) > 1:
        raise BookError(f"{path} may be {' or '.join(files[:4])}; write more of the path")
    if suffix == ".py":
        home = site() if (site() / files[0]).is_file() else Path(__file__).resolve().parents[2]
        return _python(home / files[0], name)
    if not name:
        raise BookError(f'{path} needs an entry; write e.g. "{path}:mul.Tensor"')
    return _entry(Path(files[0]).name, name)


def _unshipped(path: str, name: str) -> list[Definition] | Absent:
    facts = torch_facts()
    folder, why = checkout(facts.commit if facts else "")
    if folder is None:
        return Absent(name, path, why)
    if not (folder / path).is_file():
        raise BookError(
            f"{path} is not in the checkout at {folder}; write its path in PyTorch's tree"
        )
    if not name:
        return _whole([path], folder)
    return headers.find(folder, name, [path])


def _whole(files: Sequence[str], root: Path | None = None) -> list[Definition]:
    if len(files) > 1:
        raise BookError(
            f"{Path(files[0]).name} may be {' or '.join(files[:4])}; write more of the path"
        )
    lines = headers.header_lines(root or site(), files[0])
    return [Definition(Path(files[0]).name, files[0], "cpp", 1, lines, "")]


@cache
def _files(suffix: str) -> tuple[str, ...]:
    """Return the paths of files of one kind: below site-packages, and the book's own Python."""
    if suffix in _CPP:
        return tuple(headers.headers(site()))
    if suffix == ".yaml":
        return tuple(file for file in yamls.FILES.values() if (site() / file).is_file())
    book = Path(__file__).resolve().parents[2]
    return tuple(
        file.relative_to(root).as_posix()
        for root, top in (
            (site(), "torch"),
            (site(), "torchgen"),
            (site(), "functorch"),
            (book, "miniatures"),
        )
        for file in sorted((root / top).rglob("*.py"))
    )
