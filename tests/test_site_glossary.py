"""Tests of the glossary: its file, its page, the links to it and back."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from tiny_site import Build, build_site

from insidetorch.errors import BookError
from insidetorch.site import glossary

ROOT = Path(__file__).parent.parent
LEAF = "- {term: leaf, also: [leaf tensor], says: 'A tensor, with `.grad`.', shown: a-leaf}\n"
TASK = '- {term: "`GraphTask`", says: One pass., shown: a-leaf}\n'
CHAPTER = """# Leaves

Here a {term}`leaf tensor` and {term}`leaves <leaf>` are used.

(a-leaf)=
## Where they grow

And here is {term}`GraphTask`.
"""
OTHER = "# Other\n\n## Inside\n\nA {term}`Leaf` again.\n"
CONF = """
extensions = ["myst_parser", "insidetorch.site"]
html_math_renderer = "mathml"
html_theme = "basic"
nitpicky = True
"""
FILES = {
    "conf.py": CONF,
    "index.md": "# A book\n\n```{toctree}\nother\nchapter\nbook/glossary\n```\n",
    "book/glossary.md": "# Glossary\n\n```{book-glossary}\n```\n",
    "book/glossary.yml": TASK + LEAF,
    "chapter.md": CHAPTER,
    "other.md": OTHER,
}


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return what builds a small site: with changed files, to its warnings and its pages."""
    return partial(build_site, tmp_path, FILES)


def item(page: BeautifulSoup, anchor: str) -> BeautifulSoup:
    """Return the definition that belongs to a term."""
    found = page.find("dt", id=anchor)
    assert found is not None
    return found.find_next_sibling("dd")


def hrefs(soup: BeautifulSoup) -> list[str]:
    return [a["href"] for a in soup.select(".it-seen a")]


def test_terms_link_to_their_entries_and_entries_back(build: Build) -> None:
    said, pages = build()
    assert said == []
    uses = pages["chapter"].select("a:has(.std-term)")
    assert [use["href"] for use in uses] == [
        "book/glossary.html#term-leaf-tensor",
        "book/glossary.html#term-leaf",
        "book/glossary.html#term-GraphTask",
    ]
    assert uses[2].find("code").get_text() == "GraphTask"
    leaf = item(pages["glossary"], "term-leaf")
    assert leaf.find("code").get_text() == ".grad"
    assert hrefs(leaf) == [
        "../chapter.html#a-leaf",
        "../other.html#inside",
        "../chapter.html#leaves",
    ]
    assert "Shown in Leaves, Where they grow. Used in Other, Leaves." in leaf.get_text()
    task = item(pages["glossary"], "term-GraphTask")
    assert hrefs(task) == ["../chapter.html#a-leaf", "../chapter.html#where-they-grow"]


def test_the_page_is_sorted_by_letter(build: Build) -> None:
    _, pages = build()
    letters = [a["href"] for a in pages["glossary"].select("nav.it-letters a")]
    assert letters == ["#glossary-g", "#glossary-l"]
    assert all(pages["glossary"].find(id=letter[1:]).name == "section" for letter in letters)
    names = [dt.get_text() for dt in pages["glossary"].select("dl.it-glossary dt")]
    assert names == ["GraphTask", "leaf", "leaf tensor"]


def test_a_new_use_shows_without_touching_the_glossary(build: Build) -> None:
    build()
    said, pages = build(**{"other.md": OTHER.replace("{term}`Leaf`", "{term}`GraphTask`")})
    assert said == []
    assert "../other.html#inside" not in hrefs(item(pages["glossary"], "term-leaf"))
    assert "../other.html#inside" in hrefs(item(pages["glossary"], "term-GraphTask"))


@pytest.mark.parametrize(
    ("glossary_yml", "message"),
    [
        (
            LEAF + TASK.replace("a-leaf", "a-loaf"),
            "'`GraphTask`' is shown at 'a-loaf', which is no",
        ),
        (LEAF + TASK + LEAF.replace("leaf,", "Leaf Tensor,", 1), "is a form of 'leaf' and of"),
        (LEAF + TASK.replace("says: One pass., ", ""), "entry 2 (`GraphTask`) lacks 'says'"),
    ],
    ids=["no such label", "a term twice", "no meaning"],
)
def test_a_bad_entry_is_said_in_one_sentence(build: Build, glossary_yml: str, message: str) -> None:
    said, _ = build(**{"book/glossary.yml": glossary_yml})
    ours = [line for line in said if "glossary.yml" in line]
    assert len(ours) == 1
    assert message in ours[0]


def test_an_unknown_term_in_a_chapter_is_said(build: Build) -> None:
    said, _ = build(**{"other.md": OTHER.replace("Leaf", "laef")})
    assert len(said) == 1
    assert "laef" in said[0]
    assert "other.md" in said[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- [leaf", "cannot be read"),
        ("leaf: a tensor", "must be a list"),
        ("- leaf", "line 1: entry 1 must be a mapping, not a text"),
        (LEAF.replace(", shown: a-leaf", ""), r"line 1: entry 1 \(leaf\) lacks 'shown'"),
        (LEAF.replace("shown", "show"), r"entry 1 \(leaf\) has 'show', which means nothing"),
        (LEAF.replace("}", ", see: x}"), r"entry 1 \(leaf\) has 'see'"),
        (LEAF.replace("[leaf tensor]", "leaf tensor"), "'also' must be a list"),
        (LEAF + LEAF, "'leaf' is a form of 'leaf' and of 'leaf'"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "glossary.yml"
    path.write_text(text)
    with pytest.raises(BookError, match=r"^glossary\.yml.*" + message):
        glossary.read_glossary(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"glossary\.yml cannot be read"):
        glossary.read_glossary(tmp_path / "glossary.yml")


def test_terms_are_sorted_by_their_letters() -> None:
    terms = ["weights_only", "`_foreach`", "Zebra", "`.grad`", "2-norm"]
    assert sorted(terms, key=glossary.sort_key) == [
        "2-norm", "`_foreach`", "`.grad`", "weights_only", "Zebra",
    ]  # fmt: skip
    assert [glossary.letter(term) for term in terms] == ["W", "F", "Z", "G", "0–9"]


def test_the_links_below_a_term_are_escaped() -> None:
    html = glossary.links(('"><a', "<b>"), [("x", "<i>")])
    assert "<b>" not in html
    assert "<i>" not in html
    assert glossary.links(None, []) == ""


def test_every_term_of_the_book_is_shown_where_it_says() -> None:
    """Without a build: the labels are in the files."""
    texts = [*(ROOT / "notebooks").glob("*.md"), *(ROOT / "book").glob("*.md")]
    labels = {
        label
        for path in texts
        for label in re.findall(r"^\(([^)\n]+)\)=$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    entries = glossary.read_glossary(ROOT / "book" / "glossary.yml")
    assert [entry.term for entry in entries if entry.shown not in labels] == []


def test_every_term_that_a_page_uses_is_in_the_glossary() -> None:
    """Without a build: the uses are in the files."""
    entries = glossary.read_glossary(ROOT / "book" / "glossary.yml")
    known = {name.lower() for entry in entries for name in entry.names}
    unknown = [
        f"{path.name}: {name}"
        for path in [*(ROOT / "notebooks").glob("*.md"), *(ROOT / "book").glob("*.md")]
        for use in re.findall(r"\{term\}`([^`]+)`", path.read_text(encoding="utf-8"))
        if (name := re.sub(r".*<(.*)>", r"\1", " ".join(use.split()), flags=re.DOTALL)).lower()
        not in known
    ]
    assert unknown == []
