"""From a rendered site to the published one: completed, checked, then swapped in whole."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from insidetorch.book.project import Chapter, Page, Project
from insidetorch.files import digest
from insidetorch.publish import shrink as lean_module
from insidetorch.publish.downloads import Download, packed
from insidetorch.publish.kept import Kept, code
from insidetorch.publish.shrink import OPTIONS, lean
from insidetorch.publish.viewer import PLACE as VIEWER
from insidetorch.show import traces as traces_module
from insidetorch.show.traces import link_viewer

FRESH, CACHED = "fresh", "cached"
_MARKER = re.compile(r'(<span class="it-freshness" data-doc="([^"]+)">)[^<]*(</span>)')
_REDIRECTION = re.compile(r'<meta http-equiv="Refresh" content="0; url=([^"]+)" ?/>')
_SAID = re.compile(
    r'<title>.*?</title>|<meta (?:name="description"|property="og:)[^>]*>', re.DOTALL
)
_MAIN = re.compile(r"<article\b.*?</article>", re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def assemble(
    project: Project,
    rendered: Path,
    downloads: Mapping[str, Download],
    fresh: Iterable[str],
    wheel: Path | None,
    traces: Mapping[str, bytes],
    viewer: Path | None,
) -> Kept:
    """Make the new site beside the published one; what would be made again is taken from that.

    :param downloads: chapter → notebook as readers get it.
    :param fresh: the chapters executed in this build.
    :param wheel: the toolkit's wheel, or None if the book has none.
    :param traces: path below the site → trace of a profile.
    :param viewer: the folder of the viewer of traces, or None if there is none.
    """
    new = project.build / "html.new"
    shutil.rmtree(new, ignore_errors=True)
    kept = Kept(project.html, new, project.build / "published.json")
    fresh = frozenset(fresh)
    digests = {path: digest(path.read_bytes()) for path in _files(rendered)}
    made_lean = lean(rendered, digests, project.cache / "lean")
    made_by = code([__file__, lean_module.__file__, traces_module.__file__])
    options = digests.get(rendered / "_static" / OPTIONS)
    place = VIEWER if viewer else None
    notebooks = {f"_sources/{doc}.ipynb": notebook for doc, notebook in downloads.items()}

    def page(path: Path) -> bytes:
        text = made_lean.page(path) if path in made_lean.bundles else path.read_text("utf-8")
        doc = path.relative_to(rendered).with_suffix("").as_posix()
        if doc in downloads:
            text = link_viewer(fill_markers(text, fresh), place)
        return (_whole_entrance(text, rendered) if doc == "index" else text).encode()

    for path, content in digests.items():
        name = path.relative_to(rendered).as_posix()
        if path in made_lean.sheets or name in notebooks:
            continue
        if path.suffix == ".html":
            bundle = made_lean.bundles.get(path)
            is_fresh = name.removesuffix(".html") in fresh
            first = name == "index.html" and digests.get(rendered / _goal(path.read_text("utf-8")))
            about = (name, bundle and bundle.name, options, place, is_fresh, first)
            kept.put(name, digest(made_by, content, about), partial(page, path))
        else:
            kept.put(name, content, path.read_bytes)
    for name, notebook in notebooks.items():
        kept.put(name, notebook.source, partial(_indented, notebook))
        doc = name.removeprefix("_sources/").removesuffix(".ipynb")
        source = digest(notebook.source, wheel and wheel.read_bytes())
        kept.put(f"_sources/{doc}.zip", source, partial(_archive, doc, notebook, wheel))
    others = {Path("_static") / path.name: path for path in made_lean.files}
    if wheel is not None:
        others[Path("_static") / wheel.name] = wheel
    if traces and viewer is not None:
        others |= {Path(VIEWER) / path.relative_to(viewer): path for path in _files(viewer)}
    for target, path in others.items():
        kept.put(target.as_posix(), digest(path.read_bytes()), path.read_bytes)
    for name, trace in traces.items():
        kept.put(name, digest(trace), trace)
    return kept


def _archive(doc: str, notebook: Download, wheel: Path | None) -> bytes:
    return packed(doc, _indented(notebook), wheel)


@lru_cache(maxsize=1)  # a notebook is put twice, alone and in its archive
def _indented(notebook: Download) -> bytes:
    return json.dumps(notebook.make(), indent=1, ensure_ascii=False).encode()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _goal(text: str) -> str:
    """Return where a bare redirection leads; "" if the page is none."""
    found = _REDIRECTION.fullmatch(text.strip())
    return found[1] if found else ""


def _whole_entrance(text: str, site: Path) -> str:
    """Make a whole page of the bare redirection that Jupyter Book puts at the site's root.

    :param site: the rendered site, whose first page says what the book is.
    """
    first = _goal(text)
    if not first or not (site / first).is_file():
        return text
    head = (site / first).read_text(encoding="utf-8").partition("</head>")[0]
    said = "\n".join(_SAID.findall(head))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{said}\n'
        f"{text.strip()}</head>\n"
        f'<body><p><a href="{first}">To the book</a></p></body>\n</html>\n'
    )


def fill_markers(html: str, fresh: Iterable[str]) -> str:
    """Return `html` whose freshness markers say whether this build executed the chapter."""
    executed = frozenset(fresh)
    return _MARKER.sub(
        lambda found: f"{found[1]}{FRESH if found[2] in executed else CACHED}{found[3]}", html
    )


def lacking(site: Path, pages: Iterable[Page], made: Collection[str]) -> list[str]:
    """Return what is wrong with a site: pages that are missing or have nothing to read.

    :param made: the files that are not the published ones; those were looked at before.
    """
    problems = []
    for page in pages:
        path = site / f"{page.doc}.html"
        if not path.is_file():
            problems.append(f"{page.doc} is in _toc.yml but has no page in the site")
            continue
        if f"{page.doc}.html" not in made:
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
