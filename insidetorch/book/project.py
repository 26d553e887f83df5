"""The book as files: its folders, its table of contents, its limits, its chapters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from insidetorch.book.address import Address, address
from insidetorch.book.parsed import parse
from insidetorch.errors import BookError

Parse = Callable[[str, str], dict[str, Any]]
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}|:{3,})\{code-cell\}", re.MULTILINE)
_HEADER = "`kernelspec: {name: python3}` and `jupytext: {text_representation: {format_name: myst}}`"


@dataclass(frozen=True)
class Limits:
    """How long a chapter may take, in seconds."""

    cell: float
    chapter: float


@dataclass(frozen=True)
class Page:
    """A page of prose: nothing in it is executed."""

    doc: str
    path: Path
    text: str


@dataclass(frozen=True)
class Chapter(Page):
    """A page that is a notebook.

    :param notebook: the parsed notebook, nbformat 4 JSON, without outputs.
    :param lines: for each cell, the line of the file where it starts, from 1.
    :param limits: the time limits, the front matter's or else the book's.
    """

    notebook: dict[str, Any]
    lines: tuple[int, ...]
    limits: Limits

    @property
    def title(self) -> str:
        """The first heading, or the document's name."""
        return heading(self.text) or self.doc

    @property
    def code_cells(self) -> list[dict[str, Any]]:
        """The code cells, in order."""
        return [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]

    @property
    def code_lines(self) -> list[int]:
        """The line of the file where each code cell starts, from 1."""
        cells = zip(self.notebook["cells"], self.lines, strict=True)
        return [line for cell, line in cells if cell["cell_type"] == "code"]


@dataclass(frozen=True)
class Project:
    """The folders of one book; everything the build writes is below `build`."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "_build"

    @property
    def cache(self) -> Path:
        return self.build / "cache"

    @property
    def usual_seconds(self) -> Path:
        """The file that says how long each chapter took when its anchors were last accepted."""
        return self.root / "data" / "seconds.json"

    @property
    def stage(self) -> Path:
        return self.build / "stage"

    @property
    def html(self) -> Path:
        return self.build / "html"

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of ``_config.yml``."""
        return _mapping(self.root / "_config.yml", self.root)

    @cached_property
    def address(self) -> Address:
        """Where the book lives on the web, as far as that is known."""
        return address(self.root, self.config)

    @cached_property
    def docs(self) -> tuple[str, ...]:
        """The documents of ``_toc.yml`` in reading order, without suffix."""
        toc = _mapping(self.root / "_toc.yml", self.root)
        if not isinstance(toc.get("root"), str):
            raise BookError(
                f"{self.root / '_toc.yml'} has no `root:`; name the book's first page there."
            )
        return tuple(dict.fromkeys(re.sub(r"\.md$", "", name) for name in _files(toc)))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The table ``[tool.insidetorch]`` of ``pyproject.toml``; empty if there is none."""
        path = self.root / "pyproject.toml"
        if not path.is_file():
            return {}
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise BookError(f"{path} is not valid TOML ({error}); mend it.") from None
        return dict(table.get("tool", {}).get("insidetorch", {}))

    def limits(self, cell: float | None = None, chapter: float | None = None) -> Limits:
        """Return the book's time limits; arguments win over ``pyproject.toml``."""
        return Limits(
            _seconds(self.settings.get("cell-seconds", 120) if cell is None else cell, self.root),
            _seconds(
                self.settings.get("chapter-seconds", 900) if chapter is None else chapter, self.root
            ),
        )

    def pages(self, limits: Limits, parse: Parse = parse) -> list[Page]:
        """Read every document of the table of contents.

        :param parse: returns a chapter's text as notebook JSON.
        :raises BookError: a document is missing or cannot be read.
        """
        return [self._page(doc, limits, parse) for doc in self.docs]

    def _page(self, doc: str, limits: Limits, parse: Parse) -> Page:
        path = self.root / f"{doc}.md"
        if not path.is_file():
            if (self.root / f"{doc}.ipynb").is_file() or doc.endswith(".ipynb"):
                raise BookError(
                    f"_toc.yml lists {doc!r}, which is an .ipynb; chapters are MyST Markdown: "
                    f"convert it with `jupytext --to md:myst {doc}.ipynb`."
                )
            raise BookError(
                f"_toc.yml lists {doc!r}, but {path} does not exist; "
                "add the file or remove the line."
            )
        text = path.read_text(encoding="utf-8")
        front = front_matter(text, path)
        is_myst = (
            _dig(front, "jupytext", "text_representation", "format_name") == "myst"
            and _dig(front, "kernelspec", "name") is not None
        )
        if is_myst:
            return _chapter(doc, path, text, front, limits, parse)
        if "kernelspec" in front or "jupytext" in front or _CODE_FENCE.search(text):
            raise BookError(
                f"{path} has code cells but not the header of a chapter; "
                f"start its front matter with {_HEADER}."
            )
        return Page(doc, path, text)


def open_project(root: Path) -> Project:
    """Return the book in the folder `root`.

    :raises BookError: there is no book there.
    """
    root = root.resolve()
    for name in ("_config.yml", "_toc.yml"):
        if not (root / name).is_file():
            raise BookError(f"{root} holds no book: {name} is missing; run in the book's folder.")
    return Project(root)


def front_matter(text: str, path: Path) -> dict[str, Any]:
    """Return the YAML block that opens a Markdown file; empty if there is none.

    :raises BookError: the block is not a YAML mapping.
    """
    found = _FRONT.match(text)
    return _load(found[1], path, first_line=2) if found else {}


def heading(text: str) -> str:
    """Return the first top-level heading of a Markdown text, or an empty string."""
    body = _FRONT.sub("", text)
    body = re.sub(r"^(`{3,}|~{3,}|:{3,}).*?^\1[ \t]*$", "", body, flags=re.DOTALL | re.MULTILINE)
    found = re.search(r"^# +(.+?)\s*#*$", body, re.MULTILINE)
    return found[1] if found else ""


def _chapter(
    doc: str, path: Path, text: str, front: dict[str, Any], limits: Limits, parse: Parse
) -> Chapter:
    notebook = parse(doc, text)
    lines = tuple(line + 1 for line in notebook["metadata"]["source_map"])
    # jupytext draws the cells' ids by lot; a staged page must only change when its text does.
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] != "code":
            continue
        where = f"{path}:{lines[number]}"
        if "skip-execution" in (cell["metadata"].get("tags") or ()):
            raise BookError(
                f"{where}: the cell is tagged skip-execution, and every cell of this book is "
                "executed; make it a plain code block or let it run."
            )
        if not cell["source"].strip():
            raise BookError(f"{where}: the code cell is empty; remove it.")
    own = front.get("insidetorch") or {}
    if not isinstance(own, dict):
        raise BookError(
            f"{path}: `insidetorch:` in the front matter must be a mapping, such as "
            "`insidetorch: {cell-seconds: 60}`."
        )
    limits = Limits(
        _seconds(own.get("cell-seconds", limits.cell), path),
        _seconds(own.get("chapter-seconds", limits.chapter), path),
    )
    return Chapter(doc, path, text, notebook, lines, limits)


def _mapping(path: Path, root: Path) -> dict[str, Any]:
    return _load(path.read_text(encoding="utf-8"), path, first_line=1)


def _load(text: str, path: Path, first_line: int) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + first_line}" if mark else str(path)
        problem = getattr(error, "problem", None) or _one_line(error)
        raise BookError(f"{where} is not valid YAML ({problem}); mend it.") from None
    if not isinstance(value, dict):
        raise BookError(f"{path} must hold a YAML mapping (`key: value` lines); mend it.")
    return value


def _files(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file") and isinstance(value, str):
                yield value
            else:
                yield from _files(value)
    elif isinstance(node, list):
        for value in node:
            yield from _files(value)


def _dig(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _seconds(value: object, where: Path) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise BookError(f"{where}: a time limit of {value!r} is no positive number of seconds.")
    return float(value)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
