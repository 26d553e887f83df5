"""What another machine recorded, made safe to show: an allow-list for HTML, SVG and images.

What is shown is always what the sanitiser wrote, never the text that it was given: HTML as nh3
writes it, which parses as browsers do, and SVG as ElementTree does.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from insidetorch.display import strip_style, style_block
from insidetorch.records import KINDS, RECORD_MIME

EMPTY_STYLE = "<style data-insidetorch></style>"
"""Stands in a recording for the toolkit's style sheet, which is put back on replay."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HTML_TAGS = _words(
    "a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em "
    "figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li mark ol p pre q s samp "
    "section small span strong sub summary sup table tbody td tfoot th thead time tr u ul var wbr"
)
_SVG_TAGS = _words(
    "svg circle clipPath defs desc ellipse g image line linearGradient marker mask path pattern "
    "polygon polyline radialGradient rect stop symbol text textPath tspan use"
)
_HTML_ATTRIBUTES = _words(
    "class id title lang dir role tabindex style open colspan rowspan scope headers span datetime "
    "href src alt width height border start reversed data-n data-trace data-title "
    "download"
)
_SVG_ATTRIBUTES = _words(
    "xmlns xmlns:xlink xlink:href xml:space version viewBox preserveAspectRatio transform x y x1 "
    "y1 x2 y2 cx cy r rx ry fx fy dx dy d points pathLength fill fill-opacity fill-rule stroke "
    "stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray "
    "stroke-dashoffset stroke-miterlimit opacity color clip-path clip-rule clipPathUnits mask "
    "maskUnits maskContentUnits marker-start marker-mid marker-end markerWidth markerHeight "
    "markerUnits refX refY orient gradientUnits gradientTransform spreadMethod offset stop-color "
    "stop-opacity patternUnits patternContentUnits patternTransform font-family font-size "
    "font-style font-weight font-variant text-anchor dominant-baseline alignment-baseline "
    "baseline-shift letter-spacing word-spacing textLength lengthAdjust rotate startOffset "
    "text-decoration shape-rendering text-rendering image-rendering vector-effect visibility "
    "display overflow"
)
_ATTRIBUTES = _HTML_ATTRIBUTES | _SVG_ATTRIBUTES
_PROPERTIES = _words(
    "align-items align-self alignment-baseline background background-color baseline-shift border "
    "border-bottom border-collapse border-color border-left border-radius border-right "
    "border-spacing border-style border-top border-width box-sizing clip-rule color column-gap "
    "display dominant-baseline fill fill-opacity fill-rule flex flex-direction flex-wrap font "
    "font-family font-size font-style font-variant font-weight gap grid-template-columns height "
    "justify-content letter-spacing line-height list-style list-style-type margin margin-bottom "
    "margin-left margin-right margin-top max-height max-width min-height min-width mix-blend-mode "
    "opacity overflow overflow-wrap overflow-x overflow-y padding padding-bottom padding-left "
    "padding-right padding-top row-gap stop-color stop-opacity stroke stroke-dasharray "
    "stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity "
    "stroke-width text-align text-anchor text-decoration text-indent text-rendering "
    "text-transform transform transform-origin unicode-bidi vector-effect vertical-align "
    "visibility white-space white-space-collapse width word-break word-spacing"
)
_FUNCTIONS = _words(
    "rgb rgba hsl hsla oklch oklab lab lch var calc min max clamp color-mix rotate scale scaleX "
    "scaleY translate translateX translateY matrix skewX skewY repeat minmax fit-content"
)
# `it-…` is the toolkit's; short classes are Pygments'; the others are pandas' and Graphviz'.
_CLASS = re.compile(
    r"it|it-[a-z0-9-]+|[a-z][a-z0-9]{0,2}|highlight|dataframe|graph|node|edge|cluster"
)
_DECLARATION = re.compile(r"\s*(--it-[a-z0-9-]+|[a-z-]+)\s*:\s*([^;:{}<>@\\]+)\s*")
_CALL = re.compile(r"([\w-]*)\(")
_OWN_URL = re.compile(r"url\((['\"]?)#[\w.:-]+\1\)")
_FRAGMENT = re.compile(r"#[\w.:-]+")
_NAME = "[A-Za-z0-9][A-Za-z0-9_-]{0,60}"
_TRACE = rf"traces/{_NAME}-[0-9a-f]{{8}}\.json"
_LINK = re.compile(rf"https://[^\s\"'<>\\]+|#[\w.:-]+|\.\./{_TRACE}")
_OF_A_TRACE = {"data-trace": re.compile(_TRACE), "data-title": re.compile(_NAME)}
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_PREFORMATTED = re.compile(r"<pre\b[^>]*>(?=\n)")
_XLINK = "{http://www.w3.org/1999/xlink}"
_XML = "{http://www.w3.org/XML/1998/namespace}"
_SVG = "{http://www.w3.org/2000/svg}"


def bundle(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a mime bundle that may be shown, each made safe.

    Text is text and stays. What no list covers (scripts, Markdown, widgets) is left out.
    """
    safe: dict[str, Any] = {}
    for mime, value in data.items():
        if mime == RECORD_MIME:
            if isinstance(value, Mapping) and value.get("kind") in KINDS:
                safe[mime] = dict(value)
        elif not isinstance(value, str):
            if mime == "application/json":
                safe[mime] = value
        elif mime == "text/plain":
            safe[mime] = value
        elif mime == "text/html":
            safe[mime] = html(value)
        elif mime == "image/svg+xml":
            picture = svg(value)
            if picture:
                safe[mime] = picture
        elif mime in _MAGIC and _is_image(mime, value):
            safe[mime] = value
    return safe


def html(fragment: str) -> str:
    """Return what of `fragment` is on the list."""
    for style in (style_block(), EMPTY_STYLE):
        if fragment.startswith(style):
            return style + _html(fragment.removeprefix(style))
    return _html(strip_style(fragment))


def _html(fragment: str) -> str:
    import nh3

    clean = nh3.clean(
        fragment,
        tags=set(_HTML_TAGS | _SVG_TAGS),
        clean_content_tags={"script", "style"},
        attributes={"*": set(_ATTRIBUTES)},
        generic_attribute_prefixes={"aria-"},
        attribute_filter=_attribute,
        url_schemes={"https", "data"},
        link_rel=None,
    )
    # A browser skips one line's end after the tag; nh3 does not write it again.
    return _PREFORMATTED.sub(r"\g<0>\n", clean)


def svg(document: str) -> str:
    """Return what of an SVG document is on the list, without comments.

    :return: the document; empty if it is not well-formed or declares entities.
    """
    if not _is_plain_xml(document):
        return ""
    root = ElementTree.fromstring(document)
    if root.tag != f"{_SVG}svg":
        return ""
    _prune(root)
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _XLINK[1:-1])
    return ElementTree.tostring(root, encoding="unicode")


def _is_plain_xml(document: str) -> bool:
    """Tell whether `document` is well-formed and has no entities and no instructions of its own."""
    odd = False

    def found(*_: object) -> None:
        nonlocal odd
        odd = True

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = found
    parser.AttlistDeclHandler = found
    parser.ProcessingInstructionHandler = found
    try:
        parser.Parse(document.encode(), True)
    except (expat.ExpatError, ValueError):
        return False
    return not odd


def _prune(root: ElementTree.Element) -> None:
    """Remove what is not on the list; a title stays, a description in other namespaces does not."""
    for element in list(root.iter()):
        name = element.tag.removeprefix(_SVG)
        for key, value in list(element.attrib.items()):
            plain = key.replace(_XLINK, "xlink:").replace(_XML, "xml:")
            allowed = plain in _ATTRIBUTES or plain.startswith("aria-")
            kept = _attribute(name, plain, value) if allowed else None
            if kept is None:
                del element.attrib[key]
            else:
                element.attrib[key] = kept
        for child in list(element):
            if child.tag.removeprefix(_SVG) not in _SVG_TAGS | {"title"}:
                element.remove(child)


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Return what may stay of an attribute that is on the list."""
    if name == "class":
        kept = [word for word in value.split() if _CLASS.fullmatch(word)]
        return value if kept == value.split() else " ".join(kept) or None
    if name == "style":
        return _style(value)
    if name in ("href", "xlink:href", "src"):
        allowed = {"a": _LINK, "img": _PICTURE, "image": _PICTURE}.get(tag, _FRAGMENT)
        return value if allowed.fullmatch(value) else None
    if name in _OF_A_TRACE:
        return value if _OF_A_TRACE[name].fullmatch(value) else None
    if name.startswith("aria-") or name in ("alt", "title"):
        return value
    if "url" in value.lower():
        return value if _OWN_URL.fullmatch(value) else None
    return value


def _style(value: str) -> str | None:
    parts = [part for part in value.split(";") if part.strip()]
    kept = [part for part in parts if _is_allowed(part)]
    return value if kept == parts else ";".join(kept) or None


def _is_allowed(declaration: str) -> bool:
    found = _DECLARATION.fullmatch(_OWN_URL.sub("none", declaration))
    if found is None or not (found[1].startswith("--it-") or found[1] in _PROPERTIES):
        return False
    return all(name in _FUNCTIONS for name in _CALL.findall(found[2]))


def _is_image(mime: str, value: str) -> bool:
    try:
        return base64.b64decode("".join(value.split()), validate=True).startswith(_MAGIC[mime])
    except (binascii.Error, ValueError):
        return False
