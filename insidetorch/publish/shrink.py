"""Makes a rendered site load fast: one style sheet of the rules in use, late scripts, few icons."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import tinycss2

from insidetorch.files import digest, write_changed
from insidetorch.publish.kept import code

T = TypeVar("T")

_SHEET = re.compile(r'[ \t]*<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^":]+)"[^>]*>\n?')
_SCRIPT = re.compile(r'<script\b(?![^>]*\b(?:defer|async)\b)([^>]*\bsrc="([^":]+)"[^>]*)></script>')
_STATIC = "/_static/"
OPTIONS = "documentation_options.js"
_INDEX = "search"  # the folder of the search's index: words of the book, and no names
_TOOLS = ("tinycss2", "fonttools")
_NAMES = re.compile(r'\b(?:class|id)=(?:"([^"]*)"|\'([^\']*)\')')
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
_URL = re.compile(r"url\(\s*([\"']?)(?!data:|#|[a-z]+:|/)([^)\"']+)\1\s*\)")
_CODE = re.compile(r"<pre\b(?P<attributes>[^>]*)>(?P<body>.*?)</pre>", re.DOTALL)
# Names, punctuation, numbers and operators have the colour of all code.
_PLAIN = re.compile(r'<span class="(?:n|p|w|o|mi|mf|mh|bp|nn|si|sa|nb)">([^<]*)</span>')
_SAME = re.compile(r'(<span class="(\w+)">[^<]*)</span><span class="\2">')
_GROUP = re.compile(r"<g(?P<attributes>[^>]*)>|</g>")
_THEME = re.compile(r'(<html\b[^>]*\bdata-theme=")auto"')
_DARK = re.compile(r"^[^{}@]*\[data-theme=[\"']?dark[\"']?\][^{}]*\{[^{}]*\}$", re.MULTILINE)
_PHONE, _WIDE = 46, 120
"""Columns of code that a phone has, and of what is printed too wide to be wrapped there."""
_PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(frozen=True)
class Names:
    """The names of classes and elements that pages or scripts can have.

    :param whole: names as they stand.
    :param starts: beginnings of names that a script completes.
    """

    whole: frozenset[str]
    starts: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.whole or name.startswith(self.starts)


@dataclass(frozen=True)
class Lean:
    """How the pages of a rendered site become lean.

    Style sheets become one, with the rules that some page or script can use; icon fonts keep the
    icons that are used; scripts wait until the page is read; code says how many rows it has, so
    that a browser can leave it out until it is in view, and has no elements where it has no colour
    of its own, which are half of a chapter's. Pages look and act as before.

    :param bundles: the pages that have sheets, each with where the one lies that it gets.
    :param sheets: the sheets that no page needs any more.
    :param files: the new sheets and their fonts, which belong beside the static files.
    """

    bundles: Mapping[Path, Path]
    sheets: frozenset[Path]
    files: tuple[Path, ...]

    def page(self, path: Path) -> str:
        """Return the text of a page as it is to be published."""
        return _page(path, path.read_text(encoding="utf-8"), self.bundles[path])


def lean(site: Path, digests: Mapping[Path, str], work: Path) -> Lean:
    """Make the sheets of a site's pages.

    :param site: the folder of a rendered site, which is left as it is.
    :param digests: the site's files, each with the digest of its content.
    :param work: where sheets, and what was found on pages, are kept between builds.
    """
    styles = {p: d for p, d in digests.items() if p.suffix in (".css", ".ttf")}
    known = {_unescaped(n) for p in styles if p.suffix == ".css" for n in _NAME.findall(_text(p))}
    theme = digest(code([__file__]), *map(metadata.version, _TOOLS), sorted(styles.items()))
    notes = _Notes(work / "notes.json")
    pages: dict[Path, list[str]] = {}
    whole: set[str] = set()
    for path, content in digests.items():
        if path.suffix == ".html" and path.parent.name != "_static":
            hrefs, found = notes.of(digest(theme, content), path, known, _seen)
            whole.update(found)
            if hrefs:
                pages[path] = hrefs
    scripts = sorted(p for p in digests if p.suffix == ".js" and p.parent.name != _INDEX)
    mixed = digest(theme, [digests[path] for path in scripts])
    starts, words = notes.of(mixed, scripts, known, _words)
    notes.keep()
    used = Names(frozenset({*whole, *words}), tuple(starts))
    relevant = sorted(name for name in known if name in used)
    bundles: dict[tuple[Path, ...], Path] = {}
    by_page: dict[Path, Path] = {}
    for path, hrefs in pages.items():
        goals = (_goal(href.partition("?")[0], path, site) for href in hrefs)
        sheets = tuple(sheet for sheet in goals if sheet in digests)
        if sheets not in bundles:
            folder = work / digest(theme, sheets, relevant)[:16]
            if not folder.is_dir():
                part = folder.with_name(f"{folder.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                _bundle(sheets, used, site / "_static", part)
                part.rename(folder)
            bundles[sheets] = next(folder.glob("*.css"))
        by_page[path] = site / "_static" / bundles[sheets].name
    folders = {sheet.parent for sheet in bundles.values()}
    for folder in work.iterdir():
        if folder.is_dir() and folder not in folders:
            shutil.rmtree(folder)
    files = tuple(sorted(file for folder in folders for file in folder.iterdir()))
    return Lean(by_page, frozenset(sheet for sheets in bundles for sheet in sheets), files)


class _Notes:
    """What was found in files, by the digest of their content; kept between builds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now: dict[str, Any] = {}
        try:
            self._before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._before = {}

    def of(
        self, key: str, about: T, known: set[str], look: Callable[[T, set[str]], Any]
    ) -> tuple[list[str], list[str]]:
        found = self._before.get(key) or look(about, known)
        self._now[key] = found
        return found[0], found[1]

    def keep(self) -> None:
        write_changed(self._path, json.dumps(self._now))


def _seen(path: Path, known: set[str]) -> tuple[list[str], list[str]]:
    """Return the sheets that a page names, and which of the known names it has."""
    text = _text(path)
    return _SHEET.findall(text), sorted(known & names([text], ()).whole)


def _words(scripts: Iterable[Path], known: set[str]) -> tuple[list[str], list[str]]:
    """Return the beginnings of names in scripts, and which of the known names they can have."""
    found = names((), map(_text, scripts))
    return list(found.starts), sorted(known & found.whole)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _goal(href: str, page: Path, site: Path) -> Path:
    """Return the file of an address; one from the host's root has the static files somewhere."""
    if not href.startswith("/"):
        return (page.parent / href).resolve()
    return (site / href[href.find(_STATIC) + 1 :]).resolve()


def names(pages: Iterable[str], scripts: Iterable[str]) -> Names:
    """Return the names that the pages have, and all words of the scripts."""
    whole: set[str] = set()
    for page in pages:
        for double, single in _NAMES.findall(page):
            whole.update((double or single).split())
    words = {word for script in scripts for word in _WORD.findall(script)}
    starts = tuple(sorted(word for word in words if word.endswith("-") and len(word) > 3))
    return Names(frozenset(whole | words), starts)


def rules_in_use(css: str, used: Names) -> str:
    """Return a style sheet without the rules whose classes or ids nothing has."""
    return "".join(_rules(tinycss2.parse_stylesheet(css, True, True), used))


def _rules(rules: Iterable[Any], used: Names) -> Iterator[str]:
    for rule in rules:
        if rule.type == "qualified-rule":
            wanted = [one for one in _selectors(rule.prelude) if _matches(one, used)]
            if wanted:
                yield f"{','.join(wanted)}{{{_short(rule.content)}}}\n"
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports", "layer"):
            if rule.content is None:
                yield rule.serialize()
                continue
            inner = "".join(_rules(tinycss2.parse_rule_list(rule.content, True, True), used))
            if inner:
                condition = tinycss2.serialize(rule.prelude).strip()
                yield f"@{rule.at_keyword} {condition}{{{inner}}}\n"
        elif rule.type == "at-rule":
            yield f"{rule.serialize()}\n"


def _selectors(prelude: Iterable[Any]) -> list[str]:
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    return [tinycss2.serialize(part).strip() for part in parts]


def _matches(selector: str, used: Names) -> bool:
    """Return whether an element can match; what is in brackets or parentheses is not looked at."""
    plain = re.sub(r"\([^()]*\)|\[[^\]]*\]", "", re.sub(r"\([^()]*\)", "", selector))
    return all(_unescaped(name) in used for name in _NAME.findall(plain))


def _short(content: Iterable[Any]) -> str:
    kept = [token for token in content if token.type != "comment"]
    return re.sub(r"\s*\n\s*", " ", tinycss2.serialize(kept)).strip()


def _bundle(sheets: Iterable[Path], used: Names, static: Path, out: Path) -> None:
    """Write the sheet and its fonts.

    :param static: the folder that it will lie in, with the fonts it is made from.
    :param out: where it is written.
    """
    text = "".join(rules_in_use(_resolved(sheet, static), used) for sheet in sheets)
    icons = {ord(character) for character in text} & set(_PRIVATE_USE)
    text = re.sub(r"@font-face\s*\{[^}]*\}", lambda face: _face(face[0], icons, static, out), text)
    dark = re.sub(r"(data-theme=[\"']?)dark", r"\1light", "\n".join(_DARK.findall(text)))
    text += f"@media (scripting: none) and (prefers-color-scheme: dark) {{{dark}}}\n"
    path = out / f"book-{hashlib.sha256(text.encode()).hexdigest()[:8]}.css"
    path.write_text(f'@charset "utf-8";\n{text}', encoding="utf-8")


def _resolved(sheet: Path, folder: Path) -> str:
    """Return a sheet with what it imports in place, and its addresses as seen from `folder`."""

    def imported(found: re.Match[str]) -> str:
        return _resolved((sheet.parent / found[1]).resolve(), folder)

    def moved(found: re.Match[str]) -> str:
        goal = os.path.relpath(sheet.parent / found[2], folder)
        return f"url({found[1]}{Path(goal).as_posix()}{found[1]})"

    text = _URL.sub(moved, sheet.read_text(encoding="utf-8").removeprefix("\ufeff"))
    return re.sub(r'@import "([^":]+)";', imported, re.sub(r'@charset "[^"]*";', "", text))


def _face(face: str, icons: set[int], static: Path, out: Path) -> str:
    """Return a font face that holds only the icons in use; one without a TrueType file stays."""
    from fontTools import subset

    found = re.search(r"url\(([^)]+\.ttf)\)", face)
    if found is None:
        return face
    font = subset.load_font(static / found[1], subset.Options(flavor="woff"))
    present = icons & set(font.getBestCmap())
    if not present:
        return ""
    subsetter = subset.Subsetter(subset.Options(flavor="woff", desubroutinize=True))
    subsetter.populate(unicodes=present)
    subsetter.subset(font)
    made = BytesIO()
    subset.save_font(font, made, subset.Options(flavor="woff"))
    path = out / f"{Path(found[1]).stem}.woff"
    path.write_bytes(made.getvalue())
    return re.sub(r"src:[^;}]*", f'src:url({path.name}) format("woff")', face)


def _page(path: Path, text: str, bundle: Path) -> str:
    """Return a page with the one sheet, and scripts that wait where they may."""
    first = _SHEET.search(text)
    assert first is not None
    if first[1].startswith("/"):
        href = f"{first[1].partition(_STATIC)[0]}{_STATIC}{bundle.name}"
    else:
        href = Path(os.path.relpath(bundle, path.parent)).as_posix()
    head, tail = text[: first.start()], text[first.start() :]
    text = f'{head}<link rel="stylesheet" href="{href}" />\n{_SHEET.sub("", tail)}'
    # Without scripts a page is light, and dark where the reader's system is; see `_bundle`.
    text = _THEME.sub(r'\1light"', _CODE.sub(_lighter, ungrouped(text)))

    def late(found: re.Match[str]) -> str:
        source = path.parent / found[2].partition("?")[0]
        if source.name == OPTIONS and source.is_file():
            return f"<script>{source.read_text(encoding='utf-8')}</script>"
        return f"<script defer{found[1]}></script>"

    return _SCRIPT.sub(late, text)


def ungrouped(text: str) -> str:
    """Return a page whose drawings have no groups that say nothing of what is in them."""
    kept: list[bool] = []

    def group(found: re.Match[str]) -> str:
        if found["attributes"] is not None:
            kept.append(bool(found["attributes"].strip()))
            return found[0] if kept[-1] else ""
        return found[0] if kept and kept.pop() else ""

    return _GROUP.sub(group, text)


def _joined(code: str) -> str:
    """Return code whose neighbours of one colour are one element."""
    while (joined := _SAME.sub(r"\1", code)) != code:
        code = joined
    return code


def _lighter(found: re.Match[str]) -> str:
    """Return preformatted text with fewer elements; it says its rows if its lines do not wrap."""
    attributes, code = found["attributes"], _PLAIN.sub(r"\1", found["body"])
    code = _joined(code)
    if "pre-wrap" in attributes:
        return f"<pre{attributes}>{code}</pre>"
    # A browser drops a line break at the very start, and shows none at the end.
    body = code.removeprefix("\n")
    text = re.sub(r"<[^>]*>", "", body).removesuffix("\n")
    lines = text.split("\n")
    rows = f"--it-rows:{len(lines)}"
    if (wrapped := sum(max(-(-len(line) // _PHONE), 1) for line in lines)) > len(lines):
        rows += f";--it-wrapped:{wrapped}"
    if "class=" not in attributes and max(map(len, lines)) > _WIDE:
        attributes += ' class="it-wide"'
    if 'style="' in attributes:
        attributes = attributes.replace('style="', f'style="{rows};')
    else:
        attributes += f' style="{rows}"'
    return f"<pre{attributes}>{code}</pre>"
