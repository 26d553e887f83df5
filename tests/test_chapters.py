"""What every chapter owes its reader, read from its file without running it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import msgspec
import pytest

import insidetorch
from insidetorch.publish.two_layers import parts
from insidetorch.site.glossary import read_glossary

ROOT = Path(__file__).parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("*.md"))
GLOSSARY = ROOT / "book" / "glossary.yml"
OVERVIEW = ROOT / "notebooks" / "ten-minutes.md"
LINES, COLUMNS = 20, 84
SHOWN = {
    name
    for name, value in ((name, getattr(insidetorch, name)) for name in insidetorch.__all__)
    if getattr(value, "__annotations__", {}).get("return") in ("Display", "Stack", "Timeline")
}
"""What the toolkit returns to be shown."""


@cache
def read(chapter: Path) -> Any:
    """Return a chapter as a notebook, which no test changes."""
    return jupytext.read(chapter)


def cells(chapter: Path, kind: str) -> list[dict]:
    return [cell for cell in read(chapter).cells if cell.cell_type == kind]


def code_of(cell: dict) -> str:
    """Return the cell's Python, without a magic line at its top."""
    return re.sub(r"\A%%.*\n", "", cell.source)


@cache
def called(chapter: Path) -> list[tuple[str, ast.expr]]:
    """Return each call of a plain name in a chapter: the name and its first argument."""
    return [
        (node.func.id, node.args[0])
        for cell in cells(chapter, "code")
        for node in ast.walk(ast.parse(code_of(cell)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args
    ]


def calls(chapter: Path, name: str) -> list[str]:
    """Return the first arguments of the calls of `name` in a chapter, constants by their value."""
    return [
        first.value if isinstance(first, ast.Constant) else ast.unparse(first)
        for one, first in called(chapter)
        if one == name
    ]


@cache
def entries(name: str) -> list[dict]:
    """Return the entries of a list of the book, which no test changes."""
    return msgspec.yaml.decode((ROOT / "book" / f"{name}.yml").read_bytes())


every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@every_chapter
def test_it_is_in_the_table_of_contents(chapter: Path) -> None:
    assert f"notebooks/{chapter.stem}" in (ROOT / "_toc.yml").read_text(encoding="utf-8")


@every_chapter
def test_it_stores_no_outputs_and_opens_as_a_notebook(chapter: Path) -> None:
    notebook = read(chapter)
    assert notebook.metadata["jupytext"]["text_representation"]["format_name"] == "myst"
    assert not any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")


@every_chapter
def test_its_cells_fit_the_page(chapter: Path) -> None:
    for number, cell in enumerate(cells(chapter, "code"), start=1):
        lines = cell.source.splitlines()
        hidden = "hide-cell" in cell.metadata.get("tags", [])
        seen = "\n".join(part.text for part in parts(cell.source) if part.layer != "setup")
        count = len(seen.splitlines())
        assert hidden or count <= LINES, f"cell {number} has {count} lines beside its imports"
        wide = [line for line in lines if len(line) > COLUMNS]
        assert not wide, f"cell {number} is wider than the column: {wide}"


@every_chapter
def test_nothing_that_is_made_to_be_shown_is_lost(chapter: Path) -> None:
    assert {"table", "source", "figure", "graph", "timeline"} <= SHOWN
    for number, cell in enumerate(cells(chapter, "code"), start=1):
        for node in ast.parse(code_of(cell)).body[:-1]:
            made = node.value if isinstance(node, ast.Expr) else None
            lost = isinstance(made, ast.Call) and getattr(made.func, "id", "") in SHOWN
            assert not lost, f"cell {number} makes what it does not show: {ast.unparse(node)[:60]}"


@every_chapter
def test_it_reaches_private_names_through_the_toolkit_alone(chapter: Path) -> None:
    for number, cell in enumerate(cells(chapter, "code"), start=1):
        for node in ast.walk(ast.parse(code_of(cell))):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch."):
                parts = ast.unparse(node).split(".")
                private = [p for p in parts if p.startswith("_") and not p.startswith("__")]
                assert not private, f"cell {number} uses {ast.unparse(node)}"


@every_chapter
def test_the_text_of_a_link_says_where_it_leads(chapter: Path) -> None:
    text = "\n".join(cell.source for cell in cells(chapter, "markdown"))
    assert re.findall(r"\[(?:more|here|this|it|link|click here|read more)\]\(.*?\)", text) == []


@pytest.mark.parametrize(
    "chapter", [path for path in CHAPTERS if path != OVERVIEW], ids=lambda path: path.stem
)
def test_it_has_the_rooms_and_their_contents(chapter: Path) -> None:
    text = "\n".join(cell.source for cell in cells(chapter, "markdown"))
    rooms = [
        "The short answer", "The walk", "Build it small", "Measure it", "Settled", "Exercises",
        "Where next",
    ]  # fmt: skip
    places = [text.find(f"\n## {room}") for room in rooms]
    assert -1 not in places and places == sorted(places), dict(zip(rooms, places, strict=True))
    assert len(calls(chapter, "claim")) >= 12
    assert len(calls(chapter, "verdict")) >= 5
    exercises = text[places[5] : places[6]]
    assert len(re.findall(r"^### ", exercises, re.MULTILINE)) >= 3


def test_the_overview_has_its_rooms_and_leads_to_every_chapter() -> None:
    text = "\n".join(cell.source for cell in cells(OVERVIEW, "markdown"))
    rooms = ["The short answer", "The walk", "What to do", "Exercises", "Where next"]
    places = [text.find(f"\n## {room}") for room in rooms]
    assert -1 not in places and places == sorted(places), dict(zip(rooms, places, strict=True))
    walk = text[places[1] : places[2]]
    sections = re.split(r"^### ", walk, flags=re.MULTILINE)[1:]
    assert all("> **Takeaway.**" in section for section in sections)
    assert all("\nIn full: " in section for section in sections)
    for chapter in CHAPTERS:
        if chapter != OVERVIEW:
            assert f"<{chapter.stem}>`" in text or f"{{doc}}`{chapter.stem}`" in text, chapter.stem


def test_the_overview_has_the_words_that_short_answers_use() -> None:
    term = re.compile(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`")
    entries = msgspec.yaml.decode((ROOT / "book" / "glossary.yml").read_bytes())
    named = {
        form.replace("`", "").lower(): entry["term"]
        for entry in entries
        for form in (entry["term"], *entry.get("also", ()))
    }
    there = {named[word.lower()] for word in term.findall(OVERVIEW.read_text(encoding="utf-8"))}
    for chapter in CHAPTERS:
        text = chapter.read_text(encoding="utf-8")
        start = text.index("## The short answer")
        used = {
            named[word.lower()]
            for word in term.findall(text[start : text.find("\n## ", start + 1)])
        }
        assert used <= there, f"{chapter.stem}: say {used - there} in the table ten-words too"


@every_chapter
def test_its_cuda_cells_have_names_of_their_own(chapter: Path) -> None:
    lines = [c.source.splitlines()[0] for c in cells(chapter, "code") if c.source[:2] == "%%"]
    names = [line.split()[1] for line in lines if line.startswith("%%cuda ")]
    assert len(names) == len(set(names)) == len(lines)


def test_each_verdict_is_settled_by_one_cell_of_its_chapter() -> None:
    pages = [*CHAPTERS, *(p for p in (ROOT / "book").glob("*.md") if "code-cell" in p.read_text())]
    given = [(f"{p.parent.name}/{p.stem}", id) for p in pages for id in calls(p, "verdict")]
    assert sorted(given) == sorted((entry["chapter"], entry["id"]) for entry in entries("verdicts"))


def test_each_question_is_answered_where_it_says() -> None:
    pages = {entry["chapter"] for entry in entries("questions")}
    texts = {page: (ROOT / f"{page}.md").read_text(encoding="utf-8") for page in pages}
    for entry in entries("questions"):
        assert f"({entry['anchor']})=" in texts[entry["chapter"]], entry["question"]


@every_chapter
def test_what_the_list_of_silent_errors_names_begins_a_claim(chapter: Path) -> None:
    doc = f"notebooks/{chapter.stem}"
    seen = [entry["seen"] for entry in entries("silent") if entry["chapter"] == doc]
    told = [*calls(chapter, "claim"), *calls(chapter, "verdict")]
    # Of an f-string only its beginning is known here.
    heads = [text[2:].split("{")[0] for text in told if re.match(r"f['\"]", text)]
    lost = [text for text in seen if not any(one.startswith(text) for one in told)]
    assert [text for text in lost if not any(text.startswith(head) for head in heads)] == []


@every_chapter
def test_its_terms_have_an_entry_in_the_glossary(chapter: Path) -> None:
    known = {name.casefold() for entry in read_glossary(GLOSSARY) for name in entry.names}
    text = " ".join(cell.source for cell in cells(chapter, "markdown"))
    used = re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", text)
    assert {" ".join(one.split()).casefold() for one in used} - known == set()
