"""What edits of the book itself execute, over all its modules and data."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from test_reach import ROOT

from insidetorch.book import cache_key as key
from insidetorch.book import syntax
from insidetorch.book.modules import read_file
from insidetorch.book.project import Chapter, open_project
from insidetorch.book.reach import ALWAYS, Node, Reach

# ── The book itself ─────────────────────────────────────────────────────────────────────────────


@cache
def chapters() -> tuple[Chapter, ...]:
    project = open_project(ROOT)
    return tuple(page for page in project.pages(project.limits()) if isinstance(page, Chapter))


class Book:
    """What the chapters of the real book reach, with some files edited in memory."""

    def __init__(self, edits: Mapping[Path, bytes] | None = None) -> None:
        edits = edits or {}
        folders = {chapter.path.parent for chapter in chapters()}
        self.reaches = {
            folder: Reach(ROOT, folder, read=lambda path: edits.get(path) or read_file(path))
            for folder in folders
        }
        self.chapters = {
            chapter.doc: self.reaches[chapter.path.parent].of(
                [cell["source"] for cell in chapter.code_cells]
            )
            for chapter in chapters()
        }

    def differ(self, other: Book) -> list[str]:
        """Return the chapters that are executed again when this book becomes the other."""
        return [d for d in self.chapters if self.chapters[d].parts != other.chapters[d].parts]

    def users(self, module: str, name: str) -> list[str]:
        """Return the chapters that a definition belongs to; one of on-import code, to all of it."""
        syntax = next(iter(self.reaches.values())).module(module).syntax
        kind, chain = ("def", (name,)) if name in syntax.pieces else ("load", ())
        return [d for d, one in self.chapters.items() if Node(kind, module, chain) in one.nodes]


@pytest.fixture(scope="module")
def book() -> Book:
    return Book()


def module_files() -> list[Path]:
    return [path for top in ("insidetorch", "miniatures") for path in (ROOT / top).rglob("*.py")]


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def restyled(text: str) -> str:
    """Return a module with another layout, other docstrings, no comments but a new one."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0].value = ast.Constant("Something else.")
    return f"# A comment.\n\n{ast.unparse(tree)}\n"


@pytest.mark.slow
def test_comments_docstrings_and_layout_of_every_module_execute_nothing(book: Book) -> None:
    edited = {path: restyled(path.read_text()).encode() for path in module_files()}
    assert len(edited) > 150
    after = Book(edited)
    for doc, before in book.chapters.items():
        shown = {node for node in before.nodes if node.kind == "text"}
        assert before.nodes == after.chapters[doc].nodes
        changed = {
            name
            for name, digest in before.parts.items()
            if after.chapters[doc].parts[name] != digest
        }
        assert changed <= {dotted_file(node.where) for node in shown}
    # Of the modules that are shown, nothing but what is shown.
    for folder, reach in book.reaches.items():
        for doc, one in book.chapters.items():
            if (ROOT / doc).parent == folder:
                for node in one.nodes:
                    if node.kind in {"load", "def", "bind", "home"}:
                        assert reach.digest(node) == after.reaches[folder].digest(node), node


def dotted_file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


@pytest.mark.slow
def test_a_comment_in_a_module_that_all_chapters_use_executes_none(book: Book) -> None:
    path = ROOT / "insidetorch/display.py"
    assert len(book.users("insidetorch.display", "show")) > 10
    assert book.differ(Book({path: path.read_bytes() + b"\n# More words.\n"})) == []


def functions(path: Path) -> list[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)]


def with_edited(path: Path, name: str) -> dict[Path, bytes]:
    """Return an edit of the body of a top-level definition."""
    tree = ast.parse(path.read_text())
    (node, *_) = (n for n in tree.body if getattr(n, "name", None) == name)
    node.body.append(ast.Pass())
    return {path: ast.unparse(tree).encode()}


@pytest.mark.slow
def test_an_edit_of_what_one_chapter_uses_executes_that_one(book: Book) -> None:
    ours = [path for path in module_files() if not book_text(book, path)]
    single = [
        (path, name, users)
        for path in ours
        for name in functions(path)
        if len(users := book.users(dotted(path), name)) == 1
    ]
    toolkit = [one for one in single if "insidetorch" in one[0].parts]
    assert len(single) > 100 and toolkit
    for path, name, users in (single[0], toolkit[-1], single[-1]):
        assert book.differ(Book(with_edited(path, name))) == users


@pytest.mark.slow
def test_a_new_private_name_in_a_subject_executes_nobody(book: Book) -> None:
    path = ROOT / "insidetorch/private/engine.py"
    users = book.users("insidetorch.private.engine", "will_execute")
    assert users and len(book.users("insidetorch.private", "__getattr__")) > len(users)
    text = path.read_text()
    added = (
        '\n_ADDED = Name("torch._C._added")\n\n\ndef added() -> object:\n    return _ADDED.get()\n'
    )
    assert book.differ(Book({path: (text + added).encode()})) == []
    # One that is used counts for its users, and for nobody else.
    moved = text.replace('"torch._C._will_engine_execute_node"', '"torch._C._moved"')
    assert moved != text
    assert book.differ(Book({path: moved.encode()})) == users


def book_text(book: Book, path: Path) -> bool:
    """Tell whether some chapter shows the text of a module's definitions."""
    module = dotted(path)
    return any(
        n.kind == "text" and n.where == module for o in book.chapters.values() for n in o.nodes
    )


@pytest.mark.slow
def test_an_edit_of_data_executes_exactly_its_readers(book: Book) -> None:
    data = {
        Path(node.where): {d for d, o in book.chapters.items() if node in o.nodes}
        for one in book.chapters.values()
        for node in one.nodes
        if node.kind == "data"
    }
    readers = {path.name: docs for path, docs in data.items()}
    assert readers["kernels_compiled.json"] == {"notebooks/gpu-performance"}
    assert readers["recorded_steps.json.xz"] == {"notebooks/one-call"}
    for path, docs in data.items():
        assert set(book.differ(Book({path: path.read_bytes() + b" "}))) == docs


def test_what_every_chapter_reaches_is_there(book: Book) -> None:
    reach = next(iter(book.reaches.values()))
    for one in ALWAYS:
        module, _, name = one.partition(":")
        found = reach.module(module)
        assert found and (not name or found.syntax.defines(name))
    registered = [
        ("insidetorch.claims", "record_warnings"),
        ("insidetorch.gpu.run_or_replay", "cuda"),
    ]
    for module, name in registered:
        assert len(book.users(module, name)) == len(chapters())


@pytest.mark.slow
def test_keys_of_the_book_parse_each_module_once() -> None:
    project = open_project(ROOT)
    first = key.keys(chapters(), project)
    parsed = syntax.syntax.cache_info().misses
    again = key.keys(chapters(), project)
    assert {doc: one.text for doc, one in first.items()} == {d: o.text for d, o in again.items()}
    assert syntax.syntax.cache_info().misses == parsed
    assert len({one.text for one in first.values()}) == len(chapters())


def test_a_chapter_that_asks_for_docstrings_has_them_in_its_key() -> None:
    project = open_project(ROOT)
    (page,) = (page for page in chapters() if page.doc == "book/toolkit")
    assert key._docstrings(page, project) == "all"
    assert key._docstrings(chapters()[0], project) == ""
    notebook = json.loads(json.dumps(page.notebook))
    notebook["cells"] = [{"cell_type": "code", "source": "is_it = 'so?'", "metadata": {}}]
    assert key._docstrings(dataclasses.replace(page, notebook=notebook), project) == ""


def test_table_of_what_an_edit_executes(book: Book) -> None:
    """Print, for each module of the toolkit, how many chapters an edit of a body executes."""
    lines = []
    for path in sorted((ROOT / "insidetorch").rglob("*.py")):
        counts = [len(book.users(dotted(path), name)) for name in functions(path)]
        if counts and max(counts):
            lines.append((path.relative_to(ROOT).as_posix(), min(counts), max(counts)))
    print("\n| module | comment | body of a definition, least to most |\n|---|---|---|")
    for name, least, most in lines:
        print(f"| {name} | 0 | {least} to {most} |")
    apart = {"commands", "drift", "publish", "recorder", "site"}
    assert {Path(name).parts[1] for name, *_ in lines}.isdisjoint(apart)
