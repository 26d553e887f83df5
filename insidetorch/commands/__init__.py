"""The commands: build, serve, clean, and those around recordings."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click
from rich.console import Console

from insidetorch.book.project import open_project
from insidetorch.commands.drift import COMMANDS as DRIFT_COMMANDS
from insidetorch.commands.record import COMMANDS
from insidetorch.errors import BookError
from insidetorch.files import is_full
from insidetorch.publish.pipeline import Options, build_book
from insidetorch.run.entry import farewell

_ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder of the book.  [default: here]",
)


class _Commands(click.Group):
    """Turns what a reader can mend into one sentence, and Ctrl-C into another."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BookError as error:
            click.echo(f"Error: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            if not is_full(error):
                raise
            where = f" ({error.filename})" if error.filename else ""
            click.echo(f"Error: the disk is full{where}; free some space, try again.", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            word, status = farewell()
            click.echo(
                f"\n{word}: the kernels are stopped, the chapters that ended are kept, "
                "and the published site is as it was.",
                err=True,
            )
            ctx.exit(status)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Inside PyTorch: build the book and look after it."""


@main.command()
@_ROOT
@click.option("-j", "--workers", type=click.IntRange(min=1), help="Chapters at a time.")
@click.option("--force", is_flag=True, help="Execute every chapter, cached or not.")
@click.option("--any-torch", is_flag=True, help="Accept a torch other than the pinned one.")
@click.option("--cell-seconds", type=float, help="Time limit of a cell.")
@click.option("--chapter-seconds", type=float, help="Time limit of a chapter.")
@click.option("--watch", "watching", is_flag=True, help="Build again after each edit.")
def build(
    root: Path,
    workers: int | None,
    force: bool,
    any_torch: bool,
    cell_seconds: float | None,
    chapter_seconds: float | None,
    watching: bool,
) -> None:
    """Execute what changed and build the site in _build/html."""
    options = Options(workers, any_torch, force, cell_seconds, chapter_seconds)
    if watching:
        from insidetorch.publish.on_change import watch

        watch(root, options, Console())
        return
    sys.exit(build_book(open_project(root), options, Console()))


@main.command()
@_ROOT
def notebooks(root: Path) -> None:
    """Put the built chapters as .ipynb files, with their wheel, in _build/notebooks."""
    project = open_project(root)
    made = sorted((project.html / "_sources").rglob("*.ipynb"))
    if not made:
        raise BookError(f"{project.html} holds no chapter; build the book first with `make book`.")
    folder = project.build / "notebooks"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in [*made, *(project.html / "_static").glob("*.whl")]:
        shutil.copy2(path, folder)
    click.echo(f"{len(made)} notebooks in {folder}")


@main.command()
@_ROOT
@click.option("--port", type=int, default=8000, show_default=True)
def serve(root: Path, port: int) -> None:
    """Serve the built site on this machine."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    site = open_project(root).html
    if not (site / "index.html").is_file():
        raise BookError(f"{site} holds no site; build it first with `make book`.")
    try:
        server = ThreadingHTTPServer(
            ("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=str(site))
        )
    except OSError as error:
        raise BookError(
            f"port {port} cannot be used ({error.strerror}); choose another with --port."
        ) from None
    click.echo(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends)")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


@main.command()
@_ROOT
@click.option("--keep-cache", is_flag=True, help="Keep the executed notebooks.")
def clean(root: Path, keep_cache: bool) -> None:
    """Remove what builds made."""
    from insidetorch.book.lock import build_lock

    project = open_project(root)
    if not project.build.is_dir():
        return
    with build_lock(project.build):
        for path in project.build.iterdir():
            if path.name == "lock" or (keep_cache and path == project.cache):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


@main.command()
@_ROOT
def doctor(root: Path) -> None:
    """Show what this machine has, and what the book loses where something is missing."""
    from insidetorch.commands.doctor import examine

    console = Console(highlight=False)
    for finding in examine(root):
        mark, text = (
            ("[green]✔[/]", finding.found)
            if finding.found
            else ("[yellow]–[/]", f"missing; lost: {finding.lost}")
        )
        console.print(f"{mark} {finding.name:<20} {text}", soft_wrap=True)


@main.command(context_settings={"ignore_unknown_options": True})
@_ROOT
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(root: Path, arguments: tuple[str, ...]) -> None:
    """Start JupyterLab, in which a double click opens a chapter as a notebook."""
    from insidetorch.commands.lab import start

    start(root, list(arguments))


for command in (*COMMANDS, *DRIFT_COMMANDS):
    main.add_command(command)
