"""Executed drift: what two runs of a chapter say, beside each other."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from insidetorch.drift import collect, report
from insidetorch.drift import run as elsewhere
from insidetorch.drift.collect import shard
from insidetorch.drift.outcomes import (
    ChapterRun,
    Outcome,
    chapter_run,
    differences,
    quiet,
    severity,
)
from insidetorch.drift.reasons import read as read_reasons
from insidetorch.drift.run import BookRun, Result, check_shard, merge, parse, result, store, stored
from insidetorch.errors import BookError
from insidetorch.records import RECORD_MIME


def said(**record: Any) -> dict[str, Any]:
    return {
        "output_type": "display_data", "metadata": {},
        "data": {"text/plain": "", RECORD_MIME: record},
    }  # fmt: skip


def claimed(text: str, held: bool = True, **values: str) -> dict[str, Any]:
    return said(kind="claim", text=text, held=held, values=values, torch="2.13.0")


def warned(message: str, deprecation: bool = True, declared: bool = False) -> dict[str, Any]:
    return said(kind="warning", category="FutureWarning", message=message, declared=declared,
                deprecation=deprecation, origin="this cell")  # fmt: skip


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def raised(name: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": "why", "traceback": []}


def run(*cells: list[dict[str, Any]], stable: bool = False, ended: str = "") -> ChapterRun:
    tags = ["stable"] if stable else []
    notebook = {
        "cells": [
            {"cell_type": "code", "source": f"cell({n})", "metadata": {"tags": tags},
             "outputs": outputs}
            for n, outputs in enumerate(cells)
        ]
    }  # fmt: skip
    return chapter_run("notebooks/a", "A", notebook, ended)


def kinds(before: ChapterRun, now: ChapterRun) -> list[str]:
    return [outcome.kind for outcome in differences([before], [now])]


def test_a_run_like_the_pinned_one_differs_in_nothing() -> None:
    one = run([claimed("holds"), warned("old")], [printed("x")], stable=True)
    assert kinds(one, one) == []


def test_each_kind_of_difference_is_found() -> None:
    before = run([claimed("holds", n="1")], [claimed("also")], [printed("one")], stable=True)
    assert kinds(before, run([claimed("holds", held=False, n="2")], [claimed("also")],
                             [printed("one")], stable=True)) == ["failed"]  # fmt: skip
    now = run([claimed("holds")], [raised("KeyError")], [printed("two")], stable=True)
    assert kinds(before, now) == ["error", "missing", "output"]
    now = run([claimed("holds"), warned("new")], [claimed("also")],
              [printed("one"), warned("slow", deprecation=False)], stable=True)  # fmt: skip
    assert kinds(before, now) == ["deprecation", "warning"]
    guarded = run([claimed("holds")], [], [printed("one")], stable=True)
    (left_out,) = differences([before], [guarded])
    assert left_out.kind == "guarded" and left_out.text == "also" and severity("guarded") == 0
    there = Result("2.15.0", "c", "2.13.0", "3.11", "a", "2026", {"notebooks/a": ()}, (left_out,))
    patch = replace(there, torch="2.15.1")
    assert elsewhere.left_out([there, patch]) == {"notebooks/a": {"also": ("2.15", "2.15.1")}}
    told = report.report(None, "2.15.0", "2.13.0", ran=there)
    assert told.code == 0 and told.chapters() == {} and told.sentence.startswith("stands")
    (died,) = [o for o in differences([before], [run([], [], [], stable=True, ended="code cell 1: "
               "DeadKernel: it died")]) if o.kind == "error"]  # fmt: skip
    assert died.text == "code cell 1: DeadKernel: it died"


def test_what_was_seen_before_and_now_is_told() -> None:
    (failed,) = differences([run([claimed("holds", n="1", m="0")])],
                            [run([claimed("holds", held=False, n="2", m="0")])])  # fmt: skip
    assert failed.detail == "n = 1 → 2"


def test_a_failed_claim_is_no_error_besides_and_a_declared_warning_is_none() -> None:
    before = run([claimed("holds")])
    failing = [claimed("holds", held=False), raised("ClaimFailed"), warned("x", declared=True)]
    assert kinds(before, run(failing)) == ["failed"]


def test_two_claims_of_one_text_are_told_apart() -> None:
    before = run([claimed("same")], [claimed("same")])
    (outcome,) = differences([before], [run([claimed("same")], [claimed("same", held=False)])])
    assert outcome.cell == 2


def test_without_a_pinned_run_of_the_same_code_all_must_hold() -> None:
    now = run([claimed("holds")], [claimed("not", held=False)], [raised("KeyError")])
    assert [o.kind for o in differences([], [now])] == ["failed", "error"]
    other_code = replace(run([claimed("another")], [], []), code="0" * 16)
    assert [o.kind for o in differences([other_code], [now])] == ["failed", "error"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("took 12.5 ms", "took 3 ms"), ("<object at 0x7f2a>", "<object at 0x55>"),
        ("id=140234123", "id=99"), ("/a/site-packages/torch/x.py", "/b/c/site-packages/torch/x.py"),
        ("torch 2.13.0+cpu", "torch 2.15.0+cu132"), ("x  \n", "x"),
        ("No. (Triggered internally at /a/x.cpp:1.)", "No. (Triggered internally at /b/x.cpp:2.)"),
    ],
)  # fmt: skip
def test_times_addresses_ids_and_releases_are_no_difference(one: str, other: str) -> None:
    assert quiet(one) == quiet(other)


def test_numbers_that_mean_something_stay() -> None:
    assert quiet("3 nodes, 0.5") != quiet("4 nodes, 0.5")


def test_only_cells_marked_stable_are_compared() -> None:
    assert kinds(run([printed("one")]), run([printed("two")])) == []


def book_run(*chapters: ChapterRun, torch: str = "2.15.0+cpu") -> BookRun:
    return BookRun(torch, "c0ffee", "3.11.7", "a processor", "2026-11-21", chapters)


def test_runs_are_written_read_and_merged(tmp_path: Path) -> None:
    one = run([claimed("holds", n="1"), warned("w")], [raised("KeyError")], stable=True)
    written = {"schema": 1, **asdict(book_run(one))}
    assert parse(json.loads(json.dumps(written)), "run.json") == book_run(one)
    assert parse(json.dumps(written).encode(), "run.json") == book_run(one)
    two = replace(one, doc="notebooks/b")
    both = merge([book_run(one), book_run(two)])
    assert [chapter.doc for chapter in both.chapters] == ["notebooks/a", "notebooks/b"]
    with pytest.raises(BookError, match="of 2 releases"):
        merge([book_run(one), book_run(two, torch="2.14.1")])
    both = replace(both, missing=("torch._C._gone",))
    found = result(book_run(one, torch="2.13.0"), both)
    assert found.missing == ("torch._C._gone",)
    path = store(found, tmp_path)
    assert path.name == "2.15.0.json"
    assert stored(tmp_path) == [found]
    path.write_text("{}")
    with pytest.raises(BookError, match=r"2\.15\.0\.json cannot be read"):
        stored(tmp_path)


@pytest.mark.parametrize(
    "data", [[], {}, {"schema": 99}, {"schema": 1, "chapters": [{"doc": "a"}]}]
)
def test_what_is_no_run_is_refused(data: Any) -> None:
    with pytest.raises(BookError) as caught:
        parse(data, "run.json")
    assert "\n" not in str(caught.value)


def test_shards_hold_each_chapter_once() -> None:
    docs = list(range(33))
    for count in (1, 2, 4, 40):
        parts = [shard(docs, f"{n}/{count}") for n in range(1, count + 1)]
        assert sorted(doc for part in parts for doc in part) == docs
    assert shard(docs, "") == docs
    for bad in ("0/4", "5/4", "x", "1/", "1/4/4"):
        with pytest.raises(BookError, match="--shard"):
            check_shard(bad)


def test_the_report_says_how_bad_it_is_and_survives_a_round_trip() -> None:
    outcomes = differences([run([claimed("holds")])], [run([claimed("holds", held=False)])])

    def ran(release: str, *found: Outcome) -> Result:
        return Result(release, "c", "2.13.0", "3.11", "a", "2026", {"notebooks/a": ()}, found)

    broken = report.report(None, "2.15.0", "2.13.0", ran=ran("2.15.0", *outcomes))
    green = report.report(None, "2.14.1", "2.13.0", ran=ran("2.14.1"))
    assert (broken.code, green.code) == (2, 0)
    assert severity("deprecation") == 1
    assert report.from_json(json.loads(json.dumps(report.to_json(broken))), "x") == broken
    text = report.markdown([broken, green], "Drift")
    assert "- torch 2.15.0: broken: 1 failed or is gone" in text
    assert "- torch 2.14.1: stands: nothing shown, named or executed differs" in text
    assert "no longer holds: holds" in text
    static = report.Report("2.15.0", "2.13.0", ())
    (merged,) = report.together([static, broken])
    assert merged.items == () and merged.ran == broken.ran
    with pytest.raises(BookError, match="cannot be read"):
        report.from_json({"schema": 1}, "x.json")


def test_reasons_stand_beside_what_they_explain(tmp_path: Path) -> None:
    assert read_reasons(tmp_path) == []
    path = tmp_path / "reasons.yml"
    path.write_text(
        "- {release: 2.15.0, chapter: notebooks/a, about: holds, reason: It was mended there.}\n"
    )
    (reason,) = read_reasons(tmp_path)
    (outcome,) = differences([], [run([claimed("holds", held=False)])])
    assert reason.explains("2.15.0", outcome)
    assert not reason.explains("2.14.1", outcome)
    for bad in ("- release: 2.15.0\n", "text", "- [", "- {release: a, chapter: b, about: c, "
                "reason: d, more: e}\n"):  # fmt: skip
        path.write_text(bad)
        with pytest.raises(BookError, match="must be a YAML list"):
            read_reasons(tmp_path)


@pytest.mark.parametrize(
    ("code", "lacks"),
    [
        ("def missing(): print('noise'); return ['torch._C._gone']", ["torch._C._gone"]),
        ("def missing(): return []", []),
        ("def missing(): import os; os._exit(11)", None),
        ("def missing(): raise TypeError", None),
    ],
)
def test_a_run_says_which_private_names_its_release_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, lacks: list[str] | None
) -> None:
    (tmp_path / "insidetorch").mkdir()
    (tmp_path / "insidetorch" / "__init__.py").touch()
    (tmp_path / "insidetorch" / "private.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert collect.missing() == lacks
