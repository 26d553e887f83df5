"""What drift reads of the book: its chapters, their last run, its lock, its folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insidetorch.book.project import Chapter, Project
from insidetorch.drift import lockfile
from insidetorch.drift.anchors import Anchor, Source, api, gather
from insidetorch.drift.apis import private_names
from insidetorch.drift.lockfile import Lock
from insidetorch.drift.names import longest
from insidetorch.drift.trees import Tree, open_folder
from insidetorch.errors import BookError
from insidetorch.facts import torch_facts

TOOLKIT = "insidetorch/private"


@dataclass(frozen=True)
class Book:
    """A book and where drift keeps things."""

    project: Project

    @property
    def lock(self) -> Path:
        """The accepted anchors."""
        return self.project.root / lockfile.PLACE

    @property
    def data(self) -> Path:
        """What drift commits: history, results of executed releases, reasons."""
        return self.project.root / "data" / "drift"

    @property
    def cache(self) -> Path:
        """The sources of downloaded releases."""
        return self.project.cache / "torch"

    def work(self, release: str) -> Path:
        """Return the folder of what is built for one release."""
        return self.project.build / "drift" / release

    def chapters(self) -> list[Chapter]:
        """Return the chapters in reading order."""
        pages = self.project.pages(self.project.limits())
        return [page for page in pages if isinstance(page, Chapter)]

    def ledger(self) -> dict[str, Any]:
        """Return the ledger of the last build.

        :raises BookError: there is none.
        """
        path = self.project.build / "ledger.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise BookError(f"{path} is missing; run `make book` first.") from None
        except ValueError:
            raise BookError(f"{path} is damaged; remove it and run `make book`.") from None


def installed() -> Tree:
    """Return the sources of the torch that is installed here.

    :raises BookError: there is none.
    """
    facts = torch_facts()
    if facts is None:
        raise BookError("torch is not installed in this Python; run `make book`, which does it.")
    return open_folder(facts.root.parent)


def anchors_now(book: Book, ledger: Mapping[str, Any], tree: Tree) -> list[Anchor]:
    """Return the anchors of the book as it last ran.

    :raises BookError: the last run was on another release than `tree`.
    """
    if ledger["torch"] != tree.release:
        raise BookError(
            f"the book last ran on torch {ledger['torch']} and {tree.release} is installed; "
            "run `make book` first."
        )
    anchors = gather(sources(book.chapters(), ledger), tree)
    folder = book.project.root / TOOLKIT
    if folder.is_dir():
        texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
        named = (longest(tree, name) for text in texts for name in private_names(text))
        names = sorted({found[0] for found in named if found and found[1].kind != "module"})
        anchors += [found for name in names if (found := api(TOOLKIT, name, (), tree))]
    return sorted(anchors, key=lambda anchor: anchor.id)


def sources(chapters: Iterable[Chapter], ledger: Mapping[str, Any]) -> list[Source]:
    """Return what the anchors of each chapter are gathered from; cells that never ran are not."""
    entries = {entry["doc"]: entry for entry in ledger["chapters"]}
    found = []
    for chapter in chapters:
        entry = entries.get(chapter.doc)
        if entry is None:
            continue
        cells = [cell["source"] for cell in chapter.code_cells]
        if entry["error"] is not None:
            cells = cells[: (entry["error"]["cell"] or 1) - 1]
        found.append(Source(chapter.doc, cells, entry["records"]))
    return found


def unlocked(book: Book, ledger: Mapping[str, Any], tree: Tree) -> list[str]:
    """Return a sentence for each anchor of the book that is not as `anchors.lock` has it.

    :raises BookError: the lock cannot be read.
    """
    lock = lockfile.read(book.lock)
    now = anchors_now(book, ledger, tree)
    named = {change for change in lockfile.changes(lock, now) if change.kind != "placed"}
    ordered = sorted(named, key=lambda change: change.anchor.id)
    docs = [*(chapter.doc for chapter in book.chapters()), TOOLKIT]
    return lockfile.sentences(ordered, docs)


def current(lock: Lock, book: Book) -> tuple[list[Anchor], list[str]]:
    """Return the locked anchors of chapters that the book still has, and a sentence for others."""
    docs = {chapter.doc for chapter in book.chapters()} | {TOOLKIT}
    gone = sorted({anchor.chapter for anchor in lock.anchors} - docs)
    said = [
        f"{lockfile.NAME} holds anchors of {doc}, which the book no longer has; run `make lock`."
        for doc in gone
    ]
    return [anchor for anchor in lock.anchors if anchor.chapter in docs], said
