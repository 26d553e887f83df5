"""The bench: the book it generates, and how it reckons."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from insidetorch.book.project import Chapter, open_project

SCRIPT = Path(__file__).parent.parent / "scripts" / "bench.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_generated_book_is_a_book_and_differs_by_chapter(
    bench: ModuleType, tmp_path: Path
) -> None:
    bench.generate(tmp_path / "book", 12)
    project = open_project(tmp_path / "book")
    chapters = [page for page in project.pages(project.limits()) if isinstance(page, Chapter)]
    assert len(chapters) == 12
    assert len({chapter.code_cells[0]["source"] for chapter in chapters}) == 12
    assert all("import torch" in chapter.code_cells[0]["source"] for chapter in chapters)


def test_an_edit_changes_the_first_chapter_alone(bench: ModuleType, tmp_path: Path) -> None:
    bench.generate(tmp_path / "book", 2)
    before = {path: path.read_text() for path in (tmp_path / "book/notebooks").iterdir()}
    bench.edit(tmp_path / "book", "no change")
    assert before == {path: path.read_text() for path in before}
    bench.edit(tmp_path / "book", "cell edit")
    changed = [path.name for path in before if path.read_text() != before[path]]
    assert changed == ["chapter00.md"] and "2 + 2" in min(before).read_text()


def test_ratios_compare_medians_with_this_build(bench: ModuleType) -> None:
    def steps(*seconds: float) -> dict[str, list[object]]:
        return {step: [bench.Spent(s, 2 * s) for s in seconds] for step in bench.STEPS}

    times = {bench.OURS: steps(1.0, 2.0, 9.0), bench.FORCE: steps(4.0), bench.CACHE: steps(1.0)}
    assert bench.ratio(times, bench.FORCE, "cold") == 2.0
    assert bench.ratio(times, bench.CACHE, "no change") == 0.5
    assert "4.0 | 8.0 (2.0 ×)" in bench.table("x", times)
    figures = bench.as_json({"x": times})["books"]["x"][bench.CACHE]["cold"]
    assert figures == [{"wall": 1.0, "work": 2.0}]
