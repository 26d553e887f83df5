"""What no wheel carries (``.cpp``, ``.cu``): followed by its file at a commit, or by its symbol.

A file is looked for in the release itself if that is a checkout, in the clone of PyTorch that
``PYTORCH_SRC`` names, which holds any number of commits, and in copies kept as ``COMMIT/path`` in a
folder. Else a wheel's libraries tell by their symbols whether a function is still there, though not
whether its code is the same. What is not known is said to be unknown.
"""

from __future__ import annotations

import mmap
import os
import re
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from insidetorch.drift import findings as kinds
from insidetorch.drift.anchors import Anchor
from insidetorch.drift.changes import alike, changes
from insidetorch.drift.definitions import Found, in_text
from insidetorch.drift.findings import Finding
from insidetorch.drift.trees import SYMBOLS, Tree
from insidetorch.errors import BookError
from insidetorch.locate.checkout import VARIABLE
from insidetorch.processes import run

_LIBRARIES = re.compile(r"torch/lib/lib(?:torch_cpu|torch_python|torch_cuda|c10)\.(?:so|dylib)")
_MANGLED = re.compile(rb"_ZNK?(\d[\w.]+)")
_SECONDS = 60


def compare(anchor: Anchor, old: Tree, new: Tree) -> Finding:
    """Return what became of a link to a file that no wheel carries."""
    was, now = (_text(tree, anchor.file) for tree in (old, new))
    if now == "" or (now is None and new.complete):
        return kinds.Gone(anchor, said="the file is gone")
    if now is None:
        return _by_symbol(anchor, old, new)
    mine, theirs = (_definition(text, anchor) if text else None for text in (was, now))
    if theirs is None:
        return kinds.Gone(anchor)
    if was is None:
        return kinds.Unseen(
            anchor, said=f"it is there; no copy of {anchor.file} as it was is at hand"
        )
    lines = theirs.definition.first, theirs.definition.last
    if mine is None or alike(mine, theirs):
        return kinds.Unchanged(anchor, anchor.file, lines)
    whole = ((mine.definition.first, mine.definition.last),)
    return kinds.Changed(anchor, anchor.file, lines, changes=tuple(changes(mine, theirs, whole)))


def exports(tree: Tree, symbol: str) -> bool | None:
    """Tell whether a release's libraries define a C++ name; None if they are not at hand.

    :param symbol: as much of the full name as is known, e.g. ``Engine::evaluate_function``.
    """
    wanted = "".join(f"{len(part)}{part}" for part in symbol.split("::")).encode()
    known = None
    for names in _libraries(tree):
        known = bool(known) or names.find(wanted) >= 0
        if known:
            break
    return known


def symbols(library: bytes) -> set[bytes]:
    """Return the qualified names in a library's symbols, as they are mangled: length and name."""
    found = set()
    for mangled in set(_MANGLED.findall(library)):
        end = 0
        while length := re.compile(rb"\d+").match(mangled, end):
            end = length.end() + int(length[0])
        found.add(mangled[:end])
    return found


def is_library(path: str) -> bool:
    """Tell whether a member of a wheel is a library of PyTorch's own."""
    return _LIBRARIES.fullmatch(path) is not None


def _by_symbol(anchor: Anchor, old: Tree, new: Tree) -> Finding:
    had, has = (exports(tree, anchor.symbol) if anchor.symbol else None for tree in (old, new))
    if had and has is False:
        return kinds.Gone(anchor, said="no library of that release has its symbol")
    there = "its symbol is there; " if had and has else ""
    return kinds.Unseen(anchor, said=f"{there}no copy of {anchor.file} is at hand")


def _libraries(tree: Tree) -> Iterator[bytes | mmap.mmap]:
    if tree.origin.is_dir():
        for path in sorted((tree.origin / "torch" / "lib").glob("lib*")):
            if is_library(f"torch/lib/{path.name}"):
                with path.open("rb") as file:
                    yield mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    elif tree.origin.is_file():
        with zipfile.ZipFile(tree.origin) as archive:
            names = archive.namelist()
            wanted = [SYMBOLS] if SYMBOLS in names else filter(is_library, names)
            for name in wanted:
                yield archive.read(name)


@lru_cache(maxsize=64)
def _text(tree: Tree, file: str) -> str | None:
    """Return a file as it is in a release; "" if that lacks it, None if that is not known."""
    if tree.complete or not tree.commit:
        return tree.text(file)
    clone = os.environ.get(VARIABLE, "")
    if not clone:
        return None
    copy = Path(clone).expanduser() / tree.commit / file
    if copy.is_file():
        return copy.read_text(encoding="utf-8", errors="replace")
    git = ["git", "-C", str(Path(clone).expanduser())]
    try:
        if run([*git, "cat-file", "-e", f"{tree.commit}^{{commit}}"], seconds=_SECONDS).returncode:
            return None
        shown = run([*git, "show", f"{tree.commit}:{file}"], seconds=_SECONDS)
    except BookError:
        return None
    return "" if shown.returncode else shown.stdout


def _definition(text: str, anchor: Anchor) -> Found | None:
    found = in_text(text, anchor.file, anchor.symbol)
    return max(found, key=lambda one: one.body, default=None)
