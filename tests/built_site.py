"""Where the built site and the book's documents are; `conftest.py` has its fixtures."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
SITE = ROOT / "_build" / "html"
LEDGER = ROOT / "_build" / "ledger.json"


def _documents() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *listed]


DOCUMENTS = _documents()
"""The documents of ``_toc.yml`` in reading order."""
CHAPTERS = [doc for doc in DOCUMENTS if doc.startswith("notebooks/")]
