"""The commands around recordings: record, record-bundle, record-import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from insidetorch.book.project import Chapter, Project, open_project
from insidetorch.recorder.process import LIMIT
from insidetorch.recorder.record import Script

_ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder of the book.  [default: here]",
)


@click.command()
@_ROOT
@click.argument("chapters", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Record current cells again.")
@click.option("--retry", is_flag=True, help="Try the cells again that failed before.")
@click.option("--limit", default=LIMIT, show_default=True, help="Seconds that a cell may take.")
def record(
    root: Path, chapters: tuple[str, ...], everything: bool, retry: bool, limit: float
) -> None:
    """Record the CUDA cells of CHAPTERS (all if none is named) on this machine's GPU."""
    from insidetorch.recorder import record as recorder

    project = open_project(root)
    outcome = recorder.record(
        scripts(project), project.root, chapters=chapters, everything=everything,
        retry=retry, limit=limit, book_commit=book_commit(project.root), say=click.echo,
    )  # fmt: skip
    recorder.report(outcome, click.echo)
    sys.exit(1 if outcome.failed else 0)


@click.command("record-bundle")
@_ROOT
@click.option("--python", default="3.12", show_default=True, help="Python of the GPU box.")
def record_bundle(root: Path, python: str) -> None:
    """Make one archive that records on a GPU box without a network."""
    from insidetorch.recorder import bundle

    project = open_project(root)
    target = bundle.make_bundle(
        project.root, scripts(project), bundle.download_wheels(project.root, python), python,
        book_commit(project.root),
    )  # fmt: skip
    click.echo(
        f"{target}: {target.stat().st_size / 1e6:.1f} MB. On the box, with a Python {python} that "
        f"has torch:\n  tar xzf {target.name} && python {bundle.FOLDER}/record.py"
    )


@click.command("record-import")
@_ROOT
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--skip-changed", is_flag=True, help="Leave out cells that changed since.")
def record_import(root: Path, archive: Path, skip_changed: bool) -> None:
    """Check ARCHIVE, which `record.py` wrote on a GPU box, and unpack it into recordings/."""
    from insidetorch.recorder import bundle

    project = open_project(root)
    cells = bundle.import_archive(
        archive, project.root, scripts(project), skip_changed=skip_changed
    )
    for cell in cells:
        click.echo(f"  {cell}")
    click.echo(f"{len(cells)} recordings imported; review them with `git diff recordings`")


COMMANDS = (record, record_bundle, record_import)


def scripts(project: Project) -> list[Script]:
    """Return the book's chapters as the recorder needs them."""
    return [
        Script(
            page.doc,
            tuple(
                {"source": cell["source"], "tags": list(cell["metadata"].get("tags") or ())}
                for cell in page.code_cells
            ),
        )
        for page in project.pages(project.limits())
        if isinstance(page, Chapter)
    ]


def book_commit(root: Path) -> str:
    """Return the commit of the book, with ``+`` if files were changed since; or nothing."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!recordings")
    return f"{commit}+" if commit and changed else commit
