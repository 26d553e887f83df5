"""Executed drift: the book under another release, beside the run that the last build kept."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from insidetorch.book.cache import Cache
from insidetorch.drift import stored as records
from insidetorch.drift.book import Book
from insidetorch.drift.environment import label, prepare
from insidetorch.drift.history import version
from insidetorch.drift.outcomes import (
    SCHEMA,
    ChapterRun,
    Outcome,
    chapter_run,
    differences,
    text_id,
)
from insidetorch.errors import BookError
from insidetorch.files import write


@dataclass(frozen=True)
class BookRun:
    """The book as it ran on one release, or some of its chapters.

    :param missing: the private names that the release lacks; None if that was not asked.
    :param triton: the Triton that it came with; "" if none.
    """

    torch: str
    commit: str
    python: str
    cpu: str
    ran: str
    chapters: tuple[ChapterRun, ...]
    missing: tuple[str, ...] | None = None
    triton: str = ""

    @property
    def public(self) -> str:
        """The release without its local part."""
        return self.torch.split("+")[0]


@dataclass(frozen=True)
class Result:
    """What is kept of a run: where it differs from the pinned one.

    :param held: chapter → the sentences that held, by `text_id`; every chapter that ran is there.
    :param outcomes: the differences, in the order of the chapters.
    :param missing: the private names that the release lacks; None if that was not asked.
    """

    torch: str
    commit: str
    pinned: str
    python: str
    cpu: str
    ran: str
    held: Mapping[str, tuple[str, ...]]
    outcomes: tuple[Outcome, ...]
    missing: tuple[str, ...] | None = None

    @property
    def public(self) -> str:
        """The release without its local part."""
        return self.torch.split("+")[0]


@dataclass(frozen=True)
class _Stored(Result):
    """A result as it lies in a file, the ids of a chapter in one line."""

    held: Mapping[str, str]  # type: ignore[assignment]


def execute_with(book: Book, named: str, part: str) -> BookRun:
    """Run the chapters under another release; nothing of the book's own environment is touched.

    :param named: a version, a channel or a wheel.
    :param part: the shard, ``i/n``; "" for all chapters.
    :raises BookError: the environment cannot be made, or the run ended without a result.
    """
    root = book.project.root
    folder = book.work(label(named))
    python = prepare(root, folder, named)
    out = folder / f"run{'-' + part.replace('/', '-of-') if part else ''}.json"
    out.unlink(missing_ok=True)
    done = subprocess.run(
        [str(python), "-m", "insidetorch.drift.collect", str(root), str(folder), str(out), part],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    if done.returncode or not out.is_file():
        raise BookError(
            f"the chapters could not be run on torch {named} (exit status {done.returncode}); "
            "what was said above tells why."
        )
    return read(out)


def read(path: Path) -> BookRun:
    """Read a run that was written.

    :raises BookError: there is none, or it cannot be read.
    """
    try:
        return parse(path.read_bytes(), path.name)
    except FileNotFoundError:
        raise BookError(f"{path} is missing; make it with `make drift-run`.") from None


def parse(data: object, name: str) -> BookRun:
    """Return the run in JSON data.

    :raises BookError: it is none, or one of a newer schema.
    """
    return records.read(data, BookRun, SCHEMA, name, "make drift-run")


def pinned_run(book: Book) -> BookRun:
    """Return the book's last build as a run.

    :raises BookError: a chapter's executed notebook is no longer kept.
    """
    ledger = book.ledger()
    cache = Cache(book.project.cache / "executed")
    chapters = []
    for entry in ledger["chapters"]:
        notebook = cache.load(entry["doc"], entry["key"])
        if notebook is None:
            raise BookError(
                f"the last run of {entry['doc']} is not kept; run `make book`, then this again."
            )
        ended = (entry["error"] or {}).get("evalue") or ""
        chapters.append(chapter_run(entry["doc"], entry["title"], notebook, ended))
    torch, commit, python, cpu, built = (
        str(ledger[key]) for key in ("torch", "commit", "python", "cpu", "built")
    )
    return BookRun(torch, commit, python, cpu, built, tuple(chapters))


def merge(runs: Sequence[BookRun]) -> BookRun:
    """Return the shards of one release as one run.

    :raises BookError: the shards are of different releases, or there are none.
    """
    releases = sorted({run.torch for run in runs})
    if len(releases) != 1:
        raise BookError(
            f"the runs are of {len(releases)} releases ({', '.join(releases)}); "
            "merge the shards of one release."
        )
    chapters: dict[str, ChapterRun] = {}
    for run in runs:
        chapters.update({chapter.doc: chapter for chapter in run.chapters})
    first = runs[0]
    return BookRun(
        first.torch, first.commit, first.python, first.cpu, first.ran, tuple(chapters.values()),
        first.missing, first.triton,
    )  # fmt: skip


def result(pinned: BookRun, other: BookRun) -> Result:
    """Return how a run differs from the pinned one."""
    return Result(
        other.torch, other.commit, pinned.torch, other.python, other.cpu, other.ran,
        {run.doc: _held(run) for run in other.chapters},
        tuple(differences(pinned.chapters, other.chapters)), other.missing,
    )  # fmt: skip


def _held(run: ChapterRun) -> tuple[str, ...]:
    return tuple(sorted({text_id(one.text) for one in run.statements if one.held}))


def store(found: Result, folder: Path) -> Path:
    """Write a result where the book's page finds it; return the file."""
    path = folder / "runs" / f"{found.public}.json"
    held = {doc: " ".join(ids) for doc, ids in found.held.items()}
    data = {"schema": SCHEMA, **asdict(found), "held": held}
    write(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return path


def stored(folder: Path) -> list[Result]:
    """Return the results that were stored, by release, oldest first.

    :raises BookError: one cannot be read.
    """
    results = []
    for path in (folder / "runs").glob("*.json"):
        one = records.read(path.read_bytes(), _Stored, SCHEMA, str(path), "make drift-run")
        held = {doc: tuple(ids.split()) for doc, ids in one.held.items()}
        results.append(Result(**{**vars(one), "held": held}))
    return sorted(results, key=lambda one: version(one.public))


def left_out(results: Iterable[Result]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return where a chapter's own conditions leave a sentence out.

    :return: document → sentence → the releases, without a third number that is 0.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for result in results:
        for one in result.outcomes:
            if one.kind == "guarded":
                of = found.setdefault(one.doc, {})
                of[one.text] = (*of.get(one.text, ()), result.public.removesuffix(".0"))
    return found


def check_shard(part: str) -> None:
    """Check the name of a shard.

    :raises BookError: it is not ``i/n`` with 1 ≤ i ≤ n.
    """
    words = part.split("/")
    good = len(words) == 2 and all(word.isdecimal() for word in words)
    if not good or not 1 <= int(words[0]) <= int(words[1]):
        raise BookError(f"--shard {part!r} is no part of a run; write e.g. 1/4.")
