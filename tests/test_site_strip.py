"""The strip at the top of a chapter: the program, with what the chapter opens marked and named."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_site import Build, build_site

from insidetorch.errors import BookError
from insidetorch.site.strip import read_strip, to_write

ROOT = Path(__file__).parent.parent
CONF = """
extensions = ["myst_parser", "insidetorch.site"]
html_math_renderer = "mathml"
html_theme = "basic"
"""
PROGRAM = "program: |\n  a = f(b)\n  c = a < 1\nabout: notebooks/ten\nchapters:\n"
ENTRY = "  notebooks/one: {opens: [a <, f(b)], says: what `f` is.}\n"
FILES = {
    "conf.py": CONF,
    "index.md": "# A book\n\n```{toctree}\nnotebooks/ten\nnotebooks/one\nnotebooks/two\n```\n",
    "notebooks/ten.md": "# Ten\n\nText.\n",
    "notebooks/one.md": "# One\n\n*Why?*\n",
    "notebooks/two.md": "# Two\n\nText.\n",
    "book/strip.yml": PROGRAM + ENTRY,
}


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return what builds a small site: with changed files, to its warnings and its pages."""
    return partial(build_site, tmp_path, FILES)


def test_what_a_chapter_opens_is_marked_and_named(build: Build) -> None:
    said, pages = build()
    assert said == []
    (strip,) = pages["one"].select("figure.it-strip")
    assert [line.get_text() for line in strip.select("pre span")] == ["a = f(b)\n", "c = a < 1\n"]
    assert [one.get_text() for one in strip.select("pre mark")] == ["f(b)", "a <"]
    caption, above = strip.figcaption, strip.find_previous_sibling()
    assert caption is not None and caption.a is not None and above is not None
    assert caption.get_text() == "Of the book’s five lines this chapter opens a <, f(b): what f is."
    assert caption.a["href"] == "ten.html"
    assert above["class"] == ["it", "it-stamp"]


def test_a_document_without_an_entry_and_a_book_without_the_file_have_none(build: Build) -> None:
    _, pages = build()
    assert not pages["two"].select(".it-strip") and not pages["index"].select(".it-strip")


def test_a_book_without_the_file_has_no_strip(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "book/strip.yml"}
    said, pages = build_site(tmp_path, files)
    assert said == [] and not any(page.select(".it-strip") for page in pages.values())


def test_pages_follow_the_file(build: Build) -> None:
    build()
    said, pages = build(**{"book/strip.yml": PROGRAM + ENTRY.replace("/one", "/two")})
    assert said == []
    assert pages["two"].select(".it-strip") and not pages["one"].select(".it-strip")


def test_an_edit_writes_the_pages_whose_strip_it_changes(tmp_path: Path) -> None:
    env: Any = SimpleNamespace(found_docs={f"notebooks/{name}" for name in ("ten", "one", "two")})
    app: Any = SimpleNamespace(srcdir=str(tmp_path))
    (tmp_path / "book").mkdir()

    def written(text: str) -> list[str]:
        (tmp_path / "book/strip.yml").write_text(text)
        return sorted(to_write(app, env))

    both = ENTRY + ENTRY.replace("/one", "/two")
    assert written(PROGRAM + both) == ["notebooks/one", "notebooks/two"]
    assert written(PROGRAM + both) == []
    assert written(PROGRAM + both.replace("what", "how", 1)) == ["notebooks/one"]
    assert written(PROGRAM.replace("1", "2") + ENTRY) == ["notebooks/one", "notebooks/two"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("  notebooks/one: {opens: [g(b)], says: x}\n", "notebooks/one opens 'g(b)'; give parts"),
        ("  notebooks/one: {opens: [a], says: x}\n", "notebooks/one opens 'a'; give parts"),
        (
            "  notebooks/one: {opens: [f(b), (b)], says: x}\n",
            "notebooks/one opens '(b)'; give parts",
        ),
        ("  notebooks/one: {opens: [], says: x}\n", "must be"),
        ("  notebooks/one: {opens: [f(b)]}\n", "lacks 'says'"),
        ("  notebooks/one: 1\n", "must be a mapping"),
        ("  notebooks/no: {opens: [f(b)], says: x}\n", "names 'notebooks/no', which is no docu"),
    ],
)
def test_a_mistake_is_told_in_one_sentence_and_the_book_is_built(
    build: Build, entry: str, problem: str
) -> None:
    said, pages = build(**{"book/strip.yml": PROGRAM + entry})
    assert len(said) == 1 and problem in said[0] and "strip.yml" in said[0]
    assert pages["one"].h1 is not None and not pages["one"].select(".it-strip")


def test_a_part_lies_within_a_line(tmp_path: Path) -> None:
    path = tmp_path / "strip.yml"
    path.write_text(PROGRAM + '  notebooks/one: {opens: ["f(b)\\nc"], says: x}\n')
    with pytest.raises(BookError, match="each within a line"):
        read_strip(path)


def test_each_chapter_of_the_book_opens_something_but_the_one_that_has_all() -> None:
    strip = read_strip(ROOT / "book/strip.yml")
    chapters = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.md")}
    assert strip.about in chapters
    assert set(strip.chapters) <= chapters - {strip.about}
