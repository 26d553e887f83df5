"""The source tree that Sphinx reads: prose as it is, chapters with their outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from insidetorch.build.cache import write_changed
from insidetorch.build.notebooks import for_site, retarget
from insidetorch.build.project import Chapter, Page, Project


def stage(
    project: Project, pages: Sequence[Page], notebooks: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Bring the stage up to date: write what changed, remove what is gone.

    :param notebooks: document → notebook with its outputs, for every chapter.
    :return: whether anything changed.
    """
    changed = False
    wanted = dict(_files(project, pages, notebooks))
    for name, content in wanted.items():
        path = project.stage / name
        if path.is_dir():
            raise IsADirectoryError(path)
        changed |= write_changed(path, content)
    for path in sorted(project.stage.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(project.stage).as_posix() not in wanted:
            path.unlink()
            changed = True
    return changed


def _files(
    project: Project, pages: Sequence[Page], notebooks: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, bytes]]:
    chapters = {page.doc for page in pages if isinstance(page, Chapter)}
    for name in sorted(_assets(project, pages)):
        yield name, (project.root / name).read_bytes()
    for page in pages:
        if isinstance(page, Chapter):
            shown = for_site(notebooks[page.doc], page.doc, chapters)
            text = json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=True)
            yield f"{page.doc}.ipynb", text.encode()
        else:
            yield f"{page.doc}.md", retarget(page.text, page.doc, chapters).encode()
    yield "_toc.yml", (project.root / "_toc.yml").read_bytes()
    config = {**project.config, "execute": {"execute_notebooks": "off"}}
    yield "_config.yml", yaml.safe_dump(config, allow_unicode=True, sort_keys=False).encode()


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
