"""What drift reads of the book: its chapters, their last run, its lock, its folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insidetorch.book.project import Chapter, Project
from insidetorch.drift import lockfile
from insidetorch.drift.anchors import Anchor, Source, against_run, api, gather
from insidetorch.drift.apis import named_apis, private_names
from insidetorch.drift.lockfile import Lock
from insidetorch.drift.names import longest
from insidetorch.drift.releases import is_release
from insidetorch.drift.trees import Tree, open_folder
from insidetorch.drift.used_by_modules import options, reached
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
        """Return the folder of what is built for one release.

        :raises BookError: it is called what no release is, so that it may lie anywhere.
        """
        if not is_release(release):
            raise BookError(f"{release!r} is no release of torch; name another wheel or folder.")
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

    :raises BookError: the last run was on another release than `tree`, or a chapter failed in it.
    """
    failed = failed_in(ledger)
    if failed:
        raise BookError(
            f"{failed[0]} failed in the last build, so its anchors are not known; "
            "mend it and run `make book` first."
        )
    if ledger["torch"] != tree.release:
        raise BookError(
            f"the book last ran on torch {ledger['torch']} and {tree.release} is installed; "
            "run `make book` first."
        )
    read = sources(book.chapters(), ledger)
    anchors = {anchor.id: anchor for anchor in gather(read, tree)}
    named = {anchor.target for anchor in anchors.values()}
    for doc, name, cells in _named_by_modules(read, book.project.root, tree):
        if (doc == TOOLKIT or name not in named) and (found := api(doc, name, cells, tree)):
            anchors[found.id] = found
    return [anchors[id] for id in sorted(anchors)]


def _named_by_modules(
    read: Iterable[Source], root: Path, tree: Tree
) -> Iterator[tuple[str, str, Sequence[int]]]:
    """Yield the names that chapters rest on through the book's own modules.

    Those of a miniature, and the options set through it, belong to each chapter that reaches it;
    those of the toolkit, which every chapter rests on, to `TOOLKIT`. What cells of some chapter
    name has its anchor there.

    :return: chapter, name, and code cells, as far as cells set it.
    """
    ours = root / TOOLKIT.partition("/")[0]
    toolkit: set[str] = set()
    for path in ours.rglob("*.py"):
        named = (longest(tree, name) for name in private_names(path.read_text(encoding="utf-8")))
        toolkit |= {found[0] for found in named if found and found[1].kind != "module"}
    known: dict[Path, list[str]] = {}
    for source in read:
        for name, cells in options(source.cells, root, tree).items():
            yield source.doc, name, cells
        for path, text in reached(source.cells, root).items():
            if path not in known:
                known[path] = list(named_apis([text], tree))
            if path.is_relative_to(ours):
                toolkit.update(known[path])
            else:
                yield from ((source.doc, name, ()) for name in known[path])
    yield from ((TOOLKIT, name, ()) for name in sorted(toolkit))


def failed_in(ledger: Mapping[str, Any]) -> list[str]:
    """Return the chapters that failed in the last build."""
    return [entry["doc"] for entry in ledger["chapters"] if entry["status"] != "ok"]


def sources(chapters: Iterable[Chapter], ledger: Mapping[str, Any]) -> list[Source]:
    """Return what the anchors of each chapter are gathered from."""
    entries = {entry["doc"]: entry for entry in ledger["chapters"]}
    found = []
    for chapter in chapters:
        entry = entries.get(chapter.doc)
        if entry is None:
            continue
        cells = [cell["source"] for cell in chapter.code_cells]
        found.append(Source(chapter.doc, cells, entry["records"]))
    return found


def unlocked(book: Book, ledger: Mapping[str, Any], tree: Tree) -> list[str]:
    """Return a sentence for each anchor of the book that is not as `anchors.lock` has it.

    :raises BookError: the lock cannot be read.
    """
    lock = lockfile.read(book.lock)
    now = anchors_now(book, ledger, tree)
    named = {change for change in lockfile.changes(lock, now) if change.kind != "placed"}
    # The running torch has the last word, as when the lock was written: a name may lead elsewhere
    # there, as `__call__` does where a class sets it to another of its methods.
    asked = [change.anchor for change in named if change.kind != "unused"]
    runs = {anchor.id: anchor for anchor in against_run(asked, tree)[0]} if asked else {}
    locked = {anchor.id: anchor for anchor in lock.anchors}

    def differs(change: lockfile.Change) -> bool:
        found = runs.get(change.anchor.id)
        if change.kind == "new":
            return found is not None
        return found is None or found.sha256 != locked[change.anchor.id].sha256

    named = {change for change in named if differs(change)}
    ordered = sorted(named, key=lambda change: change.anchor.id)
    docs = [*(chapter.doc for chapter in book.chapters()), TOOLKIT]
    return lockfile.sentences(ordered, docs)


def current(lock: Lock, book: Book) -> tuple[list[Anchor], list[str]]:
    """Return the locked anchors of chapters that the book still has, and a sentence for others."""
    docs = {*book.project.docs, TOOLKIT}
    gone = sorted({anchor.chapter for anchor in lock.anchors} - docs)
    said = [
        f"{lockfile.NAME} holds anchors of {doc}, which the book no longer has; run `make lock`."
        for doc in gone
    ]
    return [anchor for anchor in lock.anchors if anchor.chapter in docs], said
