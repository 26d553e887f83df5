"""The map of PyTorch's source: folders sized by their lines, with the chapters that quote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import squarify

from insidetorch import facts
from insidetorch.decode import decode
from insidetorch.display import escape, marked
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.part import PageContext
from insidetorch.site.places import linked
from insidetorch.site.tree import HEADERS, Area, area_of, areas, count_lines

WIDTH, GAP, TITLE = 720.0, 2.0, 17.0
_CHARACTER = 6.2  # width of a character of the labels, in the drawing's units

Rectangle = tuple[float, float, float, float]  # x, y, width, height


def html(page: PageContext) -> str:
    """Return the maps of the torch that is installed where the site is built."""
    torch = facts.torch_facts()
    if torch is None:
        return "<p class='it'>PyTorch is not installed where this site was built: no map.</p>"
    return source_map(torch.root, torch.release, page.ledger, page.link)


def source_map(root: Path, release: str, ledger: Ledger | None, link: Callable[[str], str]) -> str:
    """Return the two maps of an installed torch and their tables as HTML.

    :param root: the folder of the installed package.
    :param release: its version, for the captions.
    :param ledger: the chapters and what they quote; None if the site was built without it.
    :param link: returns the address of a chapter's document, relative to the page.
    """
    lines = _lines(root)
    chapters = ledger.chapters if ledger else ()
    parts = [
        _half("Python", lines, "torch", HEADERS, 460.0, chapters, link, release),
        _half("C++ headers", lines, HEADERS, "", 400.0, chapters, link, release),
    ]
    return f'<div class="it it-map">{"".join(parts)}</div>'


def quoted(
    chapters: Sequence[Executed], drawn: list[Area], skip: str = ""
) -> dict[str, dict[str, int]]:
    """Return, for the path of each area, the chapters that quote it and how often.

    :return: area path → document name → number of excerpts, in the chapters' order.
    """
    found: dict[str, dict[str, int]] = {}
    for chapter in chapters:
        for record in chapter.of("excerpt"):
            file = str(record.get("file") or record.get("upstream") or "")
            area = area_of(file, drawn, skip) if file else None
            if area is not None:
                docs = found.setdefault(area.path, {})
                docs[chapter.doc] = docs.get(chapter.doc, 0) + 1
    return found


def rectangles(sizes: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """Lay areas out in a rectangle, each as near to a square as it goes.

    :param sizes: positive sizes, largest first.
    :return: x, y, width, height of each, in the same order; together they fill the rectangle.
    """
    if not sizes:
        return []
    scaled = squarify.normalize_sizes(list(sizes), width, height)
    return [
        (box["x"], box["y"], box["dx"], box["dy"])
        for box in squarify.squarify(scaled, 0.0, 0.0, width, height)
    ]


@cache
def notes() -> Mapping[str, str]:
    """Return what each folder holds, by its path as installed."""
    return decode(dict[str, str], Path(__file__).parent / "directories.yml")


@cache
def _lines(root: Path) -> dict[str, int]:
    return count_lines(root)


def _half(
    name: str, lines: Mapping[str, int], root: str, skip: str, height: float,
    chapters: Sequence[Executed], link: Callable[[str], str], release: str,
) -> str:  # fmt: skip
    tree = areas(lines, root, split=0.06, least=0.006, skip=skip)
    drawn = tree.leaves()
    places = quoted(chapters, drawn, skip)
    titles = {chapter.doc: chapter.title for chapter in chapters}
    caption = f"{name} in torch {escape(release)}: {tree.lines:,} lines below <code>{root}</code>"
    boxes = "".join(
        _box(area, box, parent, places.get(area.path, {}), titles, link)
        for area, box, parent in _placed(tree, (0.0, 0.0, WIDTH, height))
    )
    rows = "".join(
        _row(area, drawn[0].lines, places.get(area.path, {}), titles, link) for area in drawn
    )
    return (
        f'<figure class="it-map-figure"><figcaption>{caption}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="group" '
        f'aria-label="Map of PyTorch’s {escape(name)}; the table below says the same">{boxes}</svg>'
        f'</figure><div class="it-scroll" tabindex="0" role="group" aria-label="{escape(name)} by '
        f'folder"><table class="it-table it-map-table"><thead><tr><th scope="col">Folder</th>'
        '<th scope="col" class="it-num">Lines</th><th scope="col">What it holds</th>'
        f'<th scope="col">Quoted in</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _placed(tree: Area, box: Rectangle) -> list[tuple[Area, Rectangle, str]]:
    """Place the areas inside `tree`: each with its box and the folder it is drawn in."""
    placed: list[tuple[Area, Rectangle, str]] = []
    x, y, width, height = box
    for area, (left, top, wide, high) in zip(
        tree.inside, rectangles([area.lines for area in tree.inside], width, height), strict=True
    ):
        own = (x + left, y + top, wide, high)
        placed.append((area, own, tree.path))
        if area.inside:
            inner = (
                own[0] + GAP,
                own[1] + TITLE,
                max(wide - 2 * GAP, 1),
                max(high - TITLE - GAP, 1),
            )
            placed += _placed(area, inner)
    return placed


def _box(
    area: Area, box: Rectangle, parent: str, docs: Mapping[str, int], titles: Mapping[str, str],
    link: Callable[[str], str],
) -> str:  # fmt: skip
    x, y, width, height = box[0] + GAP / 2, box[1] + GAP / 2, box[2] - GAP, box[3] - GAP
    docs = {} if area.inside else docs
    said = f"{_named(area, area.path)}, {area.lines:,} lines"
    note = _plain(notes().get(area.path, ""))
    seen = "; quoted in " + ", ".join(titles[doc] for doc in docs) if docs else ""
    title = escape(f"{said}{': ' + note if note else ''}{seen}")
    kind = "it-box it-quoted" if docs else "it-box it-group" if area.inside else "it-box"
    drawn = (
        f'<g class="{kind}"><title>{title}</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="2"/>'
        f"{_label(area, parent, x, y, width, height)}</g>"
    )
    first = next(iter(docs), None)
    if first is None:
        return drawn
    return f'<a href="{escape(link(first))}" aria-label="{title}">{drawn}</a>'


def _label(area: Area, parent: str, x: float, y: float, width: float, height: float) -> str:
    short = area.path.removeprefix(parent).lstrip("/")
    name = short if area.whole else "the rest"
    if height < 15:
        return ""
    fitting = next((n for n in (name, name.rsplit("/", 1)[-1]) if _wide(n) <= width - 8), None)
    if fitting is None:
        return ""
    count = f"{area.lines / 1000:.0f}k"
    if area.inside:
        second = f'<tspan class="it-box-lines"> {count}</tspan>'
        second = second if _wide(f"{fitting} {count}") <= width - 8 else ""
    elif height >= 30:
        second = f'<tspan class="it-box-lines" x="{x + 5:.1f}" dy="13">{count}</tspan>'
    else:
        second = ""
    return f'<text x="{x + 5:.1f}" y="{y + 12:.1f}">{escape(fitting)}{second}</text>'


def _wide(text: str) -> float:
    return len(text) * _CHARACTER


def _named(area: Area, path: str) -> str:
    return path if area.whole else f"{path} (the rest of it)"


def _row(
    area: Area, most: int, docs: Mapping[str, int], titles: Mapping[str, str],
    link: Callable[[str], str],
) -> str:  # fmt: skip
    chapters = ", ".join(
        f"{linked(link(doc), titles[doc])} ({count}×)" for doc, count in docs.items()
    )
    rest = "" if area.whole else ' <span class="it-soft">(the rest of it)</span>'
    share = 100 * area.lines / most
    return (
        f"<tr><th scope='row'><code>{escape(area.path)}</code>{rest}</th>"
        f'<td class="it-num">{area.lines:,}<span class="it-bar" aria-hidden="true">'
        f'<span style="width:{share:.1f}%"></span></span></td>'
        f"<td>{marked(notes().get(area.path, ''))}</td><td>{chapters}</td></tr>"
    )


def _plain(note: str) -> str:
    return note.replace("`", "")
