"""Looking a C++ name up among the thousands of headers in a wheel, reading few of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from insidetorch.errors import BookError
from insidetorch.locate.cpp_symbols import Symbol, bare, split_name, symbols
from insidetorch.locate.definition import Definition

_INCLUDE = Path("torch/include")
_TREES = ("c10", "ATen", "torch", "caffe2")
_SUFFIXES = frozenset({".h", ".hpp", ".cuh"})
_TYPE_KINDS = frozenset({"class", "struct", "union", "enum", "concept", "macro"})
_KIND_ORDER = ("macro", "function", "alias", "variable", "enumerator")
_MOST_FILES = 250
_GUARD = b"#if !defined(TORCH_STABLE_ONLY)"
_NAMES = re.compile(
    rb"\b(?:class|struct|union|enum|using|concept)\s+(?:[A-Z0-9_]+\s+)?(\w+)"
    rb"|#\s*define\s+(\w+)|^[^\n;=(){}#/]*[\s*&]([a-z_]\w{3,})\s*\(",
    re.MULTILINE,
)


@cache
def header_lines(site: Path, file: str) -> tuple[str, ...]:
    """Return the lines of a text file below `site`, numbered as in PyTorch's own tree."""
    text = _read(site / file).decode("utf-8", "replace").replace("\r\n", "\n")
    return tuple(text.removesuffix("\n").split("\n"))


def without_guard(text: bytes) -> bytes:
    """Return a header without the lines that packaging wraps around it.

    Wheels from 2.10 on put an ``#if !defined(TORCH_STABLE_ONLY)`` above most headers, which moves
    every line down by one; without it a line has the number it has in PyTorch's tree and in the
    frames that a debugger shows of the library.
    """
    if not text.startswith(_GUARD):
        return text
    body = text.split(b"\n", 1)[1]
    tail = body.rfind(b"\n#else\n#error ")
    return body if tail < 0 else body[: tail + 1]


def find(site: Path, name: str, files: Sequence[str] = ()) -> list[Definition]:
    """Return the definitions of a C++ name, the best first; all are of one file.

    A definition with a body is preferred to a declaration, a type to what shares its name, and a
    name in full to one of which `name` is the end.

    :param site: the folder that holds ``torch/``.
    :param name: e.g. ``torch::autograd::Node::operator()``; leading namespaces may be missing.
    :param files: look only in these, below `site`; empty for all headers of PyTorch.
    :raises BookError: if nothing has that name, or things in several files do.
    """
    return list(_find(site, name, tuple(files)))


@cache
def _find(site: Path, name: str, files: tuple[str, ...]) -> tuple[Definition, ...]:
    wanted = split_name(name)
    if not wanted:
        raise BookError("a C++ target needs a name; write e.g. torch::autograd::Node")
    hits = _best(site, wanted, files) if files else _search(site, wanted)
    if not hits:
        raise BookError(_unknown(site, name, wanted, files))
    homes = sorted({file for file, _ in hits})
    names = sorted({symbol.name for _, symbol in hits})
    if len(homes) > 1:
        where = ", ".join(f"{home.removeprefix('torch/include/')}" for home in homes[:6])
        more = f" and {len(homes) - 6} more" if len(homes) > 6 else ""
        full = f" ({', '.join(names[:4])})" if len(names) > 1 else ""
        raise BookError(
            f"{name} names things in {len(homes)} headers{full}: {where}{more}; put the header "
            f'before it, as in "{homes[0].removeprefix("torch/include/")}:{name}"'
        )
    lines = header_lines(site, homes[0])
    return tuple(
        Definition(
            symbol.name.replace("(anonymous)::", ""),
            homes[0],
            "cpp",
            symbol.first,
            lines[symbol.first - 1 : symbol.last],
            symbol.signature,
            siblings=len(hits),
        )
        for _, symbol in hits
    )


def headers(site: Path) -> list[str]:
    """Return the paths below `site` of PyTorch's own headers, without those of single operators."""
    return list(_corpus(site))


def _best(site: Path, wanted: tuple[str, ...], files: Iterable[str]) -> list[tuple[str, Symbol]]:
    found: list[tuple[tuple[int, ...], str, Symbol]] = []
    for file in files:
        for every in (False, True):
            matches = [
                (rank, file, symbol)
                for symbol in _symbols(site / file, every)
                if (rank := _rank(symbol, wanted)) is not None
            ]
            found += matches
            if any(rank[1] == 0 for rank, _, _ in matches):
                break
    if not found:
        return []
    best = min(rank for rank, _, _ in found)
    kept = [(file, symbol) for rank, file, symbol in found if rank == best]
    return sorted(set(kept), key=lambda hit: (hit[0], hit[1].first))


def _rank(symbol: Symbol, wanted: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return how well a symbol fits, smaller first, or None."""
    own, last = symbol.path[-1], wanted[-1]
    if own != last and bare(own) != last:
        return None
    full = symbol.path
    lean = tuple(part for i, part in enumerate(full) if i not in symbol.optional)
    form = next((path for path in (full, lean) if _ends(path, wanted)), None)
    if form is None:
        return None
    specialised = sum(a != b for a, b in zip(form[-len(wanted) :], wanted, strict=True))
    kind = 0 if symbol.kind in _TYPE_KINDS else 1 + _KIND_ORDER.index(symbol.kind)
    return (len(form) - len(wanted), not symbol.body, specialised, kind)


def _ends(path: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    tail = path[-len(wanted) :]
    return len(tail) == len(wanted) and all(
        part in (mine, bare(mine)) for mine, part in zip(tail, wanted, strict=True)
    )


def _search(
    site: Path, wanted: tuple[str, ...], *, only_types: bool = False
) -> list[tuple[str, Symbol]]:
    """Return the best fits in all headers; types and macros come first, being quick to rule out."""
    corpus = _corpus(site)
    words = [bare(part).encode() for part in wanted]
    holding = [file for file, text in corpus.items() if all(word in text for word in words)]

    def fits(pattern: re.Pattern[bytes]) -> list[tuple[str, Symbol]]:
        likely = [file for file in holding if pattern.search(corpus[file])]
        likely.sort(key=lambda file: (_distance(file, wanted), file))
        return _best(site, wanted, likely[:_MOST_FILES])

    types = [hit for hit in fits(_defines_type(wanted[-1])) if _is_type(hit[1])]
    if types or only_types:
        return types
    return _best(site, wanted, _operator_headers(site, wanted)) or fits(_declares(wanted[-1]))


def _is_type(symbol: Symbol) -> bool:
    return symbol.body and symbol.kind in _TYPE_KINDS


@cache
def _defines_type(part: str) -> re.Pattern[bytes]:
    """Return what opens the definition of a type or macro of this name."""
    name = re.escape(bare(part)).encode()
    return re.compile(
        rb"^[ \t]*#[ \t]*define[ \t]+" + name + rb"\b"
        rb"|\b(?:class|struct|union|enum|concept)\s+"
        rb"(?:(?:[A-Z][A-Z0-9_]*|alignas)(?:\([^()]*\))?\s+|\[\[[^\]]*\]\]\s+)*"
        rb"(?:\w+(?:<[^;{}()]*?>)?::)*"
        + name
        + rb"\s*(?:<[^;{}]*?>\s*)?(?:final\s*)?(?::(?!:)[^;{}]*)?\{",
        re.MULTILINE,
    )


@cache
def _declares(part: str) -> re.Pattern[bytes]:
    """Return what a line that may declare this name looks like; it lets some uses through."""
    name = re.escape(bare(part)).replace(r"\ ", r"\s*").encode()
    return re.compile(
        rb"\b(?:class|struct|union|enum|using|concept|typedef)\b[^;{}()]*?\b"
        + name
        + rb"(?!\w)"
        + rb"|^(?![ \t]*(?:return|throw|case|//|\*|#))[^;\n=(){}]*?(?<![.>\w])"
        + name
        + rb"\s*\("
        + rb"|^[ \t]*(?!return\b)[\w:<>,*& ]+[\s*&>]"
        + name
        + rb"\s*(?:[;={]|\[)"
        + rb"|^[ \t]*"
        + name
        + rb"\s*[,=}]",
        re.MULTILINE,
    )


def _operator_headers(site: Path, wanted: tuple[str, ...]) -> list[str]:
    """Return the generated headers of the one operator that a name in ``at`` may belong to."""
    if wanted[0] != "at" or len(wanted) < 2:
        return []
    folder = site / _INCLUDE / "ATen" / "ops"
    special = wanted[1] in ("_ops", "native", "meta") and len(wanted) > 2
    parts = wanted[2 if special else 1].removeprefix("structured_").split("_")
    for end in range(len(parts), 0, -1):
        base = "_".join(parts[:end])
        suffix = "_" + wanted[1].removeprefix("_") if special else ""
        path = folder / f"{base}{suffix}.h"
        if base and path.is_file():
            return [path.relative_to(site).as_posix()]
    return []


def _distance(file: str, wanted: tuple[str, ...]) -> int:
    """Return how unlikely a header is, judged by its path alone."""
    path = file.lower().replace("_", "")
    return -sum(bare(part).lower().replace("_", "") in path for part in wanted)


@cache
def _corpus(site: Path) -> dict[str, bytes]:
    skipped = site / _INCLUDE / "ATen" / "ops"
    files = (
        path
        for tree in _TREES
        for path in sorted((site / _INCLUDE / tree).rglob("*"))
        if path.suffix in _SUFFIXES and path.parent != skipped
    )
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in files}


@cache
def _read(path: Path) -> bytes:
    return without_guard(path.read_bytes())


@cache
def _symbols(path: Path, every: bool) -> tuple[Symbol, ...]:
    return symbols(_read(path), all_branches=every)


def _unknown(site: Path, name: str, wanted: tuple[str, ...], files: Sequence[str]) -> str:
    if files:
        known = {s.name: s for file in files for s in _symbols(site / file, False)}
        where = files[0] if len(files) == 1 else f"{len(files)} files"
        near = _nearest(wanted, known)
    else:
        where = "the C++ headers of this torch"
        near = _nearest_anywhere(site, wanted)
    hint = f"did you mean {', '.join(near)}?" if near else "nothing has a similar name"
    return f"{name} is not in {where}; {hint}"


def _nearest(wanted: tuple[str, ...], known: Iterable[str]) -> list[str]:
    by_last: dict[str, list[str]] = {}
    for full in known:
        by_last.setdefault(bare(split_name(full)[-1]), []).append(full)
    close = get_close_matches(bare(wanted[-1]), by_last, n=4, cutoff=0.6)
    prefix = set(wanted[:-1])
    names = [
        min(by_last[last], key=lambda full: (-len(prefix & set(split_name(full))), len(full)))
        for last in close
    ]
    return names[:3]


def _nearest_anywhere(site: Path, wanted: tuple[str, ...]) -> list[str]:
    """Return full names near `wanted`: first among the members of its class, then anywhere."""
    if len(wanted) > 1:
        owners = _search(site, wanted[:-1], only_types=True)
        if owners:
            file, owner = owners[0]
            members = {s.name for s in _symbols(site / file, False) if s.path[:-1] == owner.path}
            near = _nearest(wanted, members)
            if near:
                return near
    target = bare(wanted[-1])
    words: dict[str, str] = {}
    for file, text in _corpus(site).items():
        for groups in _NAMES.findall(text):
            word = next(group for group in groups if group).decode()
            if abs(len(word) - len(target)) <= 3:
                words.setdefault(word, file)
    close = get_close_matches(target, words, n=4, cutoff=0.75)
    names: list[str] = []
    for word in close:
        hits = _best(site, (word,), [words[word]])
        names += [hits[0][1].name] if hits else []
    return list(dict.fromkeys(names))[:3]
