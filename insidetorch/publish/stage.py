"""The source tree that Sphinx reads: prose as it is, chapters with their outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import yaml

from insidetorch.book.project import Chapter, Page, Project
from insidetorch.files import digest, write_changed
from insidetorch.publish.kept import Made
from insidetorch.publish.notebook_forms import for_site, retarget


def stage(
    project: Project,
    pages: Sequence[Page],
    notebooks: Mapping[str, Mapping[str, Any]],
    sources: Mapping[str, str],
    left_out: Mapping[str, Mapping[str, Sequence[str]]],
) -> bool:
    """Bring the stage up to date: write what changed, remove what is gone.

    :param notebooks: document → notebook with its outputs, for every chapter.
    :param sources: document → digest of what its notebook is made from, and of the code that
        makes it.
    :param left_out: document → claim → the releases of which its cell does not say it.
    :return: whether anything changed.
    """
    changed = False
    wanted = dict(_files(project, pages, notebooks, left_out))
    made, every = Made(project.cache / "staged.json"), sorted(notebooks)
    for name, content in wanted.items():
        path = project.stage / name
        if path.is_dir():
            raise IsADirectoryError(path)
        if isinstance(content, bytes):
            changed |= write_changed(path, content)
            continue
        doc = name.removesuffix(".ipynb")
        source = digest(sources[doc], every, left_out.get(doc))
        if not made.same(name, source, path):
            changed |= write_changed(path, content())
        made.note(name, source, path)
    made.keep()
    for path in sorted(project.stage.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(project.stage).as_posix() not in wanted:
            path.unlink()
            changed = True
    return changed


def _files(
    project: Project,
    pages: Sequence[Page],
    notebooks: Mapping[str, Mapping[str, Any]],
    left_out: Mapping[str, Mapping[str, Sequence[str]]],
) -> Iterator[tuple[str, bytes | Callable[[], bytes]]]:
    chapters = {page.doc for page in pages if isinstance(page, Chapter)}
    for name in sorted(_assets(project, pages)):
        yield name, (project.root / name).read_bytes()
    for page in pages:
        if isinstance(page, Chapter):
            beside = left_out.get(page.doc, {})
            shown = partial(_shown, notebooks[page.doc], page.doc, chapters, beside)
            yield f"{page.doc}.ipynb", shown
        else:
            yield f"{page.doc}.md", retarget(page.text, page.doc, chapters).encode()
    yield "_toc.yml", (project.root / "_toc.yml").read_bytes()
    text = yaml.safe_dump(_config(project), allow_unicode=True, sort_keys=False)
    yield "_config.yml", text.encode()


def _shown(
    notebook: Mapping[str, Any],
    doc: str,
    chapters: Collection[str],
    left_out: Mapping[str, Sequence[str]],
) -> bytes:
    shown = for_site(notebook, doc, chapters, left_out)
    return json.dumps(shown, ensure_ascii=False, sort_keys=True).encode()


def _config(project: Project) -> dict[str, Any]:
    """Return the configuration: nothing is executed, and the extensions know where the book lives.

    What needs the address of the site (a map of it, cards for those who share a page) is there
    only if that is known.
    """
    config = {**project.config, "execute": {"execute_notebooks": "off"}}
    sphinx = dict(config.get("sphinx") or {})
    extensions = list(sphinx.get("extra_extensions") or ())
    settings = {**(sphinx.get("config") or {})}
    if "insidetorch.site" in extensions:
        settings["insidetorch_address"] = asdict(project.address)
    site = project.address.site
    if site:
        extensions += ["sphinx_sitemap", "sphinxext.opengraph", "notfound.extension"]
        config["html"] = {**(config.get("html") or {}), "baseurl": f"{site}/"}
        settings |= {
            "sitemap_url_scheme": "{link}",
            "sitemap_show_lastmod": False,
            "ogp_site_url": f"{site}/",
            "ogp_site_name": config.get("title") or "",
            "ogp_image": "_static/card.png",
            "notfound_urls_prefix": f"{urlsplit(site).path}/",
        }
    config["sphinx"] = {**sphinx, "extra_extensions": extensions, "config": settings}
    return config


def _assets(project: Project, pages: Sequence[Page]) -> set[str]:
    """Return the files beside the pages: pictures, bibliographies, static files, included text."""
    folders = {PurePosixPath(page.doc).parts[0] for page in pages if "/" in page.doc}
    named = [project.config.get("logo"), (project.config.get("html") or {}).get("favicon")]
    paths = [project.root / str(name) for name in named if name]
    paths += project.root.glob("*.bib")
    for folder in {*folders, "_static", "_templates"}:
        paths += (project.root / folder).rglob("*")
    own = {page.path for page in pages}
    return {
        path.relative_to(project.root).as_posix()
        for path in paths
        if path.is_file() and path not in own and not _hidden(path.relative_to(project.root))
    }


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
