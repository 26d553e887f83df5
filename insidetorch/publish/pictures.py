"""The numbers of a page's pictures: counted in their captions, filled into links to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from insidetorch.errors import BookError

_PICTURE = re.compile(
    r'(?P<open><figure class="it it-picture"(?: id="(?P<id>fig-[a-z0-9-]+)")?>)'
    r'|(?P<caption><figcaption class="it-caption">)'
)
_REFERENCE = re.compile(r"\[\]\(#(fig-[^)\s]*)\)")


def numbered(notebook: Mapping[str, Any], doc: str) -> dict[str, Any]:
    """Return a staged notebook whose captions begin with their number, as links to them do.

    :param notebook: as staged; its cells are changed in place.
    :param doc: the document, for the message.
    :raises BookError: a link names no picture of the page, or two pictures have one name.
    """
    names: dict[str, int] = {}
    count = 0

    def caption(found: re.Match[str]) -> str:
        nonlocal count
        if found["caption"]:
            count += 1
            return f'{found["caption"]}<span class="it-number">Figure {count}.</span> '
        if found["id"] in names:
            raise BookError(f"{doc}: two pictures have the name {found['id']}; rename one.")
        if found["id"]:
            names[found["id"]] = count + 1
        return found[0]

    def link(found: re.Match[str]) -> str:
        if found[1] not in names:
            raise BookError(
                f"{doc}: [](#{found[1]}) names no picture of this page; its pictures are "
                f"{', '.join(names) or 'without names'}."
            )
        return f'<a class="reference internal" href="#{found[1]}">Figure {names[found[1]]}</a>'

    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if isinstance(data.get("text/html"), str):
                data["text/html"] = _PICTURE.sub(caption, data["text/html"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _REFERENCE.sub(link, cell["source"])
    return dict(notebook)
