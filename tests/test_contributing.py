"""The guide for those who add to the book: its example is a whole chapter."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from built_site import ROOT
from tiny_book import TinyBook

from insidetorch import private
from insidetorch.private.name import NAMES

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_what_it_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for verb in set(re.findall(r"make ([a-z-]+)", GUIDE)):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE), verb
    for path in re.findall(
        r"`((?:notebooks|book|miniatures|insidetorch|data|recordings)/[\w./-]*)`", GUIDE
    ):
        assert "sorting" in path or (ROOT / path).exists(), path


def test_its_picture_is_drawn_from_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    floors = import_module("floors")
    assert f"```mermaid\n{floors.picture()}```\n" in GUIDE, "run: python scripts/floors.py"
    ways = {("a", "b"), ("b", "c"), ("a", "c")}
    assert floors.told_once(ways) == {("a", "b"), ("b", "c")}


def test_a_chapter_adds_its_private_names_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = re.search(r"^```python\n(.*?)^```$", GUIDE, re.M | re.S)
    assert name is not None
    (tmp_path / "sorting.py").write_text(name[1])
    known = private.names()
    monkeypatch.setattr(private, "__path__", [*private.__path__, str(tmp_path)])
    monkeypatch.setattr(private, "_subjects", cache(private._subjects.__wrapped__))
    monkeypatch.setattr("insidetorch.private.name.NAMES", list(NAMES))
    assert private.sort_signature().startswith("sort")
    assert len(private.names()) == len(known) + 1 and private.missing() == []


@pytest.mark.slow
def test_its_example_is_built(tmp_path: Path) -> None:
    chapter, line = re.findall(r"^(`{3,4})(?:markdown|yaml)\n(.*?)^\1$", GUIDE, re.M | re.S)
    book = TinyBook(tmp_path)
    book.chapter(line[1].strip().removeprefix("- file: "), "").write_text(chapter[1])
    status, said = book.build("--any-torch")
    assert status == 0, said
    page = (tmp_path / "_build/html/notebooks/sorting.html").read_text(encoding="utf-8")
    assert "it-held" in page and "aten::sort" in page
