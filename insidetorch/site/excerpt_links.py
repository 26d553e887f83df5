"""Excerpts on a page: an address for each, and links from the names in the text to their code."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx

from insidetorch.display import escape
from insidetorch.site.own_host import raw_html, rewrite

_CAPTION = re.compile(
    r'<figure class="it it-excerpt(?P<kind>[^"]*)">(?P<head><figcaption>'
    r'<span class="it-symbol">(?P<symbol>.*?)</span>(?P<rest>.*?))</figcaption>',
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Excerpt:
    """An excerpt on a page.

    :param symbol: the name in its caption.
    :param id: the fragment of its address.
    :param place: what its caption says of where the code is.
    """

    symbol: str
    id: str
    place: str


def register(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("doctree-resolved", _link)


def anchored(text: str, taken: set[str]) -> tuple[str, list[Excerpt]]:
    """Return HTML whose excerpts have ids and links to themselves, and these excerpts.

    :param taken: the page's ids of excerpts so far; the new ones are added.
    """
    found: list[Excerpt] = []

    def with_id(caption: re.Match[str]) -> str:
        symbol = html.unescape(_TAG.sub("", caption["symbol"]))
        stem = "excerpt-" + (re.sub(r"\W+", "-", symbol).strip("-") or "code")
        ids = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
        id = next(one for one in ids if one not in taken)
        taken.add(id)
        said = re.findall(r"<span[^>]*>(.*?)</span>", caption["rest"], re.DOTALL)
        place = ", ".join(html.unescape(_TAG.sub("", part)) for part in said)
        found.append(Excerpt(symbol, id, place))
        link = f'<a class="it-here" href="#{id}" aria-label="Link to {escape(symbol)}">#</a>'
        kind = caption["kind"]
        return f'<figure id="{id}" class="it it-excerpt{kind}">{caption["head"]}{link}</figcaption>'

    return _CAPTION.sub(with_id, text), found


def names(excerpts: list[Excerpt]) -> dict[str, Excerpt]:
    """Return the excerpts by the names that stand for one of them in a text.

    A name is the whole symbol, or its end from a dot or a colon on, if no other symbol ends so.
    """
    ends: dict[str, dict[str, Excerpt]] = {}
    for excerpt in excerpts:
        parts = re.split(r"(::|\.)", excerpt.symbol)
        for start in range(0, len(parts), 2):
            end = "".join(parts[start:])
            ends.setdefault(end, {}).setdefault(excerpt.symbol, excerpt)
    return {end: next(iter(found.values())) for end, found in ends.items() if len(found) == 1}


def _link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the excerpts of a page their ids, and link the names in its text to them."""
    if app.builder.format != "html":
        return
    taken: set[str] = set()
    excerpts: list[Excerpt] = []
    for raw in raw_html(doctree, "it-excerpt"):
        text, found = anchored(raw.astext(), taken)
        excerpts += found
        rewrite(raw, text)
    known = names(excerpts)
    for literal in list(doctree.findall(nodes.literal)):
        excerpt = known.get(literal.astext().removesuffix("()"))
        around = literal.parent
        while around is not None and not isinstance(around, (nodes.reference, nodes.title)):
            around = around.parent
        if excerpt is not None and around is None and literal.parent is not None:
            link = nodes.reference(
                "", "", internal=True, refuri=f"#{excerpt.id}", reftitle=excerpt.place
            )
            link["classes"].append("it-to-code")
            literal.replace_self(link)
            link += literal
