"""What the book's lists share: contents, a text box and filters, which a script brings to life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sphinx.application import Sphinx

from insidetorch.display import escape
from insidetorch.site import own_host
from insidetorch.site.places import linked

AT_ONCE = 60  # entries: more than a window and the one below it show
_SCRIPT = "filter.js"


def register(app: Sphinx) -> None:
    """Bring the script of the filters to the pages that have one."""
    app.connect("builder-inited", _write_script)
    app.connect("html-page-context", _add_script)


def contents(links: Iterable[tuple[str, str]], of: str) -> str:
    """Return links, address and text each, as the contents of a list.

    :param of: what they are, such as ``Chapters``.
    """
    named = " ".join(linked(*link) for link in links)
    return f'<nav class="it-letters" aria-label="{escape(of)}">{named}</nav>'


def items(entries: Iterable[str], waiting: bool) -> str:
    """Return entries, each an ``<li>``, as a list of a group, which has the class ``it-group``.

    Those that wait stand in a ``<noscript>``, as text, which the filters' script parses when they
    come near: a thousand entries would make a page heavy. What a window shows at first does not
    wait (:data:`AT_ONCE`), so that nothing moves when it is parsed.
    """
    listed = f"<ul>{''.join(entries)}</ul>"
    return f"<noscript>{listed}</noscript>" if waiting else listed


def form(items: str, total: int, **selects: Mapping[str, str]) -> str:
    """Return the form that filters a list; its choices stand in the page's address.

    It has its place from the start, so that nothing moves when its script comes; the theme hides
    it where scripts are not run.

    :param items: the list's entries, as a selector of CSS.
    :param selects: what can be chosen: a name → value → text. Of an entry, or of what it stands
        in, ``data-`` and the name's first letter has its values, with blanks between them. What
        leaves no choice is left out.
    """
    choices = "".join(
        f'<label>{name.capitalize()} <select name="{name[0]}"><option value="">all</option>'
        + "".join(f'<option value="{escape(v)}">{escape(text)}</option>' for v, text in of.items())
        + "</select></label>"
        for name, of in selects.items()
        if len(of) > 1
    )
    return (
        f'<form class="it-filter pst-js-only" aria-label="Filter the list" '
        f'data-items="{escape(items)}">'
        f'<label>Text <input type="search" name="q"></label>{choices}<button type="reset">All'
        f'</button><output aria-live="polite">{total} of {total}</output></form>'
    )


def _write_script(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch.site", _SCRIPT)


def _add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if "it-filter" in str(context.get("body") or ""):
        app.add_js_file(_SCRIPT, loading_method="defer")
