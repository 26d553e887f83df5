"""One chapter's notebook in its three forms: merged, as the site shows it, as readers get it."""

from __future__ import annotations

import copy
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from insidetorch.book.project import Chapter
from insidetorch.claims import beside
from insidetorch.display import strip_style
from insidetorch.gpu.recording import stage_cell
from insidetorch.publish.pictures import numbered
from insidetorch.publish.two_layers import layers
from insidetorch.records import RECORD_MIME
from insidetorch.show.traces import TRACE_MIME

# Either a fenced block, which is left alone, or the target of a link.
_LINK = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[`~]*[ \t]*$"
    r"|(?P<open>\]\(<?|<project:|^[ ]{0,3}\[[^\]\n]+\]:[ ]+<?)"
    r"(?P<path>[^\s()<>#:]+)\.md(?=[#)>\s]|$)",
    re.DOTALL | re.MULTILINE,
)


def merge(chapter: Chapter, executed: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the chapter's notebook as it is written now, with the outputs of `executed`.

    :param executed: a notebook of the same code cells, or None if the chapter never ran.
    """
    notebook = copy.deepcopy(chapter.notebook)
    notebook.update(nbformat=4, nbformat_minor=5)
    if executed is None:
        return notebook
    ran = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    ours = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for mine, theirs in zip(ours, ran, strict=True):
        mine["outputs"] = copy.deepcopy(theirs["outputs"])
        mine["execution_count"] = theirs["execution_count"]
    for name in ("insidetorch", "language_info"):
        if name in executed["metadata"]:
            notebook["metadata"][name] = executed["metadata"][name]
    return notebook


def for_site(
    notebook: Mapping[str, Any],
    doc: str,
    chapters: Collection[str],
    left_out: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the notebook as Sphinx reads it.

    What proves is folded below what demonstrates. The style block is left out (the site links the
    sheet once), records too (no page shows them), a CUDA cell's magic line, and links between
    chapters lead to where they are staged.

    :param left_out: claim → the releases of which its cell does not say it, told below it.
    """
    shown = copy.deepcopy(dict(notebook))
    made = layers([stage_cell(cell) for cell in shown["cells"]])
    if lines := shown["metadata"].get("source_map"):
        shown["metadata"]["source_map"] = [
            line for line, cells in zip(lines, made, strict=True) for _ in cells
        ]
    shown["cells"] = [cell for cells in made for cell in cells]
    for cell in shown["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = retarget(cell["source"], doc, chapters)
        for output in cell.get("outputs", ()):
            data = output.get("data")
            if data is None:
                continue
            record = data.pop(RECORD_MIME, None) or {}
            data.pop(TRACE_MIME, None)
            if isinstance(data.get("text/html"), str):
                data["text/html"] = strip_style(data["text/html"])
                if record.get("kind") == "claim" and record.get("text") in left_out:
                    data["text/html"] = beside(data["text/html"], left_out[record["text"]])
    return numbered(shown, doc)


def retarget(text: str, doc: str, chapters: Collection[str]) -> str:
    """Return Markdown whose links to a chapter's ``.md`` file lead to its staged ``.ipynb``.

    :param doc: the document the text belongs to, which relative links start from.
    :param chapters: the documents that are chapters.
    """
    folder = posixpath.dirname(doc)

    def link(found: re.Match[str]) -> str:
        if found["fence"]:
            return found[0]
        start = "" if found["path"].startswith("/") else folder
        target = posixpath.normpath(posixpath.join(start, found["path"].lstrip("/")))
        suffix = "ipynb" if target in chapters else "md"
        return f"{found['open']}{found['path']}.{suffix}"

    return _LINK.sub(link, text)


def unexecuted(notebook: Mapping[str, Any]) -> list[int]:
    """Return the numbers, from 1, of the code cells that were not executed."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [n for n, cell in enumerate(code, start=1) if cell.get("execution_count") is None]
