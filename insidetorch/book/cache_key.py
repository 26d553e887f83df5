"""What a chapter's outputs depend on, as one hash: the same key, the same outputs.

Of the book's own modules counts what the chapter's cells reach, see `insidetorch.book.reach`.
Prose is not in it, nor are the modules that build and render the book. `display.css` is not in it
either: the site strips the style block from the outputs and links the sheet, so that a change of
looks executes nothing (a downloaded notebook keeps the looks of the day it was executed).
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from insidetorch.book.modules import TOOLKIT
from insidetorch.book.packages import installed, versions
from insidetorch.book.project import Chapter, Project
from insidetorch.book.reach import APART, Reach, Reached
from insidetorch.claims import read_verdicts
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.files import digest, states, write

_TAGS_THAT_EXECUTE = frozenset({"raises-exception"})
_ASKS_DOCSTRINGS = re.compile(
    r"__doc__|\bgetdoc\b|\bhelp\(|^[ \t]*\?{1,2}[\w.]+[ \t]*$|^[ \t]*[\w.]+\?{1,2}[ \t]*$",
    re.MULTILINE,
)
_FORMAT = 2


@dataclass(frozen=True)
class Ingredients:
    """All that a chapter's outputs depend on.

    :param cells: source and executing tags of each code cell, in order.
    :param torch: release of torch, with its local part.
    :param commit: commit of pytorch/pytorch it was built from.
    :param python: version of Python.
    :param packages: distribution → version, for those that can change the outputs.
    :param code: file → hash of what of it the cells reach: modules of the toolkit and the book,
        and the data they name.
    :param verdicts: id → entry of ``verdicts.yml``, for those the cells name.
    :param recordings: recorded file → hash, for those of this chapter.
    :param checkout: folder of a PyTorch checkout that excerpts are taken from, or empty.
    """

    cells: tuple[tuple[str, tuple[str, ...]], ...]
    torch: str
    commit: str
    python: str
    packages: Mapping[str, str]
    code: Mapping[str, str]
    verdicts: Mapping[str, Any]
    recordings: Mapping[str, str]
    checkout: str = ""
    format: int = _FORMAT


@dataclass(frozen=True)
class Key:
    """A chapter's cache key, and what it reaches.

    :param text: 32 hexadecimal digits.
    :param reached: None for a key that was remembered.
    """

    text: str
    reached: Reached | None


def keys(chapters: Sequence[Chapter], project: Project) -> dict[str, Key]:
    """Return the keys of chapters by document.

    :raises BookError: torch is not installed, or ``verdicts.yml`` or a module cannot be read.
    """
    reaches: dict[tuple[Path, str], Reach] = {}
    found = {}
    # Syntax trees are many objects, and none of them is garbage yet.
    collects = gc.isenabled()
    gc.disable()
    try:
        for chapter in chapters:
            where = (chapter.path.parent, _docstrings(chapter, project))
            if where not in reaches:
                reaches[where] = Reach(project.root, where[0], docstrings=where[1])
            reached = reaches[where].of([cell["source"] for cell in chapter.code_cells])
            found[chapter.doc] = Key(key(ingredients(chapter, project, reached)), reached)
    finally:
        if collects:
            gc.enable()
    return found


def remembered(chapters: Sequence[Chapter], project: Project, memory: Path) -> dict[str, Key]:
    """Return the keys of chapters, those of the last build where only prose changed since.

    A key is used again if the cells are the same, and so are torch, the installed packages and
    the times and sizes of all files of the book and the toolkit, its pages apart.

    :param memory: the file that keeps the keys between builds.
    """
    pages = {str(project.root / f"{doc}.md") for doc in project.docs}
    files = {**states(project.root), **states(TOOLKIT)}
    others = sorted(item for item in files.items() if item[0] not in pages)
    here = torch_facts(), installed(), os.environ.get("PYTORCH_SRC", "")
    state = digest(here, others)
    try:
        kept = json.loads(memory.read_text(encoding="utf-8"))
        known = dict(kept["keys"]) if kept["state"] == state else {}
    except (OSError, ValueError, TypeError, KeyError):
        known = {}
    cells = {
        chapter.doc: digest([(cell["source"], cell["metadata"]) for cell in chapter.code_cells])
        for chapter in chapters
    }
    found = {
        doc: Key(str(known[doc][1]), None) for doc in cells if known.get(doc, [""])[0] == cells[doc]
    }
    found |= keys([chapter for chapter in chapters if chapter.doc not in found], project)
    # A page that code reads counts for more than its cells.
    plain = {
        doc: [cells[doc], key.text]
        for doc, key in found.items()
        if key.reached is None or pages.isdisjoint(map(str, key.reached.files))
    }
    write(memory, json.dumps({"state": state, "keys": plain}))
    return found


def key(ingredients: Ingredients) -> str:
    """Return the cache key: 32 hexadecimal digits."""
    text = json.dumps(asdict(ingredients), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def ingredients(chapter: Chapter, project: Project, reached: Reached) -> Ingredients:
    """Gather what the outputs of `chapter` depend on.

    :param reached: what its cells reach.
    :raises BookError: torch is not installed, or ``verdicts.yml`` cannot be read.
    """
    torch = torch_facts()
    if torch is None:
        raise BookError(
            "torch is not installed in this Python; run `make book`, which installs it."
        )
    return Ingredients(
        cells=tuple(
            (
                cell["source"],
                tuple(sorted(_TAGS_THAT_EXECUTE.intersection(cell["metadata"].get("tags") or ()))),
            )
            for cell in chapter.code_cells
        ),
        torch=torch.release,
        commit=torch.commit,
        python=platform.python_version(),
        packages=versions(reached.packages),
        code=reached.parts,
        verdicts=_named_verdicts(reached.strings, project.root / "book" / "verdicts.yml"),
        recordings={
            path.relative_to(project.root).as_posix(): hash_files([path])
            for path in _recorded(chapter, project)
        },
        checkout=os.environ.get("PYTORCH_SRC", ""),
    )


def hash_files(paths: Iterable[Path]) -> str:
    """Return one hash over the names and contents of files; a missing file counts as such."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b"\0missing"
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


def undeclared(opened: Collection[Path], reached: Reached, project: Project) -> list[str]:
    """Return what is to be said of files that a chapter's process read unknown to its key.

    :param opened: the files that it opened.
    """
    said = []
    for path in sorted(set(opened) - reached.files):
        root = project.root if path.is_relative_to(project.root) else TOOLKIT.parent
        name = path.relative_to(root).as_posix()
        if not APART.isdisjoint(path.relative_to(root).parts):
            continue
        dotted = name.removesuffix(".py").replace("/", ".")
        how = (
            f"import it by its name, or write {dotted!r} in the code that imports it"
            if path.suffix == ".py"
            else f"write the name in the code that reads it, as in "
            f'Path(__file__).with_name("{path.name}")'
        )
        said.append(
            f"a cell read {name}, and no code that the chapter reaches names that file, so an "
            f"edit of it would go unnoticed; {how}."
        )
    return said


def _recorded(chapter: Chapter, project: Project) -> list[Path]:
    folder = project.root / "recordings" / chapter.path.stem
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _docstrings(chapter: Chapter, project: Project) -> str:
    """Return whose docstrings count for a chapter, see `Reach`."""
    text = "\n".join(cell["source"] for cell in chapter.code_cells)
    if _ASKS_DOCSTRINGS.search(text):
        return "all"
    # The digest of a recorded cell covers the docstrings of the miniatures it uses.
    return "book" if _recorded(chapter, project) else ""


def _named_verdicts(strings: Collection[str], path: Path) -> dict[str, Any]:
    if not strings or not path.is_file():
        return {}
    return {id: entry for id, entry in _verdicts(path).items() if id in strings}


def _verdicts(path: Path) -> dict[str, Any]:
    return _read_verdicts(path, path.stat().st_mtime_ns)


@cache
def _read_verdicts(path: Path, changed: int) -> dict[str, Any]:
    return {entry.id: to_builtins(entry) for entry in read_verdicts(path)}
