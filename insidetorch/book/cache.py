"""Executed notebooks kept between builds, one file for each chapter and key.

A file is the notebook's JSON, with the hash of the rest of the text as its first entry.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insidetorch.files import write

KEEP = 4
_HEAD = '{"sha256": "%s",'


class CorruptEntry(Exception):
    """A cache file that is not what was stored."""


@dataclass(frozen=True)
class Cache:
    """Executed notebooks below one folder."""

    folder: Path

    def path(self, doc: str, key: str) -> Path:
        """Return where the executed notebook of `doc` with this key is kept."""
        return self.folder / doc.replace("/", "__") / f"{key}.ipynb"

    def load(self, doc: str, key: str) -> dict[str, Any] | None:
        """Return the executed notebook, or None if there is none.

        :raises CorruptEntry: the file is there and is not the notebook that was stored.
        """
        path = self.path(doc, key)
        try:
            text = path.read_text(encoding="utf-8")
            notebook = json.loads(text)
            rest = text[len(_HEAD % notebook.pop("sha256")) :]
            known = notebook["metadata"]["insidetorch"]["key"] == key and text == _signed(rest)
            cells = notebook["cells"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptEntry(str(path)) from error
        if not known or not isinstance(cells, list):
            raise CorruptEntry(str(path))
        os.utime(path)
        return dict(notebook)

    def store(self, doc: str, key: str, notebook: Mapping[str, Any]) -> None:
        """Keep an executed notebook, and forget the oldest of its chapter beyond `KEEP`."""
        path = self.path(doc, key)
        write(path, _signed(json.dumps(notebook, indent=1, ensure_ascii=False).removeprefix("{")))
        entries = sorted(path.parent.glob("*.ipynb"), key=lambda entry: entry.stat().st_mtime_ns)
        for old in entries[:-KEEP]:
            old.unlink(missing_ok=True)

    def seconds(self, doc: str) -> float | None:
        """Return how long the chapter took when it was last executed, or None if never."""
        try:
            return float(json.loads(self._durations().read_text(encoding="utf-8"))[doc])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remember(self, doc: str, seconds: float) -> None:
        """Keep how long a chapter took, for the order of the next build."""
        try:
            known = dict(json.loads(self._durations().read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            known = {}
        write(self._durations(), json.dumps({**known, doc: round(seconds, 3)}, indent=1))

    def _durations(self) -> Path:
        return self.folder / "durations.json"


def _signed(rest: str) -> str:
    """Return an entry's text: `rest` with its hash before it."""
    return _HEAD % hashlib.sha256(rest.encode()).hexdigest() + rest
