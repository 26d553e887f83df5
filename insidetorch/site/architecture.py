"""The map of PyTorch's architecture: drawn from a YAML file, checked against the installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Annotated

from msgspec import Meta

from insidetorch import facts
from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape, marked
from insidetorch.show.figures import COLOURS, graph
from insidetorch.site.part import PageContext
from insidetorch.site.places import linked

FILE = "book/map.yml"
NONE_YET = "no chapter yet"
_WIDTH, _GAP = 1.66, 0.12  # of a box, in inches: five in a row fit the page's column
_CHARACTERS = 20  # of a chapter's title that fit into a line of a box

Names = Annotated[tuple[str, ...], Meta(min_length=1)]


class Box(Written, frozen=True):
    """A box of the map.

    :param says: what it is, with code in backticks.
    :param files: paths below ``site-packages``.
    :param uses: ids of the boxes it calls.
    :param makes: ids of the boxes that are generated from it.
    :param chapters: names of the chapters that show it, written or not.
    :param symbol: a function that its layer's library defines, or empty.
    """

    id: Words
    title: Words
    says: Words
    files: Names
    chapters: Names
    uses: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    symbol: str = ""


class Layer(Written, frozen=True):
    """Boxes that lie side by side.

    :param library: the shared library that they are in, without prefix and suffix, or empty.
    :param rows: their ids, from left to right, in rows from the top; None is an empty place. A
        box alone in its row is as wide as the map.
    """

    title: Words
    says: Words
    rows: tuple[tuple[str | None, ...], ...]
    library: str = ""


class Map(Written, frozen=True):
    """The map: its layers from the top, and the boxes that stand in them."""

    layers: tuple[Layer, ...]
    parts: tuple[Box, ...]

    def __post_init__(self) -> None:
        ids = [box.id for box in self.parts]
        placed = [id for layer in self.layers for row in layer.rows for id in row if id]
        for id in [*placed, *(id for box in self.parts for id in (*box.uses, *box.makes))]:
            if id not in ids:
                raise ValueError(f"names {id!r}, which is no part; add it or mend the name")
        for id in ids:
            if placed.count(id) != 1 or ids.count(id) != 1:
                raise ValueError(f"must describe and place the part {id!r} once")

    @property
    def boxes(self) -> dict[str, Box]:
        """The boxes by id."""
        return {box.id: box for box in self.parts}

    def of(self, layer: Layer) -> list[Box]:
        """Return the boxes of a layer, row by row."""
        return [self.boxes[id] for row in layer.rows for id in row if id]


Find = Callable[[str], tuple[str, str] | None]
"""Takes a chapter's name; returns its address, relative to the page, and its title, or None."""


def read_map(path: Path) -> Map:
    """Read the map.

    :raises BookError: the file is missing or malformed; the message names the entry.
    """
    return decode(Map, path)


def missing(drawn: Map, packages: Path) -> list[str]:
    """Return what the map names and an installation lacks, each as a sentence.

    :param packages: the folder that torch is installed in.
    """
    files = [
        f"{FILE}: part {part.id!r} names {file}, which is not in the installed torch; mend it."
        for part in drawn.parts
        for file in part.files
        if not (packages / file).exists()
    ]
    libraries = [
        f"{FILE}: the layer {layer.title!r} names the library {layer.library!r}, which is not in "
        "the installed torch; mend it."
        for layer in drawn.layers
        if layer.library and not list((packages / "torch" / "lib").glob(f"*{layer.library}.*"))
    ]
    return files + libraries


def picture(drawn: Map, chapter: Find) -> str:
    """Return the drawing as HTML: an SVG whose boxes lead to chapters."""
    shown = [part for part in drawn.parts if _first(part, chapter)]
    alt = (
        f"Map of PyTorch in {len(drawn.layers)} layers: "
        + "; ".join(
            f"{layer.title}: {', '.join(part.title for part in drawn.of(layer))}"
            for layer in drawn.layers
        )
        + f". {len(shown)} of {len(drawn.parts)} parts lead to a chapter. "
        "The lists below say the same."
    )
    svg = graph(_dot(drawn, chapter), alt=alt).html
    # A picture with links in it is a group: readers that cannot see it must reach them.
    svg = svg.replace('role="img"', 'role="group"', 1)
    return f'<div class="it-architecture">{svg}</div>'


def in_words(drawn: Map, chapter: Find) -> str:
    """Return the same as lists, one for each layer."""
    return "".join(
        f'<h2>{escape(layer.title)}</h2><p>{marked(layer.says)}</p><dl class="it-glossary">'
        f"{''.join(_item(part, drawn.boxes, chapter) for part in drawn.of(layer))}</dl>"
        for layer in drawn.layers
    )


def beside(drawn: Map, written: Iterable[str], chapter: Find) -> str:
    """Return a paragraph that leads to the written chapters that no part names, or nothing."""
    named = {name for part in drawn.parts for name in part.chapters}
    found = [place for name in written if name not in named and (place := chapter(name))]
    links = ", ".join(linked(*place) for place in found)
    return f"<p>Chapters on no single part: {links}.</p>" if links else ""


def _first(part: Box, chapter: Find) -> tuple[str, str] | None:
    return next((found for name in part.chapters if (found := chapter(name))), None)


def _dot(drawn: Map, chapter: Find) -> str:
    """Return the drawing in Graphviz's language.

    Invisible edges along rows and columns hold the boxes in their places; the visible ones do not
    move them.
    """
    columns = max(len(row) for layer in drawn.layers for row in layer.rows)
    wide = columns * _WIDTH + (columns - 1) * _GAP
    lines = [
        f"digraph {{ rankdir=TB; nodesep={_GAP}; ranksep=0.36; newrank=true;",
        f"node [shape=box, fixedsize=true, width={_WIDTH}, height=0.6];",
        "edge [arrowsize=0.6];",
    ]
    above: list[str] = []
    skeleton = []
    for number, layer in enumerate(drawn.layers):
        lines.append(
            f'subgraph cluster_{number} {{ label="{layer.title}"; labeljust=l; fontsize=12; '
            f'color="{COLOURS["line"]}"; style=rounded; margin=9;'
        )
        for place, row in enumerate(layer.rows):
            ids = [id or f"gap-{number}-{place}-{n}" for n, id in enumerate(row)]
            boxes = [
                _node(drawn.boxes[id], chapter, wide if len(row) == 1 else _WIDTH) if id in row
                else f'"{id}" [label="", style=invis]'
                for id in ids
            ]  # fmt: skip
            lines.append("{ rank=same; " + "; ".join(boxes) + "; }")
            lines += [f'"{a}" -> "{b}" [style=invis, weight=5];' for a, b in pairwise(ids)]
            ids = ids * columns if len(ids) == 1 else ids
            skeleton += [f'"{a}" -> "{b}"' for a, b in zip(above, ids, strict=False)]
            above = ids
        lines.append("}")
    lines += [f"{edge} [style=invis, weight=9];" for edge in skeleton]
    for part in (part for layer in drawn.layers for part in drawn.of(layer)):
        lines += [f'"{part.id}" -> "{other}" [constraint=false];' for other in part.uses]
        lines += [f'"{part.id}" -> "{o}" [constraint=false, style=dotted];' for o in part.makes]
    return "\n".join([*lines, "}"])


def _node(part: Box, chapter: Find, width: float) -> str:
    found = _first(part, chapter)
    below = wrap(f"→ {found[1]}", _CHARACTERS) if found else [NONE_YET]
    label = (
        f'<<font point-size="11"><b>{escape(part.title)}</b></font><br/>'
        f'<font point-size="10">{"<br/>".join(map(escape, below))}</font>>'
    )
    look = f'color="{COLOURS["a"]}", penwidth=2' if found else "style=dashed"
    link = f', URL="{escape(found[0])}", tooltip="{escape(part.title)}"' if found else ""
    return f'"{part.id}" [label={label}, width={width:.2f}, {look}{link}]'


def _item(part: Box, boxes: Mapping[str, Box], chapter: Find) -> str:
    found = [place for name in part.chapters if (place := chapter(name))]
    shown = ", ".join(linked(*place) for place in found)
    after = [f"Calls {_named(part.uses, boxes)}."] if part.uses else []
    after += [f"Becomes {_named(part.makes, boxes)}."] if part.makes else []
    after.append(f"Look into {', '.join(f'<code>{escape(file)}</code>' for file in part.files)}.")
    after.append(f"Shown in {shown}." if shown else f"There is {NONE_YET}.")
    return (
        f'<dt id="part-{escape(part.id)}">{escape(part.title)}</dt><dd><p>{marked(part.says)}</p>'
        f'<p class="it-seen">{" ".join(after)}</p></dd>'
    )


def _named(ids: Sequence[str], boxes: Mapping[str, Box]) -> str:
    return ", ".join(linked(f"#part-{id}", boxes[id].title) for id in ids)


def html(page: PageContext) -> str:
    """Return the map, and the same in words."""

    def chapter(name: str) -> tuple[str, str] | None:
        address = page.link(f"notebooks/{name}")
        return (address, page.titles[f"notebooks/{name}"]) if address else None

    drawn = read_map(page.source / FILE)
    docs = sorted(doc for doc in page.titles if doc.startswith("notebooks/"))
    written = [doc.removeprefix("notebooks/") for doc in docs]
    return (
        f"{picture(drawn, chapter)}{_built_with(page, drawn)}{in_words(drawn, chapter)}"
        f"{beside(drawn, written, chapter)}"
    )


def _built_with(page: PageContext, drawn: Map) -> str:
    """Look for what the map names in the installed torch, and say that it was done."""
    torch = facts.torch_facts()
    if torch is None:
        return "<p>PyTorch is not installed where this site was built: no file was looked for.</p>"
    lacking = missing(drawn, torch.root.parent)
    for sentence in lacking:
        page.complain(sentence)
    count = sum(len(part.files) for part in drawn.parts)
    return (
        f'<p class="it-soft">Of the {count} files and folders named below, {count - len(lacking)} '
        f"were found in torch {escape(torch.release)} when this page was built.</p>"
    )
