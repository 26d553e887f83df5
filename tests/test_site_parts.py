"""Tests of what the Sphinx extension makes: ledger, stamp, tables, source map, formulas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insidetorch.errors import BookError
from insidetorch.site import mathml, own_host, parts, questions, source_map
from insidetorch.site.book_ledger import Ledger, commit_url, completed, read_ledger
from insidetorch.site.places import Place
from insidetorch.site.stamp import stamp
from insidetorch.site.tree import area_of, areas, count_lines, installed_path, with_below

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DOC = "notebooks/tensor"


def a_ledger(**chapter: object) -> Ledger:
    entry = {
        "doc": DOC,
        "title": "What <i>is</i> a tensor",
        "status": "ok",
        "fresh": True,
        "executed": "2026-03-04T05:06:07+00:00",
        "seconds": 12.34,
        "cells": 7,
        "records": [
            {"cell": 1, "kind": "claim", "held": True},
            {"cell": 2, "kind": "claim", "held": False},
            {"cell": 3, "kind": "verdict", "held": True},
            {"cell": 4, "kind": "warning", "declared": True},
            {"cell": 5, "kind": "excerpt", "file": None, "upstream": "torch/csrc/a/engine.cpp"},
            {"cell": 6, "kind": "excerpt", "file": "torch/nn/linear.py", "upstream": None},
        ],
    }
    built = {
        "built": "2026-03-04T06:00:00+00:00",
        "torch": "9.8.7+cpu",
        "commit": COMMIT,
        "python": "3.12.1",
        "cpu": "A <fast> processor",
        "chapters": [entry | chapter],
    }
    return completed(msgspec.convert(built, Ledger))


class TestLedger:
    def test_a_chapter_takes_from_the_build_what_it_leaves_out(self) -> None:
        chapter = a_ledger(torch="9.9.9").chapters[0]
        assert (chapter.torch, chapter.commit, chapter.python) == ("9.9.9", COMMIT, "3.12.1")
        assert chapter.held() == (1, 2)

    def test_no_file_is_no_ledger(self, tmp_path: Path) -> None:
        assert read_ledger(tmp_path / "ledger.json") is None

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"chapters": [{}]}', '{"chapters": 3}'])
    def test_a_broken_file_is_named(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "ledger.json"
        path.write_text(content)
        with pytest.raises(BookError, match=r"^ledger\.json.*; remove it and build again\.$"):
            read_ledger(path)

    def test_a_file_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.json"
        path.write_text(json.dumps({"torch": "1", "chapters": [{"doc": DOC}]}))
        ledger = read_ledger(path)
        assert ledger is not None
        found = ledger.chapter(DOC)
        assert found is not None
        assert found.title == DOC
        assert ledger.chapter("notebooks/none") is None


class TestStamp:
    def test_it_names_release_commit_date_and_what_held(self) -> None:
        html = stamp(a_ledger().chapters[0], DOC, "../_sources/notebooks/tensor.ipynb")
        assert "torch 9.8.7+cpu" in html
        assert f'<a href="{commit_url(COMMIT)}">0123456</a>' in html
        assert "4 March 2026" in html
        assert "1 of 2 claims held" in html
        assert "1 verdict<" in html
        assert f'<span class="it-freshness" data-doc="{DOC}"></span>' in html
        assert '<a href="../_sources/notebooks/tensor.ipynb" download>' in html

    def test_what_the_machine_says_is_escaped(self) -> None:
        html = stamp(a_ledger().chapters[0], '"><script>', '"><script>.x')
        assert "A &lt;fast&gt; processor" in html
        assert "<script>" not in html

    def test_a_tick_stands_only_where_all_held(self) -> None:
        records = [{"cell": 1, "kind": "claim", "held": True}]
        assert "✔" not in stamp(a_ledger().chapters[0], DOC, "x.md")
        assert "✔" in stamp(a_ledger(records=records).chapters[0], DOC, "x.md")

    def test_a_failed_run_is_not_hidden(self) -> None:
        assert "a cell failed" in stamp(a_ledger(status="failed").chapters[0], DOC, "x.md")

    def test_without_a_record_it_says_so(self) -> None:
        html = stamp(None, DOC, "x.md")
        assert "no record" in html
        assert ">Download</a>" in html
        assert "notebook (.zip)" in stamp(None, DOC, "../_sources/x.zip")

    def test_without_a_commit_there_is_no_link(self) -> None:
        html = stamp(a_ledger(commit="").chapters[0], DOC, "x.md")
        assert html.count("<a ") == 2  # the build's commit, and the download
        assert commit_url("") == ""


class TestParts:
    def test_the_table_of_chapters(self) -> None:
        html = parts.colophon(a_ledger(), lambda doc: f"../{doc}.html")
        assert '<a href="../notebooks/tensor.html">What &lt;i&gt;is&lt;/i&gt; a tensor</a>' in html
        assert "1 of 2" in html

    def test_the_colophon_adds_up(self) -> None:
        html = parts.colophon(a_ledger(), str)
        assert "12.3" in html
        assert "1, of which 1 expected by the text" in html
        assert "A &lt;fast&gt; processor" in html
        assert "<td>none used</td>" in html

    def test_the_colophon_counts_the_cells_for_a_gpu(self) -> None:
        records = [{"cell": n, "kind": "cuda", "state": "recorded"} for n in (1, 2)]
        assert "2 cells for a GPU: 2 recorded" in parts.colophon(a_ledger(records=records), str)

    def test_the_colophon_shows_the_limits_that_cells_measured(self) -> None:
        assert "Limits of this machine" not in parts.colophon(a_ledger(), str)
        limits = {"cell": 1, "kind": "limits", "rows": [["a copy", "12 GB/s"]]}
        html = parts.colophon(a_ledger(records=[limits]), str)
        assert "Limits of this machine" in html and "<td>a copy</td>" in html and "12 GB/s" in html

    def test_without_a_ledger_they_say_so(self) -> None:
        assert "without it" in parts.colophon(None, str)
        assert "Versions" in parts.colophon(None, str)


LINES = {
    "torch": 10,
    "torch/nn": 30,
    "torch/nn/modules": 50,
    "torch/tiny": 1,
    "torch/include/c10/core": 9,
}


class TestTree:
    def test_folders_are_counted_with_what_is_below(self) -> None:
        total = with_below(LINES)
        assert (total["torch"], total["torch/nn"]) == (100, 80)

    def test_lines_are_counted_in_python_and_headers_alone(self, tmp_path: Path) -> None:
        package = tmp_path / "torch"
        (package / "nn").mkdir(parents=True)
        (package / "__init__.py").write_text("a\nb\n")
        (package / "nn" / "x.h").write_text("a\n")
        (package / "nn" / "notes.txt").write_text("a\n" * 99)
        assert count_lines(package) == {"torch": 2, "torch/nn": 1}

    def test_large_folders_are_split_and_small_ones_stay_with_their_parent(self) -> None:
        tree = areas(LINES, "torch", split=0.5, least=0.1, skip="torch/include")
        assert tree.lines == 91
        found = {(area.path, area.lines, area.whole) for area in tree.leaves()}
        assert found == {
            ("torch/nn/modules", 50, True),
            ("torch/nn", 30, False),
            ("torch", 11, False),
        }

    @given(
        st.dictionaries(
            st.lists(st.sampled_from("abc"), max_size=4).map(lambda p: "/".join(["r", *p])),
            st.integers(0, 1000),
            min_size=1,
        ),
        st.floats(0, 1),
        st.floats(0, 1),
    )
    def test_no_line_is_lost_or_counted_twice(
        self, lines: dict[str, int], split: float, least: float
    ) -> None:
        tree = areas(lines, "r", split=split, least=least)
        assert sum(area.lines for area in tree.leaves()) == sum(lines.values()) == tree.lines

    @pytest.mark.parametrize(
        ("file", "place"),
        [
            ("torch/nn/linear.py", "torch/nn/linear.py"),
            ("torch/csrc/autograd/engine.cpp", "torch/include/torch/csrc/autograd/engine.cpp"),
            ("aten/src/ATen/core/Tensor.h", "torch/include/ATen/core/Tensor.h"),
            ("c10/core/TensorImpl.h", "torch/include/c10/core/TensorImpl.h"),
            ("torch/include/c10/core/TensorImpl.h", "torch/include/c10/core/TensorImpl.h"),
            ("miniatures/autograd_engine/engine.py", "miniatures/autograd_engine/engine.py"),
        ],
    )
    def test_where_the_repository_is_in_the_wheel(self, file: str, place: str) -> None:
        assert installed_path(file) == place

    def test_a_file_belongs_to_the_deepest_area(self) -> None:
        drawn = areas(LINES, "torch", split=0.5, least=0.1, skip="torch/include").leaves()
        inner = area_of("torch/nn/modules/linear.py", drawn)
        assert inner is not None
        assert inner.path == "torch/nn/modules"
        outer = area_of("torch/elsewhere/x.py", drawn)
        assert outer is not None
        assert outer.path == "torch"
        assert area_of("c10/core/TensorImpl.h", drawn, "torch/include") is None
        assert area_of("miniatures/autograd_engine/engine.py", drawn) is None


class TestSourceMap:
    @given(
        st.lists(st.integers(1, 10_000), min_size=1, max_size=40),
        st.floats(50, 1000),
        st.floats(50, 1000),
    )
    def test_areas_are_proportional_and_fill_the_rectangle(
        self, sizes: list[int], width: float, height: float
    ) -> None:
        sizes.sort(reverse=True)
        boxes = source_map.rectangles(sizes, width, height)
        scale = width * height / sum(sizes)
        for size, (x, y, wide, high) in zip(sizes, boxes, strict=True):
            assert wide * high == pytest.approx(size * scale, rel=1e-6)
            assert x >= -1e-6
            assert x + wide <= width * (1 + 1e-9)
            assert y >= -1e-6
            assert y + high <= height * (1 + 1e-9)

    def test_the_map_of_a_small_package(self, tmp_path: Path) -> None:
        for folder, count in LINES.items():
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            name = "x.h" if "include" in folder else "x.py"
            (tmp_path / folder / name).write_text("line\n" * count)
        html = source_map.source_map(
            tmp_path / "torch", "9.8.7", a_ledger(), lambda doc: f"../{doc}.html"
        )
        assert "Python in torch 9.8.7: 91 lines" in html
        assert "C++ headers in torch 9.8.7: 9 lines" in html
        assert html.count('class="it-box it-quoted"') == 1
        assert html.count('<a href="../notebooks/tensor.html"') == 2  # in the map, in the table
        assert "<i>is</i>" not in html
        for svg in html.split("<svg")[1:]:
            ElementTree.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")

    def test_every_folder_of_the_installed_torch_is_told_what_it_holds(self) -> None:
        from insidetorch.facts import torch_facts

        torch = torch_facts()
        assert torch is not None
        html = source_map.source_map(torch.root, torch.release, None, str)
        rows = [row for row in html.split("<tr>") if row.startswith("<th scope='row'>")]
        assert len(rows) > 40
        silent = [row for row in rows if "<td></td><td></td>" in row]
        assert silent == []


SYMPTOMS = [questions.Symptom("slow", "Slow", ("slow*",)), questions.Symptom("how", "How", ())]


class TestQuestions:
    ENTRY = """
- question: Why <b>`not`</b>?
  sources: [{title: A thread, url: "https://example.org/1"}]
  chapter: notebooks/tensor
  anchor: tensor-why
"""

    def test_a_question_leads_to_its_section_and_its_threads(self, tmp_path: Path) -> None:
        path = tmp_path / "questions.yml"
        path.write_text(self.ENTRY)
        place = Place(DOC, "tensor-why", "Tensors <&>", "1. Why", 2)
        found = [(question, place) for question in questions.read_questions(path)]
        html = questions.answered(
            found, SYMPTOMS, [DOC], lambda doc: f"../{doc}.html", questions.REST
        )
        address = "../notebooks/tensor.html#tensor-why"
        assert f'<a href="{address}">Why &lt;b&gt;<code>not</code>&lt;/b&gt;?</a>' in html
        assert 'asked: <a href="https://example.org/1">example.org</a>' in html
        assert '<h2 id="how">How</h2>' in html and "<h3>Tensors &lt;&amp;&gt;</h3>" in html
        assert '<a href="#how">How (1)</a>' in html and "#slow" not in html

    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://github.com/pytorch/pytorch/issues/34082", "#34082"),
            ("https://github.com/a/b/pull/7", "a/b#7"),
            ("https://www.example.org/x/1", "example.org"),
        ],
    )
    def test_a_thread_has_a_short_name(self, url: str, name: str) -> None:
        asked = questions.Question("Why?", (questions.Thread("T", url),), DOC, "x")
        place = Place(DOC, "x", "Tensors", "Why", 2)
        assert f">{name}</a></li>" in questions.answered(
            [(asked, place)], SYMPTOMS, [DOC], str, questions.REST
        )

    def test_questions_stand_by_symptom_and_then_in_the_order_of_the_book(self) -> None:
        given = [("b", 2), ("a", 7), ("b", 1), ("a slow ", 3), ("b", 2)]
        found = [
            (
                questions.Question(f"{doc}{number}-{n}", (), doc[0], "x"),
                Place(doc[0], "x", doc[0], f"section {number}", number),
            )
            for n, (doc, number) in enumerate(given)
        ]
        order = ["index", "a", "b"]
        pages = (questions.PAGE, questions.REST)
        html = "".join(questions.answered(found, SYMPTOMS, order, str, page) for page in pages)
        shown = re.findall(r"<h[23][^>]*>([^<]*)|#x\">([^<]*)", html)
        assert [head or text for head, text in shown] == [
            "Slow", "a", "a slow 3-3", "How", "a", "a7-1", "b", "b1-2", "b2-0", "b2-4",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (("  anchor: tensor-why\n", ""), r"line 2: entry 1 \(Why .*\) lacks 'anchor'; mend it"),
            (
                ("https:", "javascript:"),
                r"line 3: entry 1 .*'sources', entry 1 .*, 'url' must be .*https://",
            ),
            (("- question", "- [question"), "cannot be read"),
        ],
    )
    def test_a_malformed_entry_is_named(
        self, tmp_path: Path, change: tuple[str, str], message: str
    ) -> None:
        path = tmp_path / "questions.yml"
        path.write_text(self.ENTRY.replace(*change))
        with pytest.raises(BookError, match=message):
            questions.read_questions(path)

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BookError, match=r"questions\.yml cannot be read"):
            questions.read_questions(tmp_path / "questions.yml")


class TestMath:
    @pytest.mark.parametrize(
        "latex",
        [
            r"\frac{\partial L}{\partial x}",
            r"\mathcal{O}(n)",
            r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
            r"a = b \\ c = d",
            r"\sum_{i=0}^{n} x_i",
        ],
    )
    def test_formulas_become_mathml(self, latex: str) -> None:
        root = ElementTree.fromstring(mathml.to_mathml(latex, block=True))
        assert root.attrib["display"] == "block"
        assert root.tag.endswith("math")

    def test_lines_are_aligned(self) -> None:
        assert "<mtable" in mathml.to_mathml(r"a &= b \\ c &= d", block=True)

    @pytest.mark.parametrize("latex", [r"\nosuchcommand{x}", r"a & b", r"\frac{a"])
    def test_what_cannot_be_converted_is_named(self, latex: str) -> None:
        with pytest.raises(mathml.MathError, match="latex2mathml"):
            mathml.to_mathml(latex, block=False)


class TestOwnHost:
    def test_the_second_icon_script_goes_and_others_stay(self) -> None:
        head = (
            '<script src="../_static/scripts/bootstrap.js"></script>'
            '<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>'
        )
        assert own_host.without_icon_script(head) == head.split("</script>")[0] + "</script>"
