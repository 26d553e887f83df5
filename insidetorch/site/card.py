"""The card that those see to whom a page is sent: what the book is, and what it found."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from sphinx.application import Sphinx

from insidetorch.claims import OUTCOMES
from insidetorch.site import landing
from insidetorch.site.book_ledger import Ledger, read_ledger

NAME = "card.png"
SIZE = (1200, 630)
"""Its width and height in pixels, as those who show cards want them."""


def register(app: Sphinx) -> None:
    """Draw the card when pages have tags that name it."""
    app.connect("builder-inited", _write)


def draw(path: Path, title: str, says: str, source: Path, ledger: Ledger) -> None:
    """Draw the card.

    :param path: the PNG file to write.
    :param says: what the book is, in a sentence.
    :param source: the folder of the book's sources.
    """
    from matplotlib.figure import Figure

    css = resources.files("insidetorch").joinpath("display.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"(--it-\w+): (#\w+)", css.partition("}")[0]))
    counts, torch = landing.counts(source, ledger)
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    axes.set_axis_off()
    wrong = sum(counts[kind] for kind in landing.NOT_SO)
    found = (
        f"Of {counts.total()} statements about PyTorch,\n"
        f"{wrong} are not true, or no longer, on torch {torch}."
    )
    for y, text, size, weight in (
        (90, title, 52, "bold"), (235, says, 27, "normal"), (400, found, 31, "bold"),
    ):  # fmt: skip
        axes.text(70, y, text, size=size, weight=weight, va="center", color=colours["--it-ink"])
    left, width = 70.0, SIZE[0] - 140
    for kind, one in reversed(OUTCOMES.items()):
        share = width * counts[kind] / max(counts.total(), 1)
        axes.barh(520, share, height=56, left=left, color=colours[one.colour])
        left += share
    figure.savefig(path)


def _write(app: Sphinx) -> None:
    ledger = read_ledger(Path(app.srcdir) / app.config.insidetorch_ledger)
    if ledger is not None and "sphinxext.opengraph" in app.extensions:
        path = Path(app.outdir) / "_static" / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        says = "The source of PyTorch, walked through,\nand every sentence about it run."
        draw(path, app.config.project, says, Path(app.srcdir), ledger)
