"""Recording CUDA cells on a GPU: chapter by chapter, resumable, compared with what was before.

It needs IPython and torch, and no Jupyter.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from insidetorch.errors import BookError
from insidetorch.facts import tool
from insidetorch.files import write
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import machine
from insidetorch.gpu import recording as recordings
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Recording, Run
from insidetorch.recorder.process import LIMIT, ended_as_by_ctrl_c, events
from insidetorch.records import RECORD_MIME

NOISE = 0.1
"""Relative change below which a number counts as the same."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MOST_CHANGES = 12

Say = Callable[[str], None]
_PRINT = partial(print, flush=True)


@dataclass(frozen=True)
class Script:
    """A chapter as the recorder needs it.

    :param doc: the document, such as ``notebooks/autograd-engine``.
    :param cells: its code cells, each with ``source`` and ``tags``.
    """

    doc: str
    cells: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """The name of its folder of recordings."""
        return self.doc.rpartition("/")[2]

    @property
    def sources(self) -> list[str]:
        """The code of its cells."""
        return [cell["source"] for cell in self.cells]


@dataclass
class Outcome:
    """What became of the cells, each named ``chapter/cell``; failures with what was wrong."""

    recorded: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    setup: dict[str, str] = field(default_factory=dict)


def record(
    scripts: Sequence[Script],
    root: Path,
    *,
    chapters: Sequence[str] = (),
    everything: bool = False,
    retry: bool = False,
    limit: float = LIMIT,
    book_commit: str = "",
    say: Say = _PRINT,
    after_chapter: Callable[[], object] = lambda: None,
) -> Outcome:
    """Record the CUDA cells of chapters on this machine's GPU, one chapter at a time.

    A cell whose recording is current, and from a machine and a torch like these, is left alone:
    so an interrupted run goes on where it stopped. So is a cell that failed before on a machine
    like this one, unless its code has changed.

    :param root: the folder with ``recordings/``, ``miniatures/`` and the chapters' folders.
    :param chapters: names of the chapters to record; all of them if empty.
    :param everything: record current cells again.
    :param retry: try the cells again that failed before.
    :param limit: seconds that a cell may take.
    :param book_commit: commit of the book.
    :param after_chapter: called after each chapter, also if it was interrupted.
    :raises BookError: there is no GPU, or a chapter is unknown or has malformed cells.
    """
    scripts = _chosen(scripts, chapters)
    here = machine.machine()
    if here is None:
        raise BookError(
            "torch finds no CUDA device on this machine, so nothing can be recorded; "
            "run this on a machine with a GPU and a torch built for CUDA."
        )
    run = new_run(here, book_commit)
    folder, outcome = root / "recordings", Outcome()
    failures = _Failures(root / "_build" / "record-failed.json", here)
    reached = cell_code.reached_in([root])
    say(f"{here.gpu}, driver {here.driver or 'unknown'}, CUDA {here.cuda}, torch {here.torch}")
    if lack := _no_compiler():
        say(lack)
    for position, script in enumerate(scripts, start=1):
        digests = recordings.chapter_digests(script.sources, reached)
        before = {name: _previous(folder / script.name / f"{name}.json") for name in digests}
        wanted = []
        for name, digest in digests.items():
            cell = f"{script.name}/{name}"
            if not everything and is_current(before[name], digest, here, folder):
                outcome.current.append(cell)
            elif not (everything or retry) and (problem := failures.find(cell, digest)):
                outcome.failed[cell] = f"{problem} (in an earlier run; --retry tries it again)"
            else:
                wanted.append(name)
        title = f"[{position}/{len(scripts)}] {script.name}"
        if not wanted:
            say(f"{title}: nothing to record of {len(digests)} cells")
            continue
        say(f"{title}: {len(wanted)} of {len(digests)} cells to record")
        with ended_as_by_ctrl_c():
            try:
                _record_chapter(script, wanted, before, run, root, limit, outcome, say)
            finally:
                for name in wanted:
                    cell = f"{script.name}/{name}"
                    failures.put(cell, digests[name], outcome.failed.get(cell, ""))
                prune(folder / script.name)
                after_chapter()
    for name in orphans(scripts, folder):
        say(f"recordings/{name} belongs to no cell of its chapter any more; delete it")
    return outcome


def new_run(here: Machine, book_commit: str) -> Run:
    """Return a run that starts now on the machine `here`."""
    now = datetime.now(UTC)
    gpu = re.sub(r"[^a-z0-9]+", "-", here.gpus[0].lower()).strip("-")
    return Run(f"{now:%Y%m%dt%H%M%Sz}-{gpu}", f"{now:%Y-%m-%dT%H:%M:%SZ}", book_commit, here)


def is_current(before: Recording | None, digest: str, here: Machine, folder: Path) -> bool:
    """Tell whether a recording is of this code, and from a machine and software like `here`."""
    if before is None or before.digest != digest:
        return False
    try:
        there = recordings.run_of(before, folder).machine
    except BookError:
        return False
    return _facts(there) == _facts(here)


def _facts(here: Machine) -> list[str]:
    """Return what must be the same for two machines' outputs to be taken for each other."""
    names = ("gpus", "driver", "cuda", "torch", "torch_commit", "python", "triton", "cudnn")
    return [str(getattr(here, name)) for name in names]


def changes(before: Recording, after: Recording) -> list[str]:
    """Return what two recordings of one cell show differently, numbers within the noise apart.

    A timing changed if the medians differ by more than both interquartile ranges and by more than
    `NOISE`; any other number, by more than `NOISE`.
    """
    old, new = dict(_timings(before)), dict(_timings(after))
    found = [
        f"{label}: {old[label][0]:.4g} s → {new[label][0]:.4g} s"
        f" ({new[label][0] / old[label][0] - 1:+.0%})"
        for label in old.keys() & new.keys()
        if _differ(old[label][0], new[label][0])
        and abs(old[label][0] - new[label][0]) > max(old[label][1], new[label][1])
    ]
    were, are = _lines(before), _lines(after)
    for shape in were.keys() & are.keys():
        for (line, values), (now, current) in zip(were[shape], are[shape], strict=False):
            if any(_differ(a, b) for a, b in zip(values, current, strict=True)):
                found.append(f"“{line}” → “{now}”")
    lost = sum(len(lines) for shape, lines in were.items() if shape not in are)
    gained = sum(len(lines) for shape, lines in are.items() if shape not in were)
    if lost or gained:
        found.append(f"{gained} lines are new, {lost} are gone")
    return sorted(found)


def prune(folder: Path) -> None:
    """Remove the runs and artefacts of a chapter that no recording names."""
    named: set[str] = set()
    for path in folder.glob("*.json"):
        if not path.name.startswith("run-"):
            recording = recordings.load(path)
            named |= {f"run-{recording.run}.json", *(item.file for item in recording.artifacts)}
    for path in [*folder.glob("run-*.json"), *folder.glob("*.gz")]:
        if path.name not in named:
            path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def orphans(scripts: Sequence[Script], folder: Path) -> list[str]:
    """Return the recordings of these chapters whose cell is gone, as ``chapter/cell.json``."""
    gone = []
    for script in scripts:
        names = cell_code.labels(script.sources)
        for path in sorted((folder / script.name).glob("*.json")):
            if not path.name.startswith("run-") and path.stem not in names:
                gone.append(f"{script.name}/{path.name}")
    return gone


def report(outcome: Outcome, say: Say) -> None:
    """Tell what became of the cells."""
    for title, cells in (
        ("needs more than this machine has", outcome.skipped),
        ("failed", outcome.failed),
        ("an ordinary cell failed here", outcome.setup),
    ):
        for name, problem in cells.items():
            say(f"{title}: {name}: {problem}")
    say(
        f"{len(outcome.recorded)} recorded, {len(outcome.current)} were current, "
        f"{len(outcome.skipped)} skipped, {len(outcome.failed)} failed"
    )


class _Failures:
    """What failed in earlier runs, kept in a file: a hang is not waited for at each run."""

    def __init__(self, path: Path, here: Machine) -> None:
        self._path, self._here = path, _facts(here)
        try:
            self._known: dict[str, list[Any]] = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            self._known = {}

    def find(self, cell: str, digest: str) -> str:
        """Return how a cell of this code failed on a machine like this one, or nothing."""
        where = [digest, self._here]
        *known, problem = self._known.get(cell) or [""]
        return str(problem) if known == where else ""

    def put(self, cell: str, digest: str, problem: str) -> None:
        """Keep how a cell failed; without a problem, forget what there is."""
        self._known.pop(cell, None)
        if problem:
            self._known[cell] = [digest, self._here, problem]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write(self._path, json.dumps(self._known, indent=1).encode())


def _no_compiler() -> str:
    """Return what to say if nothing can be compiled here; Triton compiles what starts a kernel."""
    if not (os.environ.get("CC") or tool("cc", "gcc", "clang")):
        lack = "no C compiler"
    elif not Path(sysconfig.get_path("include"), "Python.h").is_file():
        lack = "a C compiler, and Python's headers are missing"
    else:
        return ""
    return f"there is {lack}: cells that compile with Triton will fail; the others are recorded"


def _chosen(scripts: Sequence[Script], chapters: Sequence[str]) -> list[Script]:
    with_cells = {script.name: script for script in scripts if cell_code.labels(script.sources)}
    wanted = [re.sub(r"\.md$", "", name).rpartition("/")[2] for name in chapters]
    for name in wanted:
        if name not in with_cells:
            raise BookError(
                f"there is no chapter {name!r} with CUDA cells; "
                f"there are: {', '.join(with_cells) or 'none'}."
            )
    return [with_cells[name] for name in wanted] if wanted else list(with_cells.values())


def _record_chapter(
    script: Script,
    wanted: Sequence[str],
    before: Mapping[str, Recording | None],
    run: Run,
    root: Path,
    limit: float,
    outcome: Outcome,
    say: Say,
) -> None:
    folder = root / "recordings" / script.name
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / f"run-{run.id}.json", recordings.write_run(run))
    left = list(wanted)
    while left := _possible(script, left, outcome, say):
        waiting = len(left)
        job = {
            "chapter": script.name, "cells": [dict(cell) for cell in script.cells],
            "wanted": left, "run": run.id, "folder": str(root / "recordings"),
        }  # fmt: skip
        for event in events(job, root, (root / script.doc).parent, limit):
            cell, problem = event["cell"], str(event.get("problem", ""))
            name = f"{script.name}/{cell}"
            if cell in left and event["event"] != "running":
                left.remove(cell)
            if event["event"] == "running":
                say(f"  {cell} …")
            elif event["event"] == "recorded":
                outcome.recorded.append(name)
                say(f"  {cell}: recorded, {event['seconds']:.1f} s")
                for warning in event["dropped"]:
                    say(f"    left out, since no `warns` expects it: {warning}")
                _say_news(before[cell], folder / f"{cell}.json", say)
            elif event["event"] == "setup failed":
                outcome.setup[name] = problem
                say(f"  {cell} is an ordinary cell and failed here: {problem}")
            else:
                table = outcome.skipped if event["event"] == "skipped" else outcome.failed
                table.setdefault(name, problem)
                say(f"  {cell}: {event['event']}: {problem}")
        if len(left) == waiting:
            for cell in left:
                outcome.failed[f"{script.name}/{cell}"] = "a cell before it ended the process"
            return
        if left:
            say(f"  a new process for the {len(left)} cells that are left")


def _possible(script: Script, left: Sequence[str], outcome: Outcome, say: Say) -> list[str]:
    """Return the cells that do not build on one that failed; of the others, say so."""
    names = [
        split and cell_code.label(split[0]).name for split in map(cell_code.split, script.sources)
    ]
    kept = []
    for cell in left:
        needed = {names[index] for index in cell_code.cells_to_run(script.sources, [cell])} - {cell}
        lost = [
            name for name in names if name in needed and f"{script.name}/{name}" in outcome.failed
        ]
        if lost:
            problem = f"it needs what %%cuda {lost[0]} makes, and that failed"
            outcome.failed[f"{script.name}/{cell}"] = problem
            say(f"  {cell}: {problem}")
        else:
            kept.append(cell)
    return kept


def _previous(path: Path) -> Recording | None:
    try:
        return recordings.load(path) if path.is_file() else None
    except BookError:
        return None


def _say_news(before: Recording | None, path: Path, say: Say) -> None:
    after = recordings.load(path)
    if before is not None:
        news = changes(before, after)
        for line in news[:_MOST_CHANGES]:
            say(f"    changed: {line}")
        if len(news) > _MOST_CHANGES:
            say(f"    and {len(news) - _MOST_CHANGES} more changes")
    texts = [output.get("text", "") for output in after.outputs]
    texts += [str(output.get("data", {}).get("text/plain", "")) for output in after.outputs]
    home = str(Path.home())
    if len(home) > 1 and any(f"{home}/" in text for text in texts):
        say(f"    note: the output names {home}; print no paths of this machine")


def _timings(recording: Recording) -> Iterator[tuple[str, tuple[float, float]]]:
    for output in recording.outputs:
        entry = output.get("data", {}).get(RECORD_MIME) or {}
        if entry.get("kind") == "timing":
            for timing in entry.get("results", [entry]):
                if timing.get("median"):
                    yield str(timing.get("label")), (timing["median"], timing["iqr"])


def _lines(recording: Recording) -> dict[str, list[tuple[str, tuple[float, ...]]]]:
    """Return the lines of text by their shape, each with its numbers; timings have their own."""
    found: dict[str, list[tuple[str, tuple[float, ...]]]] = defaultdict(list)
    for output in recording.outputs:
        data = output.get("data", {})
        entry = data.get(RECORD_MIME) or {}
        if entry.get("kind") == "timing" and ("median" in entry or "results" in entry):
            continue
        for line in str(output.get("text", data.get("text/plain", ""))).splitlines():
            numbers = tuple(float(n.replace(",", "")) for n in _NUMBER.findall(line))
            found[" ".join(_NUMBER.sub("#", line).split())].append((line.strip(), numbers))
    return found


def _differ(first: float, second: float) -> bool:
    return abs(first - second) > NOISE * max(abs(first), abs(second))
