"""The switch on a chapter's page that shows all of its code, or what it demonstrates."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from insidetorch.site import own_host

_SCRIPT = "code_switch.js"


def register(app: Sphinx) -> None:
    """Add the switch to the book's extension."""
    app.connect("builder-inited", _write)
    app.connect("html-page-context", _add)


def _write(app: Sphinx) -> None:
    own_host.add_file(app, "insidetorch.site", _SCRIPT)


def _add(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if "it-how" in str(context.get("body") or "") or "it-setup" in str(context.get("body") or ""):
        app.add_js_file(_SCRIPT, loading_method="defer")
