"""The pages as an earlier build found them, so that only a text that changed is parsed."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError
from insidetorch.files import write


def parse(doc: str, text: str) -> dict[str, Any]:
    """Return a chapter's text as notebook JSON, with the line of each cell, from 0.

    :raises BookError: the options of a cell are malformed.
    """
    from jupytext.myst import MystMetadataParsingError, myst_to_notebook

    try:
        notebook = myst_to_notebook(text, add_source_map=True)
    except MystMetadataParsingError as error:
        said = " ".join(str(error).split())
        raise BookError(f"{doc}.md: {said}; mend the options of that cell.") from None
    return dict(json.loads(json.dumps(notebook)))


class Parsed:
    """Parses chapters, and remembers every page.

    :param path: the file that is kept between builds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tool = metadata.version("jupytext")
        self._now: dict[str, list[Any]] = {}
        try:
            self._before = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            self._before = {}

    def parse(self, doc: str, text: str) -> dict[str, Any]:
        """Return what `parse` does."""
        known = self._seen(doc, text)
        if known[1] is None:
            self._now[doc] = known = [known[0], json.dumps(parse(doc, text))]
        return dict(json.loads(known[1]))

    def changed(self, pages: dict[str, str]) -> bool:
        """Tell whether a page is not as the last build found it.

        :param pages: document → text, of all pages.
        """
        for doc, text in pages.items():
            self._seen(doc, text)
        return any(known != self._before.get(doc) for doc, known in self._now.items())

    def keep(self) -> None:
        """Remember the pages seen, and forget all others."""
        if self._now != self._before:
            write(self._path, json.dumps(self._now))

    def _seen(self, doc: str, text: str) -> list[Any]:
        if doc not in self._now:
            mark = hashlib.sha256(f"{self._tool}\0{text}".encode()).hexdigest()
            before = self._before.get(doc)
            self._now[doc] = before if before and before[0] == mark else [mark, None]
        return self._now[doc]
