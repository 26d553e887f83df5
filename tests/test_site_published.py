"""The book as it is published: built with the address of its site, which adds pages and tags."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from built_site import DOCUMENTS, ROOT

# Rendered once more, whole; a small book with this one's settings is at each change (test_readers).
pytestmark = [pytest.mark.site, pytest.mark.slow, pytest.mark.weekly]
pytestmark += [pytest.mark.usefixtures("site")]

ADDRESS = "https://o.example/r"
PARTS = ["book", "data", "insidetorch", "miniatures", "notebooks", "recordings"]
FILES = ["_config.yml", "_toc.yml", "constraints.txt", "pyproject.toml"]
FILES += ["requirements.txt", "README.md", "LICENSE"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built elsewhere from the outputs that the build here kept."""
    root = tmp_path_factory.mktemp("book")
    for name in PARTS:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy2(ROOT / name, root)
    shutil.copytree(ROOT / "_build/cache", root / "_build/cache")
    shutil.copy2(ROOT / "_build/ledger.json", root / "_build")
    done = subprocess.run(
        [sys.executable, "-m", "insidetorch", "build"],
        cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "BOOK_ADDRESS": ADDRESS, "GITHUB_REPOSITORY": "o/r",
             "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 executed" in done.stdout
    return root / "_build/html"


def top(path: Path) -> BeautifulSoup:
    """Return a page down to its first text: the whole of one takes seconds to parse."""
    return BeautifulSoup(path.read_text(encoding="utf-8").partition("<p>")[0], "html.parser")


def here(site: Path, address: str) -> Path:
    """Return the file that an address of the site leads to."""
    assert address.startswith(f"{ADDRESS}/"), address
    return site / address.removeprefix(f"{ADDRESS}/").partition("#")[0]


def test_every_page_says_where_it_lives_and_has_a_card_and_ways_on(published: Path) -> None:
    for doc in DOCUMENTS:
        page = top(published / f"{doc}.html")
        assert page.find("link", rel="canonical")["href"] == f"{ADDRESS}/{doc}.html"
        tags = {tag["property"]: tag["content"] for tag in page.find_all("meta", property=True)}
        assert tags["og:site_name"] == "Inside PyTorch"
        assert here(published, tags["og:image"]).read_bytes().startswith(b"\x89PNG")
        assert here(published, page.find("link", rel="alternate")["href"]).is_file()
        if doc.startswith("notebooks/"):
            ways = {a.get_text(): a["href"] for a in page.select(".it-stamp a")}
            name = doc.removeprefix("notebooks/")
            assert ways["Open in Colab"].endswith(f"/o/r/blob/notebooks/{name}.ipynb")
            assert {"Source", "Suggest an edit", "Discuss"} <= ways.keys()


def test_the_map_of_the_site_lists_every_page(published: Path) -> None:
    listed = {one.text for one in xml.parse(published / "sitemap.xml").iter() if one.text}
    assert {f"{ADDRESS}/{doc}.html" for doc in DOCUMENTS} <= listed


def test_each_entry_of_the_feed_leads_to_its_place(published: Path) -> None:
    feed = xml.parse(published / "changes.xml").getroot()
    atom = {"a": "http://www.w3.org/2005/Atom"}
    assert feed.findtext("a:title", namespaces=atom) == "What changed in Inside PyTorch"
    places = [entry.find("a:link", atom) for entry in feed.findall("a:entry", atom)]
    assert places
    for place in places:
        assert place is not None
        target = place.get("href", "")
        page = here(published, target).read_text(encoding="utf-8")
        assert f'id="{target.partition("#")[2]}"' in page


def test_a_lost_reader_sees_a_page_of_the_book_from_any_depth(published: Path) -> None:
    page = top(published / "404.html")
    found = [tag["href"] for tag in page.find_all("link", rel="stylesheet")]
    found += [tag["src"] for tag in page.find_all("script", src=True)]
    assert found
    for address in found:
        assert address.startswith("/r/"), address
        assert (published / address.removeprefix("/r/").partition("?")[0]).stat().st_size > 100
