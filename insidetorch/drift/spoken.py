"""Which sentence of a chapter speaks of a change, and whether a chapter is concerned by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from insidetorch.drift.anchors import Anchor
from insidetorch.drift.changes import IMPORTS, WORDING, Change
from insidetorch.drift.findings import Finding
from insidetorch.drift.prose import Call, Prose, Sentence
from insidetorch.drift.signatures import Breakage

_STEM = 6
_RUN = 4
_RELEASE = re.compile(r"(?<![\w./])2\.\d{1,2}\b(?!\.?\w)")
_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_COMMONEST = """
self cls torch None True False return const auto void bool int float str size_t int64_t std Tensor
tensor device dtype Optional Any inline static template typename class struct def else elif for
while not and import from isinstance len args kwargs data name shared_ptr unique_ptr
"""
EVERYWHERE = frozenset(_COMMONEST.split())


def concerns(breakage: Breakage, symbol: str, prose: Prose, used: bool) -> bool:
    """Tell whether what callers notice is noticed by a chapter: by how its cells call, or name.

    :param symbol: the full name of the definition that the chapter names.
    :param used: whether its cells use it.
    """
    own = breakage.owner.replace("::", ".").split(".")
    if own[-1] in ("__init__", "__new__", "__call__", "forward"):
        own = own[:-1]
    member = len(own) > len(symbol.replace("::", ".").split("."))
    called = prose.calls.get(own[-1], [])
    spoken = any(own[-1] in sentence.names for sentence in prose.said)
    if breakage.why == "member removed" or (breakage.name and breakage.at < 0 and not called):
        return breakage.name in prose.attributes or _spoken(breakage.name, own[-1], prose)
    if member and not (called or own[-1] in prose.attributes or spoken):
        return False
    if breakage.why == "argument added":
        return False
    if breakage.why == "default changed" and breakage.name:
        if ": None → " in breakage.text:
            # Mostly what None has always become.
            return _spoken(breakage.name, own[-1], prose)
        return any(not _passes(call, breakage) for call in called)
    if breakage.why == "parameter required":
        return any(not _passes(call, breakage) for call in called)
    if breakage.name and breakage.why != "value changed":
        return any(_passes(call, breakage) for call in called) or _spoken(
            breakage.name, own[-1], prose
        )
    return bool(called) or spoken or own[-1] in prose.attributes or (used and not member)


def _passes(call: Call, breakage: Breakage) -> bool:
    return breakage.name in call.named or 0 <= breakage.at < call.given


def _spoken(name: str, owner: str, prose: Prose) -> bool:
    """Tell whether a sentence names a parameter or member.

    A name of one word says little, so the sentence has to speak of its owner as well.
    """
    names = {name} if "_" in name.strip("_") else {name, owner}
    return any(names <= sentence.names for sentence in prose.said)


def speaks_of(change: Change, finding: Finding, prose: Prose) -> Sentence | None:
    """Return the sentence that names what changed beside what is shown, if one does.

    It names the definition, or stands near its excerpt, and names the member that the change stands
    in or an identifier that only one of the two releases has there.
    """
    anchor = finding.anchor
    if change.why == WORDING:
        return quoting(change, prose)
    if change.why == IMPORTS:
        called = set(change.only) & set(prose.calls)
        return next((one for one in prose.said if called & one.names), None)
    own = own_name(anchor.symbol or anchor.target)
    near = prose.near(anchor.cells)
    members = {name for name in change.inside if name != own and not name.startswith("__")}
    excerpt = anchor.kind == "excerpt"
    if excerpt and not anchor.symbol:
        return None  # A few lines of a file: the rest of it is not what the page is about.
    for sentence in [*near, *prose.said]:
        if members & sentence.names and (own in sentence.names or (excerpt and sentence in near)):
            return sentence
    # What its own path is made of says nothing, a common word little: its owner must be named.
    words = set(change.only) - EVERYWHERE - set(words_of(anchor.target))
    telling = {word for word in words if word != word.lower() or "_" in word.strip("_")}
    words = telling | {word for word in words if len(word) > _STEM}
    spoken = [one for one in prose.said if own in one.names and words & one.names]
    return next(iter([*(one for one in near * excerpt if telling & one.names), *spoken]), None)


def quoting(change: Change, prose: Prose) -> Sentence | None:
    """Return the sentence that quotes words of which one of the two releases has others."""
    texts = [" ".join(words_of(" ".join(lines))) for lines in (change.old, change.new)]
    for old, new in (texts, texts[::-1]):
        words = old.split()
        runs = {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
        gone = {run for run in runs if run not in new}
        for one in prose.said:
            said = " ".join(words_of(one.text))
            if any(run in said for run in gone):
                return one
    return None


def weight(change: Change, finding: Finding, prose: Prose) -> tuple[bool, int]:
    """Return what makes one shown change matter more than another: a sentence near, then lines."""
    near = prose.near(finding.anchor.cells)
    words = set(change.names) - EVERYWHERE
    return any(words & one.names for one in near), len(change.old) + len(change.new)


def about_shown(change: Change, anchor: Anchor, prose: Prose) -> Sentence | None:
    """Return the sentence that rests on shown lines: a note at them, or the nearest that names."""
    near = prose.near(anchor.cells)
    noted = [one for one in near if one.at and any(one.at in line for line in change.old)]
    words = (set(change.names) | set(change.inside)) - EVERYWHERE
    naming = [one for one in near if words & one.names]
    # A name that one of the two releases lacks is spoken of anywhere.
    telling = {word for word in change.only if len(word) > _STEM} - EVERYWHERE
    far = [one for one in prose.said if telling & one.names]
    return next(iter([*noted, *naming, *far]), None) or nearest(anchor, prose)


def nearest(anchor: Anchor, prose: Prose, broken: Sequence[Breakage] = ()) -> Sentence | None:
    """Return the sentence that speaks of a definition, of what broke in it where one does.

    Where none writes its name, it is the one near by that has most of the words its name is made
    of; None if no word is there.
    """
    own = own_name(anchor.symbol or anchor.target)
    near = prose.near(anchor.cells)
    naming = [one for one in [*near, *prose.said] if own in one.names]
    words = {word for one in broken for word in (one.name, own_name(one.owner))} - {own, ""}
    exact = [one for one in [*naming, *near] if words & one.names]
    if exact or naming:
        return next(iter([*exact, *filter(None, [dated_sentence(anchor, prose)]), *naming]))
    parts = {part.lower()[:_STEM] for part in _PART.findall(own)}
    told = [(sum(part in one.text.lower() for part in parts), one) for one in near]
    count, best = max(told, key=lambda pair: pair[0], default=(0, None))
    return best if count else None


def dated_sentence(anchor: Anchor, prose: Prose) -> Sentence | None:
    """Return the sentence that tells two releases of a definition apart, if there is one."""
    own = own_name(anchor.symbol or anchor.target)
    named = (one for one in prose.said if own in one.names and _RELEASE.search(one.text))
    return next(named, None)


def names_file(anchor: Anchor, prose: Prose) -> Sentence | None:
    """Return the sentence that names the file of a definition, if one does."""
    file = anchor.file.rsplit("/", 1)[-1]
    return next((one for one in prose.said if file in one.text), None)


def shows_best(breakages: Sequence[Breakage], changes: Sequence[Change]) -> Change | None:
    """Return the change that shows a breakage best, else the first."""
    names = {one.name or own_name(one.owner) for one in breakages}
    told = (one for one in changes if any(names & set(words_of(line)) for line in one.old))
    return next(told, next(iter(changes), None))


def words_of(line: str) -> list[str]:
    """Return the words of a line, in order."""
    return re.findall(r"\w+", line)


def own_name(symbol: str) -> str:
    """Return the last part of a full name of Python or C++."""
    return symbol.replace("::", ".").replace(":", ".").rsplit(".", 1)[-1]
