"""Tests of what tells readers that the book changed: the page, its feed, pages that moved."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml
from functools import partial
from pathlib import Path

import pytest
import yaml
from built_site import DOCUMENTS, ROOT
from tiny_site import Build, build_site

from insidetorch.errors import BookError
from insidetorch.site import changes

ENTRY = """
- {date: 2026-01-02, torch: 2.5.0, title: One more chapter, text: 'On `add`.', pages: [one]}
"""
OLDER = "- {date: 2025-01-02, torch: 2.4.0, title: It begins, text: The first., pages: [one]}\n"
HISTORY = [
    {"schema": 1, "releases": ["2.4.0", "2.5.0", "2.6.0"], "pinned": "2.5.0"},
    {"chapter": "one", "kind": "excerpt", "target": "torch.f",
     "spans": [["2.4.0", "aa", "f.py"], ["2.6.0", "bb", "f.py"]]},
    {"chapter": "one", "kind": "excerpt", "target": "torch.g", "spans": [["2.4.0", "cc", "f.py"]]},
]  # fmt: skip
CONF = """
extensions = ["myst_parser", "sphinx_reredirects", "insidetorch.site"]
html_math_renderer = "mathml"
html_theme = "basic"
html_title, author = "A book", "Some & others"
redirects = {"old/first": "/one.html"}
redirect_html_template_file = "book/moved.html"
"""
AT = "\ninsidetorch_address = {'repository': '', 'site': 'https://o.example/r'}\n"
FILES = {
    "conf.py": CONF,
    "index.md": "# A book\n\n```{toctree}\none\nbook/changes\n```\n",
    "one.md": "# One\n\nText.\n",
    "data/anchors.lock": "",
    "data/drift/history.jsonl": "".join(json.dumps(line) + "\n" for line in HISTORY),
    "book/changes.md": "# What changed\n\n```{changes}\n```\n",
    "book/changes.yml": OLDER + ENTRY,
    "book/moved.html": (ROOT / "book/_templates/moved.html").read_text(encoding="utf-8"),
}


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return what builds a small site: with changed files, to its warnings and its pages."""
    return partial(build_site, tmp_path, FILES)


def test_changes_stand_below_their_release_and_releases_say_what_they_moved(build: Build) -> None:
    said, pages = build()
    assert said == []
    sections = pages["changes"].find_all("section", recursive=True)
    by_title = {part.h2.get_text(): part for part in sections if part.h2 and not part.section}
    assert list(by_title) == ["PyTorch 2.6.0", "PyTorch 2.5.0", "PyTorch 2.4.0"]
    assert "the 2 pieces of code and names that the book rests on, 1 read" in " ".join(
        by_title["PyTorch 2.6.0"].get_text().split()
    )
    mine = by_title["PyTorch 2.5.0"]
    assert mine.h3.get_text() == "One more chapter" and mine.code.get_text() == "add"
    assert mine.time["datetime"] == "2026-01-02"
    assert [a["href"] for a in mine.find_all("a")] == ["../one.html"]
    assert "executed" in by_title["PyTorch 2.4.0"].get_text()


def test_the_page_follows_the_data_it_is_made_from(build: Build) -> None:
    build()
    said, pages = build(**{"data/drift/history.jsonl": json.dumps(HISTORY[0]) + "\n"})
    assert said == []
    assert "the 0 pieces of code" in " ".join(pages["changes"].get_text().split())


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("data/drift/history.jsonl", "nothing\n", "history.jsonl cannot be read"),
        ("book/changes.yml", "- 1\n", "changes.yml, line 1: entry 1 must be a mapping"),
    ],
)
def test_data_that_cannot_be_read_is_said_where_it_is_shown(
    build: Build, name: str, text: str, problem: str
) -> None:
    said, pages = build(**{name: text})
    (warning,) = said
    assert "changes.md: WARNING: " in warning and problem in warning
    assert pages["changes"].h1 is not None


def test_only_a_site_with_an_address_has_a_feed(build: Build, tmp_path: Path) -> None:
    _, pages = build()
    assert not (tmp_path / "_build/changes.xml").exists()
    assert pages["changes"].find("link", rel="alternate") is None
    _, pages = build(**{"conf.py": CONF + AT})
    assert pages["one"].find("link", rel="alternate")["href"] == "https://o.example/r/changes.xml"
    assert pages["changes"].find("a", href="../changes.xml") is not None
    feed = xml.parse(tmp_path / "_build/changes.xml").getroot()
    atom = {"a": "http://www.w3.org/2005/Atom"}
    assert feed.findtext("a:author/a:name", namespaces=atom) == "Some & others"
    assert feed.findtext("a:updated", namespaces=atom) == "2026-01-02T00:00:00Z"
    entries = feed.findall("a:entry", atom)
    assert [e.findtext("a:title", namespaces=atom) for e in entries] == [
        "One more chapter", "It begins",
    ]  # fmt: skip
    address, _, anchor = (entries[0].findtext("a:id", namespaces=atom) or "").partition("#")
    assert address == "https://o.example/r/book/changes.html"
    assert pages["changes"].find(id=anchor) is not None
    content = entries[0].findtext("a:content", namespaces=atom) or ""
    assert "<code>add</code>" in content and 'href="https://o.example/r/one.html"' in content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {date: 2026-01-02}", "entry 1 lacks 'torch'"),
        (ENTRY.replace("2026-01-02", "soon"), "'date' must be a date, not a text"),
        (ENTRY.replace("2.5.0", "2.5"), "'torch' must be a text, not a number"),
        (ENTRY.replace("[one]", "[one, two]"), "'One more chapter' names two, which is no page"),
        ("date: 2026-01-02", "must be a list"),
    ],
)
def test_a_malformed_entry_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "changes.yml"
    path.write_text(text)
    with pytest.raises(BookError, match=message):
        changes.read_changes(path, {"one": "One"})


def test_the_book_s_own_entries_are_well_formed() -> None:
    assert changes.read_changes(ROOT / changes.FILE, dict.fromkeys(DOCUMENTS, ""))


def test_a_page_that_moved_leads_to_its_new_place(build: Build, tmp_path: Path) -> None:
    said, pages = build()
    assert said == []
    page = pages["first"]
    target = page.find("a")["href"]
    assert (tmp_path / "_build/old" / target).resolve() == tmp_path / "_build/one.html"
    assert (
        page.title is not None
        and target in page.find("meta", attrs={"http-equiv": True})["content"]
    )
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
    assert (ROOT / config["redirect_html_template_file"]).is_file()
    for old, new in config["redirects"].items():
        assert old not in DOCUMENTS and new.removesuffix(".html").lstrip("/") in DOCUMENTS
