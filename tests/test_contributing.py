"""The guide for those who add to the book: its example is a whole chapter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from built_site import ROOT
from tiny_book import TinyBook

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_what_it_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for verb in set(re.findall(r"make ([a-z-]+)", GUIDE)):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE), verb
    for path in re.findall(r"`((?:notebooks|book|miniatures)/[\w./-]*)`", GUIDE):
        assert path == "notebooks/sorting.md" or (ROOT / path).exists(), path


@pytest.mark.slow
def test_its_example_is_built(tmp_path: Path) -> None:
    chapter, line = re.findall(r"^(`{3,4})(?:markdown|yaml)\n(.*?)^\1$", GUIDE, re.M | re.S)
    book = TinyBook(tmp_path)
    book.chapter(line[1].strip().removeprefix("- file: "), "").write_text(chapter[1])
    status, said = book.build("--any-torch")
    assert status == 0, said
    page = (tmp_path / "_build/html/notebooks/sorting.html").read_text(encoding="utf-8")
    assert "it-held" in page and "aten::sort" in page
