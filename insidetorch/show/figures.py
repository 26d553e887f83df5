"""Pictures for the book: matplotlib and Graphviz drawings as SVG that reads in light and dark."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from insidetorch.display import Display, escape, marked
from insidetorch.errors import BookError
from insidetorch.processes import run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "ink": "#7a7a7b",
    "soft": "#7e8287",
    "line": "#8b8f96",
    "pane": "#828486",
    "a": "#3d85c6",
    "b": "#c9682b",
    "c": "#2e9467",
    "d": "#a06cc4",
    "e": "#a68317",
    "f": "#d0527f",
}
"""The book's colours by role: text, secondary text, rules, panels, then six that are told apart
under colour blindness. Each is a middle tone with a contrast of 3:1 or more on white and on
#121212; `figure` and `graph` replace it by the page's own colour for that role."""

PALETTE = tuple(COLOURS[role] for role in "abcdef")
"""The six colours for data, in the order a plot takes them."""

MIN_TEXT = 10.0
"""A drawing is never shown so small that its text is below this many CSS pixels; it scrolls."""

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_FONT = "DejaVu Sans"
_FONTS = f"'{_FONT}', Verdana, Arial, sans-serif"
_BLACK = ("black", "#000000", "#000")
_WHITE = ("white", "#ffffff", "#fff")
_VARIABLES = {colour: f"var(--it-{role}, {colour})" for role, colour in COLOURS.items()}
_VARIABLES |= dict.fromkeys((COLOURS["ink"], *_BLACK), "var(--it-ink, currentColor)")
_VARIABLES |= dict.fromkeys((COLOURS["pane"], *_WHITE), "var(--it-pane, transparent)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_PLACES = {"d", "points", "x", "y", "width", "height", "x1", "y1", "x2", "y2", "cx", "cy"}
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?![\de])")
_shown: Counter[str] = Counter()


@contextmanager
def style() -> Iterator[None]:
    """Give the plots made inside the ``with`` block the book's look.

    The size fits a phone without scrolling (5.2 by 3.2 inches); ``C0`` to ``C5`` are the palette.
    """
    import matplotlib as mpl
    from cycler import cycler

    ink, soft, line = COLOURS["ink"], COLOURS["soft"], COLOURS["line"]
    with mpl.rc_context(
        {
            "axes.axisbelow": True,
            "axes.edgecolor": line,
            "axes.grid": True,
            "axes.labelcolor": ink,
            "axes.prop_cycle": cycler(color=PALETTE),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "figure.constrained_layout.use": True,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "figure.figsize": (5.2, 3.2),
            "font.size": 11,
            "grid.alpha": 0.35,
            "grid.color": line,
            "legend.edgecolor": line,
            "legend.facecolor": COLOURS["pane"],
            "legend.fontsize": 11,
            "lines.linewidth": 1.8,
            "patch.edgecolor": "none",
            "text.color": ink,
            "xtick.color": soft,
            "xtick.labelsize": 11,
            "ytick.color": soft,
            "ytick.labelsize": 11,
        }
    ):
        yield


def figure(fig: Figure, *, alt: str, caption: str = "", name: str = "") -> Display:
    """Return a matplotlib figure as inline SVG, and close it so that it is not shown twice.

    :param alt: what the picture says, for those who do not see it; it is also the text form.
    :param caption: what to look at; with it, the picture has a number on its page.
    :param name: by which the text refers to the number, as in ``[](#fig-name)``.
    :raises BookError: without alternative text.
    """
    _require_alt(alt, "figure")
    import matplotlib as mpl

    out = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "insidetorch"}):
        fig.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(fig)
    return captioned(_display(out.getvalue(), alt), caption, name)


def graph(dot_source: str, *, alt: str, caption: str = "", name: str = "") -> Display:
    """Return a drawing in Graphviz's language as inline SVG.

    :param dot_source: a graph or digraph; colours out of `COLOURS` follow the page's theme, and
        so do black and white.
    :param alt: what the picture says, for those who do not see it; it is also the text form.
    :param caption: what to look at; with it, the picture has a number on its page.
    :param name: by which the text refers to the number, as in ``[](#fig-name)``.
    :raises BookError: without alternative text, if `dot` refuses the source, and, while the book
        is built, if Graphviz is not installed. Elsewhere a sentence stands for the picture.
    """
    _require_alt(alt, "graph")
    if shutil.which("dot") is None:
        problem = (
            "Graphviz is not installed, so the graph cannot be drawn: "
            "install the system package graphviz, which brings the command dot."
        )
        if os.environ.get("INSIDETORCH_BUILD"):
            raise BookError(problem)
        text = f"{_text(alt)}\n{problem}"
        return Display(f'<p class="it it-absent">{escape(text)}</p>', text)
    return captioned(_display(_dot(dot_source), alt), caption, name)


def captioned(shown: Display, caption: str, name: str = "") -> Display:
    """Return anything shown, a table or a timeline too, as a picture with a caption and a number.

    :param caption: what to look at; without one, `shown` is returned as it is.
    :param name: by which the text refers to the number, as in ``[](#fig-name)``.
    :raises BookError: the name is no word of small letters, digits and hyphens.
    """
    if name and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise BookError(f"the picture's name {name!r} must be small letters, digits and hyphens.")
    if not caption:
        return shown
    id = f' id="fig-{name}"' if name else ""
    html = (
        f'<figure class="it it-picture"{id}>{shown.html}'
        f'<figcaption class="it-caption">{marked(caption)}</figcaption></figure>'
    )
    # What a timeline or a stack carries besides stays with it.
    return replace(shown, html=html, text=f"{shown.text}\n{' '.join(caption.split())}")


def _dot(source: str) -> str:
    ink, soft = COLOURS["ink"], COLOURS["soft"]
    defaults = {
        "G": {"bgcolor": "transparent", "fontname": _FONT, "fontcolor": ink, "fontsize": "12"},
        "N": {"fontname": _FONT, "fontcolor": ink, "fontsize": "12", "color": ink},
        "E": {"fontname": _FONT, "fontcolor": soft, "fontsize": "11", "color": soft},
    }
    options = [f"-{kind}{k}={v}" for kind, pairs in defaults.items() for k, v in pairs.items()]
    done = run(["dot", "-Tsvg", *options], input=source)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise BookError(
            f"Graphviz refuses the graph ({said[0] if said else 'no reason given'}): "
            "correct the source given to graph()."
        )
    return done.stdout


def _require_alt(alt: str, function: str) -> None:
    if not isinstance(alt, str) or not alt.strip():
        raise BookError(
            f"{function}(…) has no alternative text: say in alt= what the picture shows, "
            "for readers who do not see it."
        )


def _text(alt: str) -> str:
    return f"[figure: {' '.join(alt.split())}]"


def _display(svg: str, alt: str) -> Display:
    text = _text(alt)
    digest = hashlib.sha256((svg + text).encode()).hexdigest()[:8]
    _shown[digest] += 1
    copy = _shown[digest]
    prefix = f"it-{digest}-" if copy == 1 else f"it-{digest}-{copy}-"
    html = (
        '<figure class="it it-figure it-scroll" tabindex="0" style="margin: 0.6em 0">'
        f"{adapt(svg, alt=' '.join(alt.split()), prefix=prefix)}</figure>"
    )
    return Display(html, text)


def adapt(svg: str, *, alt: str, prefix: str) -> str:
    """Return an SVG document as a fragment for a page of any theme and width.

    Known colours become the page's custom properties, the size follows the page down to legible
    text, style sheets and titles that would leak into the page go, and so do all ids except those
    referred to, which get a prefix. Places are given to a hundredth of a point.

    :param svg: what matplotlib or Graphviz wrote.
    :param alt: the alternative text of the picture.
    :param prefix: put before each id; unique on the page.
    """
    root = ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", svg))
    _drop(root, {_SVG + tag for tag in ("metadata", "style", "title")})
    used = _references(root)
    sizes: list[float] = []
    for element in root.iter():
        _recolour(element)
        _prefix_ids(element, used, prefix)
        _round(element)
        sizes += _text_size(element)
    width = float(root.attrib["viewBox"].split()[2])
    smallest = min(sizes, default=MIN_TEXT)
    for name in ("height", "version"):
        root.attrib.pop(name, None)
    root.attrib["width"] = f"{width * 4 / 3:.0f}"
    root.attrib["style"] = (
        f"max-width: 100%; min-width: {width * MIN_TEXT / smallest:.0f}px; height: auto; "
        "fill: var(--it-ink, currentColor); stroke-linejoin: round; background: none"
    )
    links = any(str(element.tag).endswith("}a") for element in root.iter())
    # What is in an image is not reached by keyboard; links are.
    root.attrib |= {"role": "group" if links else "img", "aria-label": alt}
    ElementTree.register_namespace("", _SVG[1:-1])
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r">\s*\n\s*<", ">\n<", text).strip()


def _drop(root: ElementTree.Element, tags: set[str]) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _references(root: ElementTree.Element) -> set[str]:
    used: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            used.update(_REFERENCE.findall(value))
            if name in (_XLINK, "href") and value.startswith("#"):
                used.add(value[1:])
    return used


def _prefix_ids(element: ElementTree.Element, used: set[str], prefix: str) -> None:
    name = element.attrib.pop("id", None)
    if name in used:
        element.attrib["id"] = prefix + name
    element.attrib.pop("class", None)
    link = element.attrib.pop(_XLINK, None)
    if link is not None:
        element.attrib["href"] = f"#{prefix}{link[1:]}" if link.startswith("#") else link
    for key, value in element.attrib.items():
        element.attrib[key] = _REFERENCE.sub(lambda m: f"url(#{prefix}{m[1]})", value)


def _recolour(element: ElementTree.Element) -> None:
    declared = _declarations(element.attrib.get("style", ""))
    for name in ("fill", "stroke", "font-family"):
        if name in element.attrib:
            declared.setdefault(name, element.attrib.pop(name))
    for name in ("fill", "stroke"):
        if name in declared:
            declared[name] = _VARIABLES.get(declared[name].lower(), declared[name])
    if "font-family" in declared:
        declared["font-family"] = _FONTS
    if declared:
        element.attrib["style"] = "; ".join(f"{k}: {v}" for k, v in declared.items())


def _round(element: ElementTree.Element) -> None:
    for name in _PLACES & element.attrib.keys():
        short = _LONG_NUMBER.sub(lambda m: f"{round(float(m[0]), 2):g}", element.attrib[name])
        element.attrib[name] = " ".join(short.split())


def _declarations(style: str) -> dict[str, str]:
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    return {name.strip(): value.strip() for name, value in pairs}


def _text_size(element: ElementTree.Element) -> list[float]:
    if element.tag != _SVG + "text":
        return []
    declared = _declarations(element.attrib.get("style", ""))
    size = element.attrib.get("font-size", declared.get("font-size"))
    return [float(size.removesuffix("px"))] if size else []


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours ``#rrggbb``, 1 to 21, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)
