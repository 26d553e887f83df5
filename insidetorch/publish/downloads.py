"""The chapters as readers take them along: notebooks that stand without the site.

Their outputs are plain text. JupyterLab takes style and drawings off what it did not run itself,
and of HTML that leaves a heap; the text is made to be read. A cell that runs draws again.
"""

from __future__ import annotations

import copy
import io
import json
import posixpath
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from insidetorch.book.project import Chapter, Project
from insidetorch.facts import torch_facts
from insidetorch.files import digest
from insidetorch.publish.plain_markdown import TARGET, Place, plain
from insidetorch.records import RECORD_MIME
from insidetorch.show.traces import TRACE_MIME

_INSTALL = Path(__file__).with_name("install_cell.txt")


class Download(NamedTuple):
    """A notebook to make.

    :param source: the digest of all that it is made from.
    """

    source: str
    make: Callable[[], dict[str, Any]]


def downloads(
    project: Project,
    chapters: Sequence[Chapter],
    merged: Mapping[str, Mapping[str, Any]],
    wheel: Path | None,
    sources: Mapping[str, str],
) -> dict[str, Download]:
    """Return each chapter as a reader gets it: plain Markdown, outputs, a cell that installs.

    :param merged: chapter → notebook with its outputs.
    :param wheel: the toolkit's wheel, or None if the book has none.
    :param sources: chapter → digest of what `merged` is made from, and of the code that makes it.
    """
    place = _places(project)
    cell = _INSTALL.read_text(encoding="utf-8")
    besides = wheel and wheel.name, project.address, project.config.get("title"), place, cell
    return {
        chapter.doc: Download(
            digest(sources[chapter.doc], *besides),
            partial(_given, project, chapter, merged[chapter.doc], wheel, place),
        )
        for chapter in chapters
    }


def packed(doc: str, notebook: bytes, wheel: Path | None) -> bytes:
    """Return an archive of a folder that has a chapter's notebook and the toolkit's wheel."""
    name = doc.rpartition("/")[2]
    files = {f"{name}.ipynb": notebook} | ({wheel.name: wheel.read_bytes()} if wheel else {})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            # No time, so that the same content makes the same archive.
            archive.writestr(zipfile.ZipInfo(f"{name}/{file}"), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _given(
    project: Project,
    chapter: Chapter,
    notebook: Mapping[str, Any],
    wheel: Path | None,
    place: Mapping[tuple[str, str], str],
) -> dict[str, Any]:
    given = copy.deepcopy(dict(notebook))
    given["metadata"].pop("source_map", None)
    text = (project.root / f"{chapter.doc}.md").read_text(encoding="utf-8")
    here = _finder(chapter.doc, place, headings(text))
    for cell in given["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = plain(cell["source"], here)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for kind in (TRACE_MIME, RECORD_MIME, *(["text/html"] if "text/plain" in data else [])):
                data.pop(kind, None)
    about = given["metadata"]["insidetorch"]
    first = [_markdown("about", _about(project, chapter, about))]
    if wheel is not None:
        torch = torch_facts()
        pin = torch.public if torch else about["torch"].split("+")[0]
        cell = _INSTALL.read_text(encoding="utf-8").rstrip()
        for name, value in (
            ("WHEEL", wheel.name),
            ("TORCH", pin),
            ("SITE", project.address.wheel(wheel.name)),
        ):
            cell = cell.replace(f'"{name}"', json.dumps(value))
        first.append(_code("install", cell))
    given["cells"] = first + [cell for cell in given["cells"] if cell["source"]]
    return given


def _about(project: Project, chapter: Chapter, about: Mapping[str, Any]) -> str:
    book = project.config.get("title") or "a book"
    site = project.address.site
    page = f"[{chapter.title}]({site}/{chapter.doc}.html)" if site else f"“{chapter.title}”"
    return (
        f"This notebook is the chapter {page} of *{book}*, "
        f"executed on torch {about['torch']} on {about['date'][:10]}. Its outputs are plain text "
        "until you run it: *Run → Run All Cells* draws the figures, and shows the code and the "
        "numbers of your own PyTorch."
    )


def _places(project: Project) -> dict[tuple[str, str], str]:
    """Return the address of every page, label and term, nothing if the site's is not known."""
    site = project.address.site
    if not site:
        return {}
    places = {("doc", doc): f"{site}/{doc}.html" for doc in project.docs}
    for doc in project.docs:
        text = (project.root / f"{doc}.md").read_text(encoding="utf-8")
        for found in TARGET.finditer(text):
            places["ref", found["label"]] = f"{site}/{doc}.html#{found['label']}"
    return places


def headings(text: str) -> dict[str, str]:
    """Return the headings of a chapter that have a label, as JupyterLab addresses them."""
    found = re.findall(r"^\(([\w-]+)\)=\s*\n#+ +(.+)$", text, re.MULTILINE)
    return {label: f"#{re.sub('[`*]', '', title).strip().replace(' ', '-')}"
            for label, title in found}  # fmt: skip


def _finder(doc: str, places: Mapping[tuple[str, str], str], own: Mapping[str, str]) -> Place:
    def find(role: str, target: str) -> str:
        if role == "doc":
            start = "" if target.startswith("/") else posixpath.dirname(doc)
            target = posixpath.normpath(posixpath.join(start, target.lstrip("/")))
        here = own.get(target, "") if role == "ref" else ""
        return here or places.get((role, target), "")

    return find


def _markdown(name: str, text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def _code(name: str, text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": text,
    }
