"""Terms of the glossary: linked where they are first used, and not before they are defined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from insidetorch.site.glossary import Entry
from reader.page import Finding, Prose, Read, line_of

_EVERYDAY = """claim verdict excerpt recording miniature root depth event steal capture module
    parameter buffer view meta region policy source program grid sector bank lane frame guard store
    future overlap wave scope stub symbol binding virtual template pack archive fallback
    functionality alignment atomic moment launch closure context materialize tangent schedule
    wrapper edge node checkpoint reorder realize lowering decomposition fusion fused boxed exponent
    pickle storage stream overload"""
EVERYDAY = frozenset(_EVERYDAY.split()) | {
    "in place", "inlined function", "version counter", "dynamic loader", "closed form",
}  # fmt: skip
"""Terms with an everyday meaning too: they count where the chapter links or shows them."""

_BEGINS = re.compile(r"(?<![\w-])\S")
_EXPLAINS = re.compile(
    r"\*{0,2}(?:\s*\(|,\s+(?:a|an|the|that|which|where|what|one|its|so|or)\b|\s*[:–—]|"
    r"\s+(?:is|are|means)\b)"
)


@dataclass(frozen=True)
class _Use:
    line: int
    linked: bool
    explained: bool


def terms(read: Read, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Find terms that are no link, or not yet explained, where they are first used."""
    words = {name.lower(): entry for entry in entries for name in entry.names}
    forms = _forms(tuple(entries))
    uses: dict[str, list[_Use]] = {}
    for deeper in (False, True):
        for prose in read.prose:
            if prose.deeper == deeper:
                found = sorted(_uses(prose, forms, words), key=lambda each: each[0])
                for _, entry, use in found:
                    uses.setdefault(entry.term, []).append(use)
    for entry in entries:
        found = uses.get(entry.term, [])
        here = read.labels.get(entry.shown)
        is_linked = any(use.linked for use in found)
        if not found or (_everyday(entry) and not is_linked and here is None):
            continue
        first = found[0]
        if not first.linked:
            more = "" if is_linked else "; it is no link anywhere"
            yield Finding("link", first.line, f"{entry.term}{more}")
        if here is not None and here > first.line and not first.explained:
            yield Finding("later", first.line, f"{entry.term} is shown at line {here}")


def _everyday(entry: Entry) -> bool:
    return entry.term.lower() in EVERYDAY


def _uses(
    prose: Prose, forms: _Forms, words: Mapping[str, Entry]
) -> Iterator[tuple[int, Entry, _Use]]:
    for place, target in prose.linked.items():
        if target in words:
            end = prose.raw.index("`", prose.raw.index("`", place) + 1) + 1
            bold = prose.raw[max(0, place - 1) : place] == "*"
            called = re.search(r"\b(?:called|is|are)\s+(?:an?\s+|the\s+)?$", prose.raw[:place])
            explained = bold or bool(called) or bool(_EXPLAINS.match(prose.raw, end))
            yield place, words[target], _Use(line_of(prose, place), True, explained)
    for place, code in prose.code.items():
        if code in forms.code:
            yield place, words[code.lower()], _Use(line_of(prose, place), False, False)
    for found in forms.found(prose.text):
        name = " ".join(found[1].split()).lower()
        explained = prose.text[max(0, found.start() - 2) : found.start()] == "**"
        yield found.start(), words[name], _Use(line_of(prose, found.start()), False, explained)


@dataclass(frozen=True)
class _Forms:
    """How terms are written.

    :param code: those that are code.
    :param plain: for the small first letter of the others a pattern that finds them, the longest
        first. One pattern for all takes ten times as long.
    """

    code: frozenset[str]
    plain: Mapping[str, re.Pattern[str]]

    def found(self, text: str) -> Iterator[re.Match[str]]:
        at = 0
        while start := _BEGINS.search(text, at):
            pattern = self.plain.get(start[0].lower())
            found = pattern.match(text, start.start()) if pattern else None
            if found:
                yield found
            at = (found or start).end()


@cache
def _forms(entries: tuple[Entry, ...]) -> _Forms:
    names = [name for entry in entries for name in (entry.term, *entry.also)]
    code = frozenset(name.strip("`") for name in names if name.startswith("`"))
    plain: dict[str, list[str]] = {}
    for name in sorted((name.replace("`", "") for name in names if "`" not in name), key=len):
        spaced = r"\s+".join(map(re.escape, name.split(" ")))
        form = spaced if name != name.lower() else f"(?i:{spaced})"
        plain.setdefault(name[0].lower(), []).insert(0, form)
    return _Forms(
        code,
        {
            first: re.compile(rf"({'|'.join(each)})(?:s|es)?(?![\w-])")
            for first, each in plain.items()
        },
    )
