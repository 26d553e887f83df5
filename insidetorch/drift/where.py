"""Finding in one release what another release defines: at its place, elsewhere, or no more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from insidetorch.drift.definitions import Found, definitions, names, own_name
from insidetorch.drift.trees import Tree
from insidetorch.locate.definition import Language

_ALIKE = 0.5
_RENAMED = 0.6
_MOST_FILES = 60


@dataclass(frozen=True)
class Whereabouts:
    """What became of a definition.

    :param found: its counterpart, or None if it is gone.
    :param near: what may be its new place, likeliest first: ``file: name``.
    """

    found: Found | None
    near: tuple[str, ...] = ()


def find_again(tree: Tree, old: Found, before: Tree, symbol: str = "") -> Whereabouts:
    """Return the counterpart of a definition in another release.

    The same name in the same file comes first, then the same name or the same text elsewhere,
    where there was none before.

    :param old: the definition in the release that is compared with.
    :param before: that release.
    :param symbol: its full name; "" for the definition's own.
    """
    was = old.definition
    symbol = symbol or was.symbol
    here = [one for one in definitions(tree, was.file, symbol) if one.body >= old.body]
    if here:
        return Whereabouts(closest(old, here))
    elsewhere = [
        one
        for one in _elsewhere(tree, old, symbol)
        if not definitions(before, one.definition.file, one.definition.symbol)
    ]
    same = [one for one in elsewhere if one.sha256 == old.sha256]
    named = [one for one in elsewhere if _named(one, symbol) and likeness(old, one) >= _ALIKE]
    for candidates in (same, named):
        if candidates:
            return Whereabouts(closest(old, candidates))
    return Whereabouts(None, _near(tree, old, symbol, elsewhere))


def closest(old: Found, candidates: Sequence[Found]) -> Found:
    """Return the overload that is `old`: of the same text, else signature, else the likest."""

    def rank(one: Found) -> tuple[bool, bool, float]:
        same = one.sha256 == old.sha256
        signature = one.definition.signature == old.definition.signature
        return same, signature, 0.0 if same or signature else likeness(old, one)

    return max(candidates, key=rank)


def likeness(one: Found, other: Found) -> float:
    """Return how much two definitions share, from 0 to 1: Dice's coefficient over their lines.

    A definition of one line is compared word by word.
    """
    mine, theirs = _features(one), _features(other)
    total = mine.total() + theirs.total()
    return 2 * (mine & theirs).total() / total if total else 1.0


def _features(found: Found) -> Counter[str]:
    lines = [line.strip() for line in found.definition.lines if line.strip()]
    if len(lines) > 3:
        return Counter(lines)
    return Counter(re.findall(r"\w+|[^\w\s]", " ".join(lines)))


def _named(found: Found, symbol: str) -> bool:
    return found.definition.symbol == symbol


def _elsewhere(tree: Tree, old: Found, symbol: str) -> list[Found]:
    """Return definitions whose own name is that of `symbol`, in the other files of its language."""
    was = old.definition
    if was.language == "yaml":
        return []
    name = own_name(symbol, was.language)
    found = []
    for file in _mentioning(tree, was.language, name, was.file):
        for full in names(tree, file):
            if own_name(full, was.language) == name:
                found += [one for one in definitions(tree, file, full) if one.body >= old.body]
    return found


def _mentioning(tree: Tree, language: Language, name: str, apart: str) -> list[str]:
    word = re.escape(name)
    if language == "python":
        pattern = re.compile(rf"^[ \t]*(?:async\s+def|def|class)\s+{word}\b".encode(), re.MULTILINE)
    else:
        pattern = re.compile(rf"(?<![\w.>]){word}(?!\w)".encode())
    corpus, plain = tree.corpus(language), name.encode()
    holding = [
        file
        for file, text in corpus.items()
        if plain in text and file != apart and pattern.search(text)
    ]
    defining = re.compile(rf"\b(?:class|struct|enum|define)\b[^;{{}}()]*\b{word}\b".encode())
    holding.sort(
        key=lambda file: (
            not defining.search(corpus[file]),
            -len(_shared_folders(file, apart)),
            file,
        )
    )
    return holding[:_MOST_FILES]


def _shared_folders(one: str, other: str) -> list[str]:
    shared = []
    for mine, theirs in zip(one.split("/"), other.split("/"), strict=False):
        if mine != theirs:
            break
        shared.append(mine)
    return shared


def _near(tree: Tree, old: Found, symbol: str, elsewhere: Sequence[Found]) -> tuple[str, ...]:
    was = old.definition
    known = names(tree, was.file)
    near: list[str] = []
    if was.language == "yaml":
        known = get_close_matches(symbol, known, n=12, cutoff=0.5)
    if len(was.lines) > 1:
        alike = [
            (likeness(_without_name(old, symbol), _without_name(one, name)), name)
            for name in known
            for one in definitions(tree, was.file, name)
            if one.body == old.body and _same_size(old, one)
        ]
        near += [f"{was.file}: {name}" for share, name in sorted(alike)[::-1] if share >= _RENAMED]
    near += [f"{one.definition.file}: {one.definition.symbol}" for one in elsewhere]
    by_own: dict[str, str] = {own_name(name, was.language): name for name in known}
    similar = get_close_matches(own_name(symbol, was.language), by_own, n=3, cutoff=0.7)
    near += [f"{was.file}: {by_own[name]}" for name in similar]
    return tuple(dict.fromkeys(near))[:3]


def _same_size(one: Found, other: Found) -> bool:
    mine, theirs = len(one.definition.lines), len(other.definition.lines)
    return mine <= 2 * theirs + 2 and theirs <= 2 * mine + 2


def _without_name(found: Found, symbol: str) -> Found:
    name = re.compile(rf"\b{re.escape(own_name(symbol, found.definition.language))}\b")
    lines = tuple(name.sub("_", line) for line in found.definition.lines)
    return replace(found, definition=replace(found.definition, lines=lines))
