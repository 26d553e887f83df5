"""One build of the book, from what is on disk to the published site."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from insidetorch.book import ledger as ledger_file
from insidetorch.book.cache import Cache, CorruptEntry
from insidetorch.book.cache_key import Key, keys, remembered, undeclared
from insidetorch.book.lock import build_lock
from insidetorch.book.modules import TOOLKIT
from insidetorch.book.packages import installed
from insidetorch.book.parsed import Parsed
from insidetorch.book.project import Chapter, Project
from insidetorch.book.runs import Failure, Run
from insidetorch.drift import run as elsewhere
from insidetorch.drift.book import Book
from insidetorch.drift.hook import say_unlocked
from insidetorch.errors import BookError
from insidetorch.facts import cores
from insidetorch.files import digest, write
from insidetorch.publish import assemble as publish
from insidetorch.publish import downloads as readers
from insidetorch.publish import notebook_forms as notebooks
from insidetorch.publish.failures import Unsaid, where, why
from insidetorch.publish.kept import code
from insidetorch.publish.preflight import check_graphviz, check_torch
from insidetorch.publish.progress import ChapterProgress, say_failures
from insidetorch.publish.render import Renderer, SphinxProcess
from insidetorch.publish.stage import stage
from insidetorch.publish.viewer import viewer
from insidetorch.publish.wheel import start_wheel
from insidetorch.run.leftovers import sweep
from insidetorch.show.traces import files


@dataclass(frozen=True)
class Options:
    """How to build.

    :param workers: chapters executed at a time; None for one per core.
    :param any_torch: build with the installed torch even if it is not the pinned one.
    :param force: execute every chapter, cached or not.
    :param cell_seconds: time limit of a cell; None for the book's own.
    :param chapter_seconds: time limit of a chapter; None for the book's own.
    """

    workers: int | None = None
    any_torch: bool = False
    force: bool = False
    cell_seconds: float | None = None
    chapter_seconds: float | None = None


@dataclass
class _Outcome:
    """What is known of the chapters so far; filled while they run."""

    project: Project
    keys: dict[str, Key]
    cache: Cache
    unsaid: Unsaid
    executed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)

    def started(self, chapter: Chapter) -> None:
        """Nothing is known yet."""

    def cell(self, chapter: Chapter, number: int) -> None:
        """Nothing is known yet."""

    def finished(self, run: Run) -> None:
        doc = run.chapter.doc
        key = self.keys[doc]
        about = ledger_file.provenance(key.text, run.seconds, run.cell_seconds)
        run.notebook["metadata"]["insidetorch"] = about
        self.executed[doc] = run.notebook
        self.fresh.add(doc)
        failure = run.failure
        assert key.reached is not None
        if failure is None and (said := undeclared(run.opened, key.reached, self.project)):
            failure = Failure(None, None, "Undeclared", " ".join(said))
        if failure is None:
            self.cache.store(doc, key.text, run.notebook)
            self.cache.remember(doc, run.seconds)
        else:
            self.failures[doc] = failure
            self.unsaid.add(run.chapter, failure)


def build_book(
    project: Project, options: Options, console: Console, sphinx: SphinxProcess | None = None
) -> int:
    """Build the book; return the exit status.

    :param sphinx: the process that renders, if it is to stay for the next build.
    :raises BookError: something must be mended before anything can be executed.
    """
    begun = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(build_lock(project.build))
        if project.html.exists() and not project.html.is_dir():
            raise BookError(
                f"the site cannot be written: {project.html} is a file; move it out of the way."
            )
        publish.recover(project)
        sweep(project)
        unsaid = Unsaid(project.build / "failures")
        unsaid.say(console)
        parsed = Parsed(project.cache / "parsed.json")
        limits = project.limits(options.cell_seconds, options.chapter_seconds)
        pages = project.pages(limits, parsed.parse)
        if not options.any_torch:
            check_torch(project)
        check_graphviz(pages)
        if sphinx is None:
            sphinx = SphinxProcess(project)
            stack.callback(sphinx.close)
        if parsed.changed({page.doc: page.text for page in pages}):
            sphinx.start()
        renderer = Renderer(project, sphinx)
        wheel_job = start_wheel(project)
        if wheel_job is not None:
            stack.callback(wheel_job.close)

        chapters = [page for page in pages if isinstance(page, Chapter)]
        outcome = _execute(project, chapters, options, console, sphinx, unsaid)
        merged = {
            chapter.doc: notebooks.merge(chapter, outcome.executed[chapter.doc])
            for chapter in chapters
        }
        entries = [
            ledger_file.entry(
                chapter,
                merged[chapter.doc],
                chapter.doc in outcome.fresh,
                outcome.failures.get(chapter.doc),
            )
            for chapter in chapters
        ]
        problems = [
            problem
            for chapter, part in zip(chapters, entries, strict=True)
            for problem in _chapter_problems(
                chapter, merged[chapter.doc], part, outcome.failures.get(chapter.doc)
            )
        ]
        rendering = time.monotonic()
        renderer.open()
        path = project.build / "ledger.json"
        before = ledger_file.read(path)
        sources = _sources(chapters, merged, outcome)
        left_out = elsewhere.left_out(elsewhere.stored(Book(project).data))
        if stage(project, pages, merged, sources, left_out):
            before = None
        ledger = ledger_file.ledger(entries, before)
        write(path, json.dumps(ledger, indent=1, ensure_ascii=False))
        renderer.begin(pages, before is None or not ledger_file.same(ledger, before))
        say_unlocked(project, console)
        wheel = wheel_job.wait() if wheel_job is not None else None
        if isinstance(wheel, str):
            problems.append(wheel)
            wheel = None
        downloads = readers.downloads(project, chapters, merged, wheel, sources)
        traces = files(merged.values())
        shown_by = viewer(project.cache, console.print) if traces else None
        if traces and shown_by is None:
            console.print("  no viewer of traces (npm brings it); they are there to download")
        complaints = renderer.finish(pages)
        console.print(f"  rendered [dim]{time.monotonic() - rendering:.1f} s[/]", highlight=False)
        problems += complaints
        if not complaints:
            site = publish.assemble(
                project, renderer.output, downloads, outcome.fresh, wheel, traces, shown_by
            )
            lacking = publish.lacking(site.new, pages, site.made)
            problems += lacking
            if not lacking:
                renderer.accept(pages)
                parsed.keep()
            if not problems:
                publish.swap(project, site.new)
                site.keep()
    unsaid.forget()
    if problems:
        say_failures(console, problems)
        return 1
    console.print(
        f"[green]Built[/] {project.html} in {time.monotonic() - begun:.1f} s: "
        f"{len(chapters)} chapters, {len(outcome.fresh)} executed, "
        f"{len(chapters) - len(outcome.fresh)} from the cache.",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _execute(
    project: Project,
    chapters: list[Chapter],
    options: Options,
    console: Console,
    sphinx: SphinxProcess,
    unsaid: Unsaid,
) -> _Outcome:
    cache = Cache(project.cache / "executed")
    known_keys = remembered(chapters, project, project.cache / "keys.json")
    outcome = _Outcome(project, known_keys, cache, unsaid)
    for chapter in chapters:
        if options.force:
            continue
        try:
            known = outcome.cache.load(chapter.doc, outcome.keys[chapter.doc].text)
        except CorruptEntry as error:
            console.print(
                f"  the cached run of {chapter.doc} is damaged ({error}); executing it again.",
                highlight=False,
                soft_wrap=True,
            )
            continue
        if known is not None:
            outcome.executed[chapter.doc] = known
    to_run = [chapter for chapter in chapters if chapter.doc not in outcome.executed]
    if to_run:
        from insidetorch.run.execute import execute, longest_first

        outcome.keys |= keys(to_run, project)
        sphinx.start()
        workers = min(options.workers or cores(), len(to_run))
        console.print(
            f"Executing {len(to_run)} of {len(chapters)} chapters, {workers} at a time",
            highlight=False,
        )
        usual = _usual(project)
        seconds = {
            chapter.doc: outcome.cache.seconds(chapter.doc) or usual.get(chapter.doc)
            for chapter in to_run
        }
        progress = ChapterProgress(console, outcome)
        with progress.shown():
            execute(longest_first(to_run, seconds), project, workers, progress)
            first = {
                doc: failure
                for doc, failure in outcome.failures.items()
                if failure.name == "ClaimFailed"
            }
            if first:
                again = [chapter for chapter in to_run if chapter.doc in first]
                _say(console, again, first, "the chapter is executed once more; this may be a race")
                for doc in first:
                    del outcome.failures[doc]
                execute(again, project, workers, progress)
                held = [chapter for chapter in again if chapter.doc not in outcome.failures]
                _say(console, held, first, "held at the second run only; mend the cell")
    return outcome


def _say(
    console: Console, chapters: Sequence[Chapter], failed: Mapping[str, Failure], then: str
) -> None:
    for chapter in chapters:
        line = f"  {why(chapter, failed[chapter.doc])}: {then}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _usual(project: Project) -> dict[str, float]:
    """Return how long chapters take elsewhere: a hint for a build that has not run them yet."""
    try:
        return dict(json.loads(project.usual_seconds.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _sources(
    chapters: list[Chapter], merged: Mapping[str, Mapping[str, Any]], outcome: _Outcome
) -> dict[str, str]:
    """Return, by document, what a chapter's notebook is made from and the code that makes it."""
    made_by = digest(installed(), code(map(str, sorted(TOOLKIT.rglob("*.py")))))
    return {
        chapter.doc: digest(
            made_by,
            chapter.text,
            outcome.keys[chapter.doc].text,
            merged[chapter.doc]["metadata"].get("insidetorch"),
        )
        for chapter in chapters
    }


def _chapter_problems(
    chapter: Chapter,
    notebook: Mapping[str, Any],
    part: Mapping[str, Any],
    failure: Failure | None,
) -> list[str]:
    problems = []
    if failure is not None:
        problems.append(why(chapter, failure))
    else:
        problems += [
            f"{where(chapter, cell)}: the cell was not executed; build with --force"
            for cell in notebooks.unexecuted(notebook)
        ]
    for record in ledger_file.undeclared_warnings(part["records"]):
        problems.append(
            f"{where(chapter, record['cell'])}: undeclared {record['category']}: "
            f"“{record['message']}”; replace the call, or expect it with "
            f"`with warns({record['category']}):`"
        )
    return problems
