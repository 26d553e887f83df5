"""The commands of drift: lock, drift, drift-run, drift-report, drift-history, links.

Exit status: 0 the book stands, 1 sentences are to be reread, 2 it is broken, 3 the command could
not work.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from insidetorch.book.project import open_project
from insidetorch.drift import lockfile, reasons
from insidetorch.drift.book import Book, anchors_now, current, installed, unlocked
from insidetorch.errors import BookError
from insidetorch.files import write

_UNUSABLE = 3
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _book_command(command: _Command) -> Callable[..., None]:
    """Give a command the book, and its errors one sentence and a status of their own."""

    @click.option("--root", type=click.Path(path_type=Path), default=Path(), help="The book.")
    @functools.wraps(command)
    def run(root: Path, **options: Any) -> None:
        # Syntax trees are many objects without cycles: looking for those doubles the time.
        gc.disable()
        try:
            command(Book(open_project(root)), **options)
        except BookError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(_UNUSABLE)
        except OSError as error:
            # Files of the book are read with sentences of their own; this is one to be written.
            where = f"{error.filename} " if error.filename else "a file "
            click.echo(f"Error: {where}cannot be written ({error.strerror}); mend that.", err=True)
            sys.exit(_UNUSABLE)

    return run


@click.command()
@click.option(
    "--check", is_flag=True, help="Only say what differs; exit status 1 if anything does."
)
@click.option("--yes", is_flag=True, help="Accept without asking.")
@_book_command
def lock(book: Book, check: bool, yes: bool) -> None:
    """Show how the book's anchors differ from anchors.lock, and accept them."""
    from insidetorch.drift.anchors import against_run

    tree, ledger = installed(), book.ledger()
    if check:
        said = unlocked(book, ledger, tree)
        for sentence in said:
            click.echo(sentence)
        click.echo(
            f"{lockfile.NAME}: {len(said)} differences" if said else "anchors.lock is current"
        )
        sys.exit(1 if said else 0)
    anchors, absent = against_run(anchors_now(book, ledger, tree), tree)
    empty = lockfile.Lock(tree.public, tree.commit, ())
    try:
        old = lockfile.read(book.lock) if book.lock.is_file() else empty
    except lockfile.Damaged as error:
        click.echo(f"{error} All anchors are shown as new.")
        old = empty
    new = lockfile.Lock(tree.public, tree.commit, tuple(anchors))
    lines = lockfile.describe(lockfile.changes(old, anchors))
    for line in [*absent, *lines]:
        click.echo(line)
    text = lockfile.dump(new)
    if book.lock.is_file() and book.lock.read_bytes() == text.encode():
        click.echo(f"{lockfile.NAME} is current: {len(anchors)} anchors on torch {tree.public}")
        return
    if not yes and not (sys.stdin.isatty() and click.confirm("Accept these anchors?")):
        click.echo(f"{lockfile.NAME} was left as it is; accept with `make lock` or --yes.")
        sys.exit(1)
    write(book.lock, text)
    # For the order in which a build without a cache starts the chapters.
    took = {entry["doc"]: round(entry.get("seconds", 0)) for entry in ledger["chapters"]}
    write(book.project.usual_seconds, json.dumps(took, indent=1, sort_keys=True) + "\n")
    click.echo(f"{lockfile.NAME}: {len(anchors)} anchors on torch {tree.public}")


@click.command()
@click.argument("releases", nargs=-1, required=True)
@click.option("--all", "everything", is_flag=True, help="Also print what is folded.")
@_book_command
def drift(book: Book, releases: tuple[str, ...], everything: bool) -> None:
    """Compare the anchors with other RELEASES: version, wheel, environment, checkout, channel."""
    from insidetorch.drift import report
    from insidetorch.drift.compare import compare, stale
    from insidetorch.drift.findings import Unseen
    from insidetorch.drift.prose import chapters
    from insidetorch.drift.releases import open_release
    from insidetorch.drift.reread import items

    pinned, accepted = installed(), lockfile.read(book.lock)
    if accepted.torch != pinned.public:
        raise BookError(
            f"{lockfile.NAME} is of torch {accepted.torch} and {pinned.release} is installed; "
            "install the pins with `make book`, or accept this release with `make lock`."
        )
    anchors, notes = current(accepted, book)
    # What was locked with this very build of torch is what is installed.
    outdated = stale(anchors, pinned) if accepted.commit != pinned.commit else []
    notes += [
        f"{a.chapter}: {a.target} is no longer what {lockfile.NAME} holds; run `make lock`."
        for a in outdated
    ]
    anchors = [anchor for anchor in anchors if anchor not in outdated]
    prose = chapters(book.project.root, dict.fromkeys(anchor.chapter for anchor in anchors))
    code = 0
    for named in releases:
        other = open_release(named, book.cache)
        findings = compare(anchors, pinned, other)
        unknown = dict.fromkeys(
            f"{one.anchor.target}: {one.said}" for one in findings if isinstance(one, Unseen)
        )
        made = report.report(
            items(findings, prose), other.public, pinned.public, unknown=unknown, notes=notes,
            ran=_ran(book, other.public), reasons=reasons.read(book.data),
        )  # fmt: skip
        path = book.work(other.public) / "static.json"
        write(path, json.dumps(report.to_json(made), indent=1, ensure_ascii=False))
        for line in report.terminal(made, everything=everything):
            click.echo(line)
        code = max(code, made.code)
    sys.exit(code)


@click.command("drift-run")
@click.argument("release")
@click.option(
    "--shard", default="", metavar="I/N", help="Execute every N-th chapter, from the I-th."
)
@click.option("--store", is_flag=True, help="Keep the result in drift/runs/ for the book's page.")
@_book_command
def drift_run(book: Book, release: str, shard: str, store: bool) -> None:
    """Execute the chapters under another RELEASE in an environment beside .venv, and compare."""
    from insidetorch.drift import report, run

    if shard:
        run.check_shard(shard)
        click.echo(
            f"{run.execute_with(book, release, shard).torch}: the shard {shard} ran; "
            "merge the shards with `drift-report`."
        )
        return
    pinned = run.pinned_run(book)
    found = run.result(pinned, run.execute_with(book, release, shard))
    if store:
        click.echo(f"stored {run.store(found, book.data)}")
    made = report.report(None, found.public, found.pinned, ran=found)
    for line in report.terminal(made):
        click.echo(line)
    sys.exit(made.code)


@click.command("drift-report")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--markdown", type=click.Path(path_type=Path), help="Write the text of a pull request here."
)
@click.option("--json", "as_json", type=click.Path(path_type=Path), help="Write all as JSON here.")
@click.option("--pin", is_flag=True, help="Pin the release of FILES, and keep its run.")
@_book_command
def drift_report(
    book: Book, files: tuple[Path, ...], markdown: Path | None, as_json: Path | None, pin: bool
) -> None:
    """Merge FILES, static reports and runs or shards of runs, into one report.

    Without FILES, those of `_build/drift`. With --pin, requirements.txt asks for their release from
    now on, and what came of running the book on it is kept in data/drift/runs/.
    """
    from insidetorch.drift import report, run
    from insidetorch.drift.environment import pinned

    folder = book.project.build / "drift"
    found = files or (*sorted(folder.glob("*/static.json")), *sorted(folder.glob("*/run*.json")))
    if not found:
        raise BookError("there is nothing to report; run `make drift TORCH=…` first.")
    reports, runs = _read_reports(book, found)
    if pin:
        if len(runs) != 1:
            raise BookError(f"--pin needs the runs of one release, and there are {len(runs)}.")
        pins = book.project.root / "requirements.txt"
        text = pinned(pins.read_text(encoding="utf-8"), runs[0].public, runs[0].triton)
        write(pins, text)
        run.store(run.result(run.pinned_run(book), runs[0]), book.data)
    data = [report.to_json(one) for one in reports]
    if as_json:
        write(as_json, json.dumps(data, indent=1, ensure_ascii=False))
    if markdown:
        write(markdown, report.markdown(reports, "What to reread"))
    for one in reports:
        for line in report.terminal(one):
            click.echo(line)
    sys.exit(max(one.code for one in reports))


@click.command("drift-history")
@click.argument("releases", nargs=-1, required=True)
@_book_command
def drift_history(book: Book, releases: tuple[str, ...]) -> None:
    """Trace the anchors over RELEASES (versions or wheels) and store it in drift/history.jsonl."""
    from insidetorch.drift import history
    from insidetorch.drift.releases import open_release

    pinned = installed()
    anchors, notes = current(lockfile.read(book.lock), book)
    for note in notes:
        click.echo(note)
    trees = [open_release(named, book.cache) for named in releases]
    found = history.trace(anchors, pinned, trees)
    write(book.data / history.NAME, history.dump(found))
    click.echo(f"{len(found.rows)} anchors over {', '.join(found.releases)}")


@click.command()
@_book_command
def links(book: Book) -> None:
    """Ask every page that the built site links to whether it is still there."""
    from insidetorch.drift.links import broken, outgoing, sentences

    site = book.project.html
    if not (site / "index.html").is_file():
        raise BookError(f"{site} holds no site; build it first with `make book`.")
    pages = outgoing(site)
    said = sentences(broken(pages), pages)
    for sentence in said:
        click.echo(sentence)
    click.echo(f"{len(pages)} links to other hosts, {len(said)} broken")
    sys.exit(1 if said else 0)


def _read_reports(book: Book, files: tuple[Path, ...]) -> tuple[list[Any], list[Any]]:
    """Return one report for each release, and the whole runs that they are made from."""
    from insidetorch.drift import report, run

    runs: dict[str, list[run.BookRun]] = {}
    reports = []
    for path in files:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BookError(f"{path} cannot be read ({error}); make it again.") from None
        if isinstance(data, dict) and "chapters" in data:
            one = run.parse(data, path.name)
            runs.setdefault(one.torch, []).append(one)
        else:
            reports.append(report.from_json(data, path.name))
    pinned = run.pinned_run(book) if runs else None
    whole = [run.merge(parts) for parts in runs.values()]
    for one in whole:
        assert pinned is not None
        found = run.result(pinned, one)
        reports.append(report.report(None, found.public, found.pinned, ran=found))
    return report.together(reports, reasons.read(book.data)), whole


def _ran(book: Book, release: str) -> Any:
    """Return the book as it was executed on a release and stored; None if it was not."""
    from insidetorch.drift import run

    return next((one for one in run.stored(book.data) if one.public == release), None)


COMMANDS = (lock, drift, drift_run, drift_report, drift_history, links)
