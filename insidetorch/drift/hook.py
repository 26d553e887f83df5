"""What a build says of anchors that are not as `anchors.lock` has them; it fails no build."""

from __future__ import annotations

import gc
import hashlib
import json
from pathlib import Path

from rich.console import Console

from insidetorch.book.project import Project
from insidetorch.drift.book import Book, failed_in, installed, unlocked
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.files import write

_MOST = 12


def say_unlocked(project: Project, console: Console) -> None:
    """Write which anchors are new, stale or unused; nothing for a book without a lock.

    Nothing is written while a chapter has failed either: its anchors are not known.

    What was found is kept, and looked for again only when the lock, a chapter's code, what its
    cells recorded, or torch has changed.
    """
    book = Book(project)
    if not book.lock.is_file():
        return
    kept = project.cache / "anchors.json"
    try:
        if failed_in(book.ledger()):
            return
        key = _key(book)
        sentences = _known(kept, key)
        if sentences is None:
            sentences = _find(book)
            write(kept, json.dumps({"key": key, "sentences": sentences}, ensure_ascii=False))
    except (BookError, OSError) as error:
        sentences = [str(error)]
    for sentence in sentences[:_MOST]:
        console.print(
            f"  {sentence}", style="yellow", markup=False, highlight=False, soft_wrap=True
        )
    if len(sentences) > _MOST:
        more = f"  … and {len(sentences) - _MOST} more anchors; see `make lock`."
        console.print(more, style="yellow", markup=False, highlight=False)


def _find(book: Book) -> list[str]:
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are many objects without cycles; looking for those costs as much
    try:
        return unlocked(book, book.ledger(), installed())
    finally:
        if collecting:
            gc.enable()


def _key(book: Book) -> str:
    torch = torch_facts()
    entries = [[entry["doc"], entry["key"], entry["status"]] for entry in book.ledger()["chapters"]]
    root = book.project.root
    modules = (path for top in ("insidetorch", "miniatures") for path in (root / top).rglob("*.py"))
    files = [book.lock.read_bytes(), *(path.read_bytes() for path in sorted(modules))]
    text = json.dumps([entries, torch.release if torch else ""])
    return hashlib.sha256(b"\0".join([text.encode(), *files])).hexdigest()


def _known(kept: Path, key: str) -> list[str] | None:
    try:
        data = json.loads(kept.read_text(encoding="utf-8"))
        return [str(one) for one in data["sentences"]] if data["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
