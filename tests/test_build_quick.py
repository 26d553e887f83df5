"""An author's loop: an edit costs what it changes, and the site is as if all were made anew."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny_book import TinyBook, toolkit

from insidetorch.files import states
from insidetorch.publish.on_change import wait

pytestmark = pytest.mark.slow

CONFIG = """\
title: A tiny book
author: A test
only_build_toc_files: true
parse: {myst_enable_extensions: [colon_fence], myst_update_mathjax: false}
sphinx:
  extra_extensions: [insidetorch.site]
  config: {html_theme_options: {navbar_persistent: []}}
"""
TEXTS = {
    "one": "(place)=\n## A place\n\nWords below it.\n",
    "two": "It refers to {ref}`place`.\n",
    "three": "It refers to nothing.\n",
}


@dataclass(frozen=True)
class Work:
    """What a build did: the pages it read, wrote and gave to the published site anew."""

    read: set[str]
    written: set[str]
    copied: set[str]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> TinyBook:
    book = TinyBook(tmp_path_factory.mktemp("quick") / "book")
    (book.root / "_config.yml").write_text(CONFIG)
    for name, text in TEXTS.items():
        book.chapter(name, f"# Chapter {name}\n\n```{{code-cell}} ipython3\n1 + 1\n```\n\n{text}")
    (book.root / "colophon.md").write_text("# The colophon\n\n```{colophon}\n```\n")
    book.docs.append("colophon")
    book._contents()
    build(book)
    return book


def build(book: TinyBook) -> Work:
    """Build, and tell by the times and numbers of files what was done."""
    folder = book.root / "_build"
    kinds = {
        "read": (folder / "render/_build/.doctrees", "*.doctree", "st_mtime_ns"),
        "written": (folder / "render/_build/html", "*.html", "st_mtime_ns"),
        "copied": (folder / "html", "*.html", "st_ino"),
    }

    def states(kind: str) -> dict[str, int]:
        at, pattern, what = kinds[kind]
        return {path.stem: getattr(path.stat(), what) for path in at.glob(pattern)}

    before = {kind: states(kind) for kind in kinds}
    # A file that is kept keeps its number in any case: its place is taken while it is there.
    if (folder / "html").is_dir():
        shutil.copytree(folder / "html", folder / "held", copy_function=os.link)
    status, said = book.build("--any-torch")
    shutil.rmtree(folder / "held", ignore_errors=True)
    assert status == 0, said
    done = {
        kind: {n for n, state in states(kind).items() if before[kind].get(n) != state}
        for kind in kinds
    }
    return Work(**done)


def edit(book: TinyBook, name: str, old: str, new: str) -> None:
    path = book.root / f"{name}.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_without_an_edit_nothing_is_done(book: TinyBook) -> None:
    build(book)
    assert build(book) == Work(set(), set(), set())


def test_a_prose_edit_reads_one_page_and_writes_what_shows_it(book: TinyBook) -> None:
    build(book)
    edit(book, "three", "nothing", "nothing at all")
    work = build(book)
    assert work.read == {"three"}
    # Sphinx writes the page with the table of contents again; it comes out as it was.
    assert work.written - {"search", "genindex"} <= {"three", "colophon", "index"}
    assert work.copied == {"three", "colophon"}, "the colophon says when the site was built"


def test_a_new_heading_is_shown_where_it_is_referred_to(book: TinyBook) -> None:
    build(book)
    edit(book, "one", "## A place", "## Another place")
    work = build(book)
    assert work.read == {"one"}
    assert "two" in work.written and "three" not in work.written
    assert "Another place" in (book.root / "_build/html/two.html").read_text()


def test_a_label_that_is_gone_is_missed_until_it_is_there(book: TinyBook) -> None:
    build(book)
    edit(book, "one", "(place)=\n", "")
    for _ in range(2):
        status, said = book.build("--any-torch")
        assert status == 1 and "two.md" in said and "place" in said
    edit(book, "one", "## A", "(place)=\n## A")
    work = build(book)
    assert work.read == {"one", "two"} and "three" not in work.written


def test_an_executed_chapter_reaches_the_generated_pages(book: TinyBook) -> None:
    build(book)
    edit(book, "one", "1 + 1", "1 + 2")
    work = build(book)
    assert work.read == {"one"}
    assert {"one", "colophon"} <= work.copied
    assert not {"two", "three"} & work.written
    build(book)


def test_after_edits_the_site_is_the_one_of_a_cold_build(book: TinyBook) -> None:
    edit(book, "two", "It refers", "It often refers")
    build(book)
    edit(book, "one", "Words below", "Words of *all* kinds, and a `name`, below")
    edit(book, "three", "It refers", ":::{warning}\nIt may change.\n:::\n\nIt refers")
    build(book)
    site = book.root / "_build" / "html"
    kept = content(site)
    for path in (book.root / "_build").iterdir():
        if path.name != "cache":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (book.root / "_build" / "cache").iterdir():
        if path.name != "executed":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    build(book)
    cold = content(site)
    assert kept.keys() == cold.keys()
    assert [name for name in cold if cold[name] != kept[name]] == []


def content(site: Path) -> dict[str, bytes]:
    """Return the files of a site, without the moment at which it was built."""
    return {
        path.relative_to(site).as_posix(): re.sub(
            rb'<time datetime="[^"]*">[^<]*</time>', b"", path.read_bytes()
        )
        for path in sorted(site.rglob("*"))
        if path.is_file()
    }


def test_an_edit_is_awaited_until_it_lasts(tmp_path: Path) -> None:
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/made").write_text("")
    (tmp_path / "kept.md").write_text("")
    before = states(tmp_path)
    assert list(before) == [str(tmp_path / "kept.md")]
    looks = iter([{**before, "swap": (1, 1)}, before, before, {"new.md": (1, 1)}] * 1)
    last = {"new.md": (1, 1)}
    changed = wait(lambda: next(looks, last), before, seconds=0)
    assert changed == sorted([str(tmp_path / "kept.md"), "new.md"])


def test_watching_builds_after_each_edit_and_says_what_is_wrong(tmp_path: Path) -> None:
    book = TinyBook(tmp_path / "book")
    book.cells("one", "1 + 1")
    log = tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            book.command("--any-torch", "--watch"), cwd=book.root, stdout=file, stderr=file,
            env={**os.environ, "PYTHONPATH": str(toolkit()), "COLUMNS": "400"},
        )  # fmt: skip

    def builds(number: int) -> str:
        end = time.monotonic() + 120
        while log.read_text().count("Waiting for an edit") < number:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        return log.read_text()

    try:
        assert "1 executed" in builds(1)
        path = book.root / "one.md"
        text = path.read_text()
        path.write_text("---\na: [\n---\n")
        assert "one.md changed" in builds(2) and "is not valid YAML" in builds(2)
        path.write_text(f"{text}\nMore words.\n")
        assert "0 executed, 1 from the cache" in builds(3)
        assert "More words." in (book.root / "_build/html/one.html").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
