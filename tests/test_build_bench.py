"""The bench: the book it generates, and how it reckons."""

from __future__ import annotations

from pathlib import Path

from insidetorch.book.project import Chapter, open_project
from insidetorch.commands import bench


def test_the_generated_book_is_a_book_and_differs_by_chapter(tmp_path: Path) -> None:
    bench.generate(tmp_path / "book", 12)
    project = open_project(tmp_path / "book")
    chapters = [page for page in project.pages(project.limits()) if isinstance(page, Chapter)]
    assert len(chapters) == 12
    assert len({chapter.code_cells[0]["source"] for chapter in chapters}) == 12
    assert all("import torch" in chapter.code_cells[0]["source"] for chapter in chapters)


def test_ratios_compare_medians_with_this_build() -> None:
    def steps(*seconds: float) -> dict[str, list[float]]:
        return {step: list(seconds) for step in bench.STEPS}

    times = {bench.OURS: steps(1.0, 2.0, 9.0), bench.FORCE: steps(4.0), bench.CACHE: steps(1.0)}
    result = bench.Bench("x", 3, times)
    assert result.ratio(bench.FORCE, "cold") == 2.0
    (entry,) = bench.as_json([result])["sets"]
    assert entry["ratios"][bench.CACHE]["no change"] == 0.5
    assert entry["seconds"] == times
