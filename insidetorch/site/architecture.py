"""The map of PyTorch's architecture: drawn from a YAML file, checked against the installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from insidetorch import facts
from insidetorch.display import escape
from insidetorch.errors import BookError
from insidetorch.show.figures import COLOURS, graph
from insidetorch.site.places import GENERATED
from insidetorch.site.written import marked

logger = logging.getLogger(__name__)

SOURCE = "book/map.yml"
NONE_YET = "no chapter yet"
_WIDTH, _GAP = 1.66, 0.12  # of a box, in inches: five in a row fit the page's column
_CHARACTERS = 20  # of a chapter's title that fit into a box


@dataclass(frozen=True)
class Part:
    """A box of the map.

    :param says: what it is, with code in backticks.
    :param files: paths below ``site-packages``.
    :param uses: ids of the parts it calls.
    :param makes: ids of the parts that are generated from it.
    :param chapters: names of the chapters that show it, written or not.
    :param symbol: a function that its layer's library defines, or empty.
    """

    id: str
    title: str
    says: str
    files: tuple[str, ...]
    uses: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    symbol: str = ""


@dataclass(frozen=True)
class Layer:
    """Parts that lie side by side.

    :param library: the shared library that they are in, without prefix and suffix, or empty.
    :param rows: the parts, from left to right, in rows from the top; None is an empty place. A
        part alone in its row is as wide as the map.
    """

    title: str
    says: str
    rows: tuple[tuple[Part | None, ...], ...]
    library: str = ""

    @property
    def parts(self) -> list[Part]:
        """Its parts, row by row."""
        return [part for row in self.rows for part in row if part]


Chapter = Callable[[str], tuple[str, str] | None]
"""Takes a chapter's name; returns its address, relative to the page, and its title, or None."""


def read_map(path: Path) -> list[Layer]:
    """Read the map.

    :raises BookError: the file is missing or malformed; the message names the entry.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        entries = [_part(entry) for entry in given["parts"]]
        drawn = [
            (str(layer["title"]), str(layer["says"]), layer["rows"], layer.get("library", ""))
            for layer in given["layers"]
        ]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise BookError(f"{path.name} cannot be read as a map ({problem}); mend it.") from error
    known = {part.id: part for part in entries}
    placed = [id for _, _, rows, _ in drawn for row in rows for id in row if id]
    named = [*placed, *(id for part in entries for id in (*part.uses, *part.makes))]
    for id in named:
        if id not in known:
            raise BookError(f"{path.name} names {id!r}, which is no part; add it or mend the name.")
    for id in [*known, *placed]:
        if placed.count(id) != 1 or [part.id for part in entries].count(id) != 1:
            raise BookError(f"{path.name}: part {id!r} must be described once and placed once.")
    return [
        Layer(
            title,
            says,
            tuple(tuple(known[id] if id else None for id in row) for row in rows),
            library,
        )
        for title, says, rows, library in drawn
    ]


def missing(layers: Sequence[Layer], packages: Path) -> list[str]:
    """Return what the map names and an installation lacks, each as a sentence.

    :param packages: the folder that torch is installed in.
    """
    files = [
        f"{SOURCE}: part {part.id!r} names {file}, which is not in the installed torch; mend it."
        for layer in layers
        for part in layer.parts
        for file in part.files
        if not (packages / file).exists()
    ]
    libraries = [
        f"{SOURCE}: the layer {layer.title!r} names the library {layer.library!r}, which is not in "
        "the installed torch; mend it."
        for layer in layers
        if layer.library and not list((packages / "torch" / "lib").glob(f"*{layer.library}.*"))
    ]
    return files + libraries


def picture(layers: Sequence[Layer], chapter: Chapter) -> str:
    """Return the drawing as HTML: an SVG whose boxes lead to chapters."""
    parts = [part for layer in layers for part in layer.parts]
    shown = [part for part in parts if _first(part, chapter)]
    alt = (
        f"Map of PyTorch in {len(layers)} layers: "
        + "; ".join(f"{x.title}: {', '.join(part.title for part in x.parts)}" for x in layers)
        + f". {len(shown)} of {len(parts)} parts lead to a chapter. The lists below say the same."
    )
    drawn = graph(_dot(layers, chapter), alt=alt).html
    # A picture with links in it is a group: readers that cannot see it must reach them.
    drawn = drawn.replace('role="img"', 'role="group"', 1)
    return f'<div class="it-architecture">{drawn}</div>'


def in_words(layers: Sequence[Layer], chapter: Chapter) -> str:
    """Return the same as lists, one for each layer."""
    titles = {part.id: part.title for layer in layers for part in layer.parts}
    return "".join(_listed(layer, titles, chapter) for layer in layers)


def beside(layers: Sequence[Layer], written: Iterable[str], chapter: Chapter) -> str:
    """Return a paragraph that leads to the written chapters that no part names, or nothing."""
    named = {name for layer in layers for part in layer.parts for name in part.chapters}
    found = [place for name in written if name not in named and (place := chapter(name))]
    links = ", ".join(f'<a href="{escape(to)}">{escape(title)}</a>' for to, title in found)
    return f"<p>Chapters on no single part: {links}.</p>" if links else ""


def _part(entry: Mapping[str, Any]) -> Part:
    lists = {
        name: tuple(map(str, entry.get(name) or ()))
        for name in ("files", "uses", "makes", "chapters")
    }
    if not lists["files"] or not lists["chapters"]:
        raise KeyError(f"files or chapters of {entry.get('id')}")
    return Part(
        id=str(entry["id"]),
        title=str(entry["title"]),
        says=str(entry["says"]),
        symbol=str(entry.get("symbol") or ""),
        **lists,
    )


def _first(part: Part, chapter: Chapter) -> tuple[str, str] | None:
    return next((found for name in part.chapters if (found := chapter(name))), None)


def _dot(layers: Sequence[Layer], chapter: Chapter) -> str:
    """Return the drawing in Graphviz's language.

    Invisible edges along rows and columns hold the boxes in their places; the visible ones do not
    move them.
    """
    columns = max(len(row) for layer in layers for row in layer.rows)
    wide = columns * _WIDTH + (columns - 1) * _GAP
    lines = [
        f"digraph {{ rankdir=TB; nodesep={_GAP}; ranksep=0.36; newrank=true;",
        f"node [shape=box, fixedsize=true, width={_WIDTH}, height=0.6];",
        "edge [arrowsize=0.6];",
    ]
    above: list[str] = []
    skeleton = []
    for number, layer in enumerate(layers):
        lines.append(
            f'subgraph cluster_{number} {{ label="{layer.title}"; labeljust=l; fontsize=12; '
            f'color="{COLOURS["line"]}"; style=rounded; margin=9;'
        )
        for place, row in enumerate(layer.rows):
            ids = [p.id if p else f"gap-{number}-{place}-{n}" for n, p in enumerate(row)]
            boxes = [
                _node(part, chapter, wide if len(row) == 1 else _WIDTH) if part
                else f'"{id}" [label="", style=invis]'
                for id, part in zip(ids, row, strict=True)
            ]  # fmt: skip
            lines.append("{ rank=same; " + "; ".join(boxes) + "; }")
            lines += [f'"{a}" -> "{b}" [style=invis, weight=5];' for a, b in pairwise(ids)]
            ids = ids * columns if len(ids) == 1 else ids
            skeleton += [f'"{a}" -> "{b}"' for a, b in zip(above, ids, strict=False)]
            above = ids
        lines.append("}")
    lines += [f"{edge} [style=invis, weight=9];" for edge in skeleton]
    for part in (part for layer in layers for part in layer.parts):
        lines += [f'"{part.id}" -> "{other}" [constraint=false];' for other in part.uses]
        lines += [f'"{part.id}" -> "{o}" [constraint=false, style=dotted];' for o in part.makes]
    return "\n".join([*lines, "}"])


def _node(part: Part, chapter: Chapter, width: float) -> str:
    found = _first(part, chapter)
    below = f"→ {_short(found[1])}" if found else NONE_YET
    label = (
        f'<<font point-size="11"><b>{escape(part.title)}</b></font><br/>'
        f'<font point-size="10">{escape(below)}</font>>'
    )
    look = f'color="{COLOURS["a"]}", penwidth=2' if found else "style=dashed"
    link = f', URL="{escape(found[0])}", tooltip="{escape(part.title)}"' if found else ""
    return f'"{part.id}" [label={label}, width={width:.2f}, {look}{link}]'


def _short(title: str) -> str:
    return title if len(title) <= _CHARACTERS else title[: _CHARACTERS - 1].rstrip(" ,") + "…"


def _listed(layer: Layer, titles: Mapping[str, str], chapter: Chapter) -> str:
    items = "".join(_item(part, titles, chapter) for part in layer.parts)
    return (
        f"<h2>{escape(layer.title)}</h2><p>{marked(layer.says)}</p>"
        f'<dl class="it-glossary">{items}</dl>'
    )


def _item(part: Part, titles: Mapping[str, str], chapter: Chapter) -> str:
    found = [place for name in part.chapters if (place := chapter(name))]
    shown = ", ".join(f'<a href="{escape(to)}">{escape(title)}</a>' for to, title in found)
    after = [f"Calls {_named(part.uses, titles)}."] if part.uses else []
    after += [f"Becomes {_named(part.makes, titles)}."] if part.makes else []
    after.append(f"Look into {', '.join(f'<code>{escape(file)}</code>' for file in part.files)}.")
    after.append(f"Shown in {shown}." if shown else f"There is {NONE_YET}.")
    return (
        f'<dt id="part-{escape(part.id)}">{escape(part.title)}</dt><dd><p>{marked(part.says)}</p>'
        f'<p class="it-seen">{" ".join(after)}</p></dd>'
    )


def _named(ids: Sequence[str], titles: Mapping[str, str]) -> str:
    return ", ".join(f'<a href="#part-{escape(id)}">{escape(titles[id])}</a>' for id in ids)


class architecture(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils is untyped
    """Stands for the map until the page is written."""


class _Architecture(SphinxDirective):
    """Place the map, and the same in words."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(SOURCE)
        self.env.metadata[self.env.docname][GENERATED] = True
        return [architecture()]


def register(app: Sphinx) -> None:
    """Add the map to the book's extension."""
    app.add_node(architecture)
    app.add_directive("architecture", _Architecture)
    app.connect("doctree-resolved", _fill)


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for node in list(doctree.findall(architecture)):

        def chapter(name: str) -> tuple[str, str] | None:
            doc = f"notebooks/{name}"
            if doc not in app.env.found_docs:
                return None
            return app.builder.get_relative_uri(docname, doc), app.env.titles[doc].astext()

        try:
            layers = read_map(Path(app.srcdir) / SOURCE)
            html = picture(layers, chapter) + _built_with(layers) + in_words(layers, chapter)
            docs = sorted(doc for doc in app.env.found_docs if doc.startswith("notebooks/"))
            html += beside(layers, [doc.removeprefix("notebooks/") for doc in docs], chapter)
        except BookError as error:
            logger.warning("%s", error, location=node)
            html = ""
        node.replace_self(nodes.raw("", html, format="html"))


def _built_with(layers: Sequence[Layer]) -> str:
    """Look for what the map names in the installed torch, and say that it was done."""
    torch = facts.torch_facts()
    if torch is None:
        return "<p>PyTorch is not installed where this site was built: no file was looked for.</p>"
    lacking = missing(layers, torch.root.parent)
    for sentence in lacking:
        logger.warning("%s", sentence)
    count = sum(len(part.files) for layer in layers for part in layer.parts)
    return (
        f'<p class="it-soft">Of the {count} files and folders named below, {count - len(lacking)} '
        f"were found in torch {escape(torch.release)} when this page was built.</p>"
    )
