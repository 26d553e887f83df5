"""The tables of the colophon, which come from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib import metadata

from insidetorch import facts
from insidetorch.display import Display, escape, table
from insidetorch.site.book_ledger import Executed, Ledger
from insidetorch.site.places import linked
from insidetorch.site.stamp import counted, moment, release

NO_LEDGER = (
    "<p class='it'>This part is made from the record of the last execution, and the site was built "
    "without it; <code>make book</code> writes it.</p>"
)
PACKAGES = (
    "torch", "numpy", "jupyter-book", "Sphinx", "myst-nb", "sphinx-book-theme",
    "pydata-sphinx-theme", "nbclient", "ipykernel", "ipython", "jupytext", "tree-sitter",
    "tree-sitter-cpp", "Pygments", "matplotlib", "graphviz", "latex2mathml", "squarify",
)  # fmt: skip


def colophon(ledger: Ledger | None, link: Callable[[str], str]) -> str:
    """Return the tables of the colophon: machine, versions, and what was checked in each chapter.

    :param link: returns the address of a chapter's document, relative to the page.
    """
    versions = table(
        ["Package", "Version"],
        [[name, found] for name in PACKAGES if (found := _version(name))],
        caption="Versions in the environment that built this site",
    ).html
    if ledger is None:
        return NO_LEDGER + versions
    return _facts(ledger) + _limits(ledger.chapters) + versions + _executions(ledger.chapters, link)


def _limits(chapters: Sequence[Executed]) -> str:
    """Return the speeds that cells measured as limits of the machine, or nothing."""
    found = [(chapter, record) for chapter in chapters for record in chapter.of("limits")]
    rows = [[name, value, chapter.title] for chapter, r in found for name, value in r["rows"]]
    if not rows:
        return ""
    caption = "Limits of this machine, measured when the chapters were executed"
    return table(["Limit", "Measured", "Chapter"], rows, caption=caption, numeric=(1,)).html


def _facts(ledger: Ledger) -> str:
    cores = counted(facts.cores(), "core")
    rows: list[tuple[str, object]] = [
        ("Built", Display(moment(ledger.built), str(ledger.built))),
        ("PyTorch", Display(release(ledger.torch, ledger.commit), ledger.torch)),
        ("Python", ledger.python),
        ("Processor", f"{ledger.cpu}, {cores} for the build"),
        ("Graphics processor", _gpu(ledger.chapters)),
        ("Code cells", sum(chapter.cells for chapter in ledger.chapters)),
        ("Claims", "{} of {} held".format(*_claims(ledger.chapters))),
        ("Verdicts", sum(len(chapter.of("verdict")) for chapter in ledger.chapters)),
        ("Excerpts of source", sum(len(chapter.of("excerpt")) for chapter in ledger.chapters)),
    ]
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"<td>{value.html if isinstance(value, Display) else escape(value)}</td></tr>"
        for name, value in rows
    )
    return (
        '<div class="it it-scroll"><table class="it-table"><caption>What it was made from</caption>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _executions(chapters: Sequence[Executed], link: Callable[[str], str]) -> str:
    rows: list[list[object]] = [
        [
            Display(linked(link(chapter.doc), chapter.title), chapter.title),
            "{} of {}".format(*chapter.held()),
            len(chapter.of("verdict")),
            chapter.cells,
            f"{chapter.seconds:.1f}",
            _warnings(chapter),
            Display(release(chapter.torch, chapter.commit), chapter.torch),
            Display(moment(chapter.executed), str(chapter.executed)),
        ]
        for chapter in chapters
    ]
    total = sum(chapter.seconds for chapter in chapters)
    cells = sum(chapter.cells for chapter in chapters)
    verdicts = sum(len(chapter.of("verdict")) for chapter in chapters)
    held = "{} of {}".format(*_claims(chapters))
    rows.append(["Together", held, verdicts, cells, f"{total:.1f}", "", "", ""])
    return table(
        ["Chapter", "Claims held", "Verdicts", "Code cells", "Seconds", "Warnings",
         "Release (commit)", "Executed"],
        rows,
        caption="What was checked, and on which release",
        numeric=(1, 2, 3, 4),
    ).html  # fmt: skip


def _warnings(chapter: Executed) -> str:
    found = chapter.of("warning")
    if not found:
        return "none"
    declared = sum(1 for warning in found if warning.get("declared"))
    return f"{len(found)}, of which {declared} expected by the text"


def _claims(chapters: Sequence[Executed]) -> tuple[int, int]:
    pairs = [chapter.held() for chapter in chapters]
    return sum(held for held, _ in pairs), sum(claims for _, claims in pairs)


def _gpu(chapters: Sequence[Executed]) -> str:
    """Return how many cells are for a GPU, and what became of them."""
    states = Counter(str(cell.get("state")) for c in chapters for cell in c.of("cuda"))
    if not states:
        return "none used"
    each = ", ".join(f"{number} {state}" for state, number in states.most_common())
    return f"{counted(states.total(), 'cell')} for a GPU: {each}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
