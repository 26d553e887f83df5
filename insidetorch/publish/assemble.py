"""From a rendered site to the published one: completed, checked, then swapped in whole."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from insidetorch.book.project import Chapter, Page, Project
from insidetorch.publish.shrink import lean
from insidetorch.publish.viewer import PLACE as VIEWER
from insidetorch.show.traces import link_viewer

FRESH, CACHED = "fresh", "cached"
_MARKER = re.compile(r'(<span class="it-freshness" data-doc="([^"]+)">)[^<]*(</span>)')
_REDIRECTION = re.compile(r'<meta http-equiv="Refresh" content="0; url=([^"]+)" ?/>')
_MAIN = re.compile(r"<article\b.*?</article>", re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def assemble(
    project: Project,
    rendered: Path,
    downloads: Mapping[str, Mapping[str, Any]],
    fresh: Iterable[str],
    wheel: Path | None,
    traces: Mapping[str, bytes],
    viewer: Path | None,
) -> Path:
    """Make the new site beside the published one and return its folder.

    :param downloads: chapter → notebook as readers get it.
    :param fresh: the chapters executed in this build.
    :param wheel: the toolkit's wheel, or None if the book has none.
    :param traces: path below the site → trace of a profile.
    :param viewer: the folder of the viewer of traces, or None if there is none.
    """
    new = project.build / "html.new"
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(rendered, new)
    for doc, notebook in downloads.items():
        path = new / "_sources" / f"{doc}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")
    if wheel is not None:
        (new / "_static").mkdir(exist_ok=True)
        shutil.copy2(wheel, new / "_static" / wheel.name)
    for name, content in traces.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_bytes(content)
    lean(new)
    if traces and viewer is not None:
        shutil.copytree(viewer, new / VIEWER, dirs_exist_ok=True)
    _complete_entrance(new / "index.html")
    fresh = frozenset(fresh)
    for doc in downloads:
        page = new / f"{doc}.html"
        if page.is_file():
            text = page.read_text(encoding="utf-8")
            filled = link_viewer(fill_markers(text, fresh), VIEWER if viewer else None)
            if filled != text:
                page.write_text(filled, encoding="utf-8")
    return new


def _complete_entrance(path: Path) -> None:
    """Make a whole page of the bare redirection that Jupyter Book puts at the site's root."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = _REDIRECTION.fullmatch(text.strip())
    if found:
        path.write_text(
            f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
            f"<title>To the book</title>\n{text.strip()}</head>\n"
            f'<body><p>The book starts <a href="{found[1]}">here</a>.</p></body>\n</html>\n',
            encoding="utf-8",
        )


def fill_markers(html: str, fresh: Iterable[str]) -> str:
    """Return `html` whose freshness markers say whether this build executed the chapter."""
    executed = frozenset(fresh)
    return _MARKER.sub(
        lambda found: f"{found[1]}{FRESH if found[2] in executed else CACHED}{found[3]}", html
    )


def lacking(site: Path, pages: Iterable[Page]) -> list[str]:
    """Return what is wrong with a site: pages that are missing or have nothing to read."""
    problems = []
    for page in pages:
        path = site / f"{page.doc}.html"
        if not path.is_file():
            problems.append(f"{page.doc} is in _toc.yml but has no page in the site")
            continue
        html = path.read_text(encoding="utf-8")
        if not visible_text(html):
            problems.append(f"{page.doc}: the page has nothing to read; write it or leave it out")
        elif isinstance(page, Chapter) and "cell_input" not in html and "cell_output" not in html:
            problems.append(f"{page.doc}: the page of a chapter shows no cell")
    if not (site / "index.html").is_file():
        problems.append("the site has no index.html")
    return problems


def visible_text(html: str) -> str:
    """Return the words of a page's article, without what surrounds it."""
    found = _MAIN.search(html)
    return " ".join(_TAG.sub(" ", found[0]).split()).strip("# ") if found else ""


def swap(project: Project, new: Path) -> None:
    """Put the new site in the place of the published one."""
    old = project.build / "html.old"
    shutil.rmtree(old, ignore_errors=True)
    if project.html.exists():
        project.html.rename(old)
    new.rename(project.html)
    shutil.rmtree(old, ignore_errors=True)


def recover(project: Project) -> None:
    """Bring the published site back if a build was killed in the middle of `swap`."""
    old = project.build / "html.old"
    if old.is_dir() and not project.html.exists():
        old.rename(project.html)
