"""Tests of the reading list: its files, its two pages, its coverage check, and its filter."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from insidetorch.claims import OUTCOMES, Citation, Verdict, read_verdicts
from insidetorch.drift.outcomes import Outcome, text_id
from insidetorch.drift.run import Result
from insidetorch.errors import BookError
from insidetorch.site import coverage, references, verdicts
from insidetorch.site.bibliography import (
    COVERED,
    OUTSIDE,
    SETTLED,
    WAITING,
    Reference,
    Subject,
    read_references,
    read_subjects,
    state,
)
from insidetorch.site.book_ledger import Ledger, completed

ROOT = Path(__file__).parent.parent
SITE = ROOT / "_build" / "html"
NODES, TENSOR = "notebooks/nodes", "notebooks/tensor"
SUBJECT = Subject("autograd", "Autograd", (NODES,), "")
REFERENCE = Reference(
    "a-text", "动态图 <i>", "Dynamic & graphs", "Someone", 2019, True, "https://example.org/a?b&c",
    "zh", ("autograd",), (), False, "Good for one thing.", "read in part", "", "",
)  # fmt: skip
VERDICT = Verdict(
    "nodes-run", "Nodes `run` & <stop>.",
    (Citation("A text", 2019, "https://example.org/a", "a-text", "section 2"),
     Citation("Another", 2021)),
    NODES,
)  # fmt: skip
RECORD = {
    "cell": 7, "kind": "verdict", "id": "nodes-run", "sentence": VERDICT.sentence,
    "outcome": "until", "until": "1.5", "held": True, "now": "They `wait`.",
    "values": {"seen": "x" * 400},
}  # fmt: skip


def a_ledger(*records: dict[str, Any], doc: str = NODES) -> Ledger:
    chapter = {"doc": doc, "title": "The nodes", "records": records}
    built = {"torch": "9.8.7+cpu", "commit": "", "chapters": [chapter]}
    return completed(msgspec.convert(built, Ledger))


def soup_of(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


class TestBibliography:
    def test_an_entry_is_read_without_its_braces(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bib"
        path.write_text(
            "@misc{x,\n author = {{Some Body}}, title = {{99\\% of \\_\\_init\\_\\_, 动态}},\n"
            "gloss = {Dynamic}, year = {2019}, yearfrom = {inferred}, url = {https://a.b/c_d%20},\n"
            "langid = {zh}, keywords = {autograd, tensor}, chapters = {a/b, c/d}, read = {part},\n}"
        )
        (one,) = read_references(path)
        assert one.title == "99% of __init__, 动态"
        assert (one.author, one.year, one.inferred) == ("Some Body", 2019, True)
        assert one.url == "https://a.b/c_d%20"
        assert (one.subjects, one.chapters) == (("autograd", "tensor"), ("a/b", "c/d"))
        assert one.read == "read in part"

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (("title = {{T}},", ""), "'x' has no title"),
            (("keywords = {k},", ""), "'x' has no keywords"),
            (("{en}", "{fr}"), "has the langid 'fr', not one of zh, en"),
            (("{2019}", "{19}"), "has the year '19', which is no year"),
            (("{https://a}", "{javascript:1}"), "which a browser cannot open"),
            (("read", "opinion"), "has the field 'opinion', which means nothing here"),
            (("{full}", "{twice}"), "has read = 'twice', which is neither full nor part"),
            (("{{T}}", "{{T}"), "a.bib:1: the braces of the entry 'x' do not pair up"),
            (("@misc{x", "@misc{w, title = {A}}\n@misc{x"), "'w' has no langid"),
            (("}, url", "} url"), "a.bib:2: cannot be read"),
            (("@misc{x", "@misc{X, title = {A}}\n@misc{x"), "cannot be read"),
        ],
    )
    def test_a_bad_entry_is_said_in_one_sentence(
        self, tmp_path: Path, change: tuple[str, str], said: str
    ) -> None:
        good = (
            "@misc{x,\n title = {{T}}, year = {2019}, url = {https://a}, langid = {en}, "
            "keywords = {k}, read = {full}}"
        )
        text = good.replace(*change)
        assert text != good
        path = tmp_path / "a.bib"
        path.write_text(text)
        with pytest.raises(BookError) as error:
            read_references(path)
        assert said in str(error.value)
        assert "\n" not in str(error.value) and str(error.value).startswith("a.bib")

    def test_a_lost_brace_is_found_where_it_was_lost(self, tmp_path: Path) -> None:
        """Wherever a brace is taken out, the entry it was in is named by its line."""
        entry = "@misc{%s,\n  author = {{A}},\n  title = {T},\n}\n\n"
        text = "% of {two}\n" + entry % "one" + entry % "two"
        path = tmp_path / "a.bib"
        for place in (at for at, sign in enumerate(text) if sign in "{}" and at > 10):
            path.write_text(text[:place] + text[place + 1 :])
            line = 2 if place < text.index("@misc{two") else 7
            with pytest.raises(BookError, match=rf"^a\.bib:{line}: the braces of the entry"):
                read_references(path)

    def test_no_file_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(BookError, match=r"a\.bib cannot be read"):
            read_references(tmp_path / "a.bib")
        with pytest.raises(BookError, match=r"a\.yml cannot be read"):
            read_subjects(tmp_path / "a.yml")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("- {id: a}", "line 1: entry 1 (a) lacks 'title'"),
            ("- {id: a, title: A}", "entry 1 (a) has no state"),
            ("- {id: a, title: A, chapters: [x], outside: why}", "entry 1 (a) has no state"),
            ("- {id: a, title: A, outside: w}\n- {id: a, title: B, outside: w}", "'a' 2 times"),
            ("a: 1", "must be a list"),
            ("- [", "cannot be read"),
        ],
    )
    def test_a_bad_subject_is_said_in_one_sentence(
        self, tmp_path: Path, text: str, said: str
    ) -> None:
        path = tmp_path / "a.yml"
        path.write_text(text)
        with pytest.raises(BookError) as error:
            read_subjects(path)
        assert said in str(error.value) and "\n" not in str(error.value)

    @given(
        own=st.lists(st.sampled_from([NODES, TENSOR, "notebooks/none"]), max_size=2),
        of_subject=st.lists(st.sampled_from([NODES, TENSOR, "notebooks/none"]), max_size=2),
        outside=st.booleans(),
        count=st.integers(0, 2),
    )
    def test_a_state_is_the_best_that_can_be_said(
        self, own: list[str], of_subject: list[str], outside: bool, count: int
    ) -> None:
        subject = Subject("autograd", "Autograd", tuple(of_subject), "" if of_subject else "why")
        one = dataclasses.replace(REFERENCE, chapters=tuple(own), outside=outside)
        given = {f"verdict {number}": TENSOR for number in range(count)}
        found = state(one, {"autograd": subject}, {NODES, TENSOR}, given)
        named = set(own or of_subject)
        assert found is not None
        if count:
            assert (found.kind, len(found.verdicts)) == (SETTLED, count)
        elif outside or not named:
            assert found.kind == OUTSIDE
        else:
            assert found.kind == (COVERED if named & {NODES, TENSOR} else WAITING)
        if found.kind in (SETTLED, COVERED):
            assert set(found.chapters) == (named | set(given.values())) & {NODES, TENSOR}

    def test_a_subject_that_nobody_knows_gives_no_state(self) -> None:
        assert state(REFERENCE, {}, {NODES}, {}) is None


class TestTheBooksOwnList:
    @pytest.fixture
    def listed(self) -> list[Reference]:
        return read_references(ROOT / "book" / "references.bib")

    @pytest.fixture
    def docs(self) -> set[str]:
        text = (ROOT / "_toc.yml").read_text(encoding="utf-8")
        return set(re.findall(r"(?:file|root): (\S+)", text))

    def test_all_of_it_has_a_state_and_all_names_are_known(
        self, listed: list[Reference], docs: set[str]
    ) -> None:
        subjects = read_subjects(ROOT / "book" / "subjects.yml")
        given = read_verdicts(ROOT / "book" / "verdicts.yml")
        assert len(listed) == 294
        assert coverage.problems(listed, subjects, given, docs, None) == []
        known = {subject.id: subject for subject in subjects}
        assert all(state(one, known, docs, {}) for one in listed)

    def test_chinese_titles_are_kept_and_glossed(self, listed: list[Reference]) -> None:
        chinese = [one for one in listed if re.search(r"[\u4e00-\u9fff]", one.title)]
        assert len(chinese) > 150
        assert [one.id for one in chinese if not one.gloss] == []
        glossed = [one for one in listed if one.gloss]
        assert not [one.id for one in glossed if re.search(r"[\u4e00-\u9fff]", one.gloss)]

    def test_five_addresses_are_marked_and_kept(self, listed: list[Reference]) -> None:
        doubtful = [one for one in listed if one.doubt]
        assert len(doubtful) == 5 and all(one.url for one in doubtful)

    def test_no_address_is_listed_twice(self, listed: list[Reference]) -> None:
        addresses = [one.url for one in listed if one.url]
        assert len(addresses) == len(set(addresses))


class TestCoverage:
    def check(self, **changed: Any) -> list[str]:
        whole: dict[str, Any] = {
            "references": [REFERENCE],
            "subjects": [SUBJECT],
            "verdicts": [VERDICT],
            "docs": {NODES},
            "ledger": a_ledger(RECORD),
        }
        return coverage.problems(**(whole | changed))

    def test_a_whole_list_has_no_problem(self) -> None:
        assert self.check() == []

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"subjects": [SUBJECT, Subject("x", "X", (NODES,), "")]}, "no reference has the sub"),
            ({"references": [dataclasses.replace(REFERENCE, subjects=("autograd", "y"))]},
             "the subject 'y' of 'a-text' has no chapter and no state"),
            ({"references": [dataclasses.replace(REFERENCE, id="b")]},
             "'nodes-run' names the reference 'a-text', which is not in book/references.bib"),
            ({"verdicts": [VERDICT, VERDICT]}, "has 'nodes-run' 2 times; keep one"),
            ({"docs": {TENSOR}}, "'nodes-run' name the chapter 'notebooks/nodes', which is not in"),
            ({"ledger": a_ledger()}, "settled by 0 cells of notebooks/nodes"),
            ({"ledger": a_ledger(RECORD, RECORD)}, "settled by 2 cells of notebooks/nodes"),
            ({"ledger": a_ledger(RECORD, doc=TENSOR)}, "settled in notebooks/tensor, but its ch"),
        ],
    )  # fmt: skip
    def test_a_hole_is_said_in_one_sentence(self, changed: dict[str, Any], said: str) -> None:
        (problem,) = self.check(**changed)
        assert said in problem
        assert "\n" not in problem and problem.endswith(".")

    def test_without_an_execution_nothing_is_said_of_cells(self) -> None:
        assert self.check(ledger=None) == []


class TestVerdicts:
    def test_anchors_go_to_the_verdicts_in_their_order(self) -> None:
        shown = '<p></p><div class="it it-verdict it-refuted">a</div>'
        ids = ["a", "b", "c"]
        html = verdicts.anchored(shown + shown, ids)
        assert [tag["id"] for tag in soup_of(html).select(".it-verdict")] == [
            "verdict-a",
            "verdict-b",
        ]
        assert ids == ["c"]
        assert verdicts.anchored(shown, []) == shown

    def test_an_item_says_all_of_it(self) -> None:
        ledger = a_ledger(RECORD)
        (one,) = verdicts.settled([VERDICT], ledger)
        html = verdicts.page([one], [], lambda doc: f"../{doc}.html", "references.html")
        item = soup_of(html).select_one("#verdict-nodes-run")
        assert item is not None
        assert item.select_one("strong").get_text() == "True until 1.5"
        assert item.select_one("blockquote p").get_text() == "Nodes run & <stop>."
        links = [a["href"] for a in item.select("a")]
        assert links == [
            "https://example.org/a",
            "references.html#ref-a-text",
            "../notebooks/nodes.html#verdict-nodes-run",
        ]
        assert "Code cell 7 ran on torch 9.8.7." in item.get_text()
        assert item["data-o"] == "until" and item.find_parent("section")["data-c"] == "nodes"

    def test_evidence_that_failed_is_not_hidden(self) -> None:
        (one,) = verdicts.settled([VERDICT], a_ledger(RECORD | {"held": False}))
        item = soup_of(verdicts.page([one], [], str, "")).select_one(".it-verdict")
        assert "Evidence failed" in item.get_text() and "True until" not in item.get_text()

    def test_other_releases_are_named_where_they_ran(self) -> None:
        (one,) = verdicts.settled([VERDICT], a_ledger(RECORD))
        ids = (text_id(VERDICT.sentence),)
        failed = Outcome("failed", NODES, 7, VERDICT.sentence)
        runs = [
            Result("1.0", "", "", "", "", "", {NODES: ids}, ()),
            Result("2.0+cpu", "", "", "", "", "", {NODES: ()}, (failed,)),
            Result("3.0", "", "", "", "", "", {NODES: ()}, ()),
            Result("4.0", "", "", "", "", "", {TENSOR: ids}, ()),
        ]
        assert verdicts.elsewhere(one, runs) == "; the same on 1.0; otherwise on 2.0"

    def test_the_figure_says_in_words_what_it_draws(self) -> None:
        again = msgspec.structs.replace(VERDICT, id="b", sources=(Citation("T", 2017),))
        undated = msgspec.structs.replace(VERDICT, id="c", sources=(Citation("T"),))
        records = (RECORD, RECORD | {"id": "b", "outcome": "refuted"}, RECORD | {"id": "c"})
        found = verdicts.settled([VERDICT, again, undated], a_ledger(*records))
        drawn = soup_of(verdicts.survival(found))
        label = drawn.select_one("svg")["aria-label"]
        assert label.startswith("2 of 3 settled sentences")
        assert "2017: 1 not true; 2019: 1 no longer true." in label
        assert len(drawn.select("rect")) == 2
        assert [text.get_text() for text in drawn.select("text:not(.it-count)")] == [
            "’17",
            "’18",
            "’19",
        ]
        assert "<svg" not in verdicts.survival([])

    def test_the_figure_and_the_page_know_every_outcome(self) -> None:
        wanted = [msgspec.structs.replace(VERDICT, id=name) for name in OUTCOMES]
        records = [RECORD | {"id": name, "outcome": name} for name in OUTCOMES]
        found = verdicts.settled(wanted, a_ledger(*records))
        drawn, page = verdicts.survival(found), verdicts.page(found, [], str, "")
        legend = soup_of(verdicts.legend())
        assert [dt.get_text() for dt in legend.select("dt")] == [
            one.label for one in OUTCOMES.values()
        ]
        for one in OUTCOMES.values():
            assert f"fill:var({one.colour})" in drawn and f">{one.words}</span>" in drawn
            assert f"1 {one.words}" in page and one.label in page
            assert f"--it-outcome:var({one.colour})" in page


class TestReferencesPage:
    def page(self, **changed: Any) -> BeautifulSoup:
        one = dataclasses.replace(REFERENCE, **changed)
        found = state(one, {"autograd": SUBJECT}, {NODES}, {})
        assert found is not None
        html = references.page(
            [one], [SUBJECT], {one.id: found}, lambda doc: (f"{doc}.html", "The <nodes>"), "v#"
        )
        return soup_of(html)

    def test_an_entry_says_what_is_known_and_nothing_else(self) -> None:
        (item,) = self.page().select("#ref-a-text")
        assert item.select_one("a")["href"] == "https://example.org/a?b&c"
        assert item.select_one("cite[lang=zh]").get_text() == "动态图 <i>"
        about = item.select_one(".it-about").get_text()
        assert about == "Someone, ≈ 2019, Chinese, read in part"
        assert item.select_one(".it-state").get_text() == "shown in The <nodes>"
        (bare,) = self.page(
            gloss="", author="", year=None, url="", language="en", good_for="", read=""
        ).select("#ref-a-text")
        assert bare.get_text(" ", strip=True) == "动态图 <i> English shown in The <nodes>"

    def test_verdicts_are_linked_one_by_one(self) -> None:
        found = state(REFERENCE, {"autograd": SUBJECT}, {NODES}, {"a": NODES, "b": TENSOR})
        assert found is not None
        html = references.page(
            [REFERENCE], [SUBJECT], {"a-text": found}, lambda doc: (doc, doc), "v.html#verdict-"
        )
        links = [a["href"] for a in soup_of(html).select(".it-state a")]
        assert links == ["v.html#verdict-a", "v.html#verdict-b", NODES]

    def test_the_filter_is_for_pages_with_scripts_and_has_its_place_from_the_start(self) -> None:
        page = self.page()
        assert "pst-js-only" in page.select_one("form.it-filter")["class"]
        assert not page.select_one("form.it-filter").has_attr("hidden")
        assert [a["href"] for a in page.select(".it-letters a")] == ["#subject-autograd"]
        assert page.select_one("#subject-autograd h2").get_text() == "Autograd"
