"""Claims, verdicts and declared warnings: what they show, record and refuse."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from insidetorch import claims, display
from insidetorch import records as ledger
from insidetorch.claims import (
    OUTCOMES,
    Citation,
    ClaimFailed,
    Verdict,
    claim,
    settled,
    verdict,
    warns,
)
from insidetorch.errors import BookError

ENTRY = Verdict(
    "one-is-two", "One is `two` & more.",
    (Citation("A book", 2019, "https://example.org/a?b&c"),), "notebooks/numbers",
)  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[display.Display]:
    out: list[display.Display] = []
    monkeypatch.setattr(claims, "show", out.append)
    monkeypatch.setattr(claims, "_verdicts", lambda: {"one-is-two": ENTRY})
    monkeypatch.setattr(claims, "_settled", {})
    monkeypatch.delenv("INSIDETORCH_COLLECT", raising=False)
    return out


def test_a_claim_that_holds_shows_its_sentence_values_and_release(shown: list) -> None:
    import torch

    claim("two & two is `4`", 2 + 2 == 4, total=4)
    (out,) = shown
    assert "two &amp; two is <code>4</code>" in out.html
    assert out.text.startswith("✔ two & two is `4`") and "total = 4" in out.text
    assert out.record == {
        "kind": "claim", "text": "two & two is `4`", "held": True, "values": {"total": "4"},
        "torch": str(torch.__version__),
    }  # fmt: skip


def test_a_claim_that_fails_names_sentence_values_and_release(shown: list) -> None:
    import torch

    with pytest.raises(ClaimFailed) as failure:
        claim("two is three", 2 == 3, seen=[2])
    message = str(failure.value)
    assert "two is three" in message and "seen = [2]" in message
    assert str(torch.__version__) in message
    assert shown[0].record["held"] is False


def test_a_claim_over_cases_says_in_how_many_it_held_and_over_what(shown: list) -> None:
    cases = {"number": [1, 2, 3], "sign": [1, -1]}
    claim("Squares.", lambda number, sign: (number * sign) ** 2 > 0, over=cases)
    assert shown[0].record["values"] == {"held_in": "6 of 6: 3 numbers × 2 signs"}
    claim("Even.", lambda n: n % 2 == 0, over=range(0, 8, 2), seen="all")
    assert shown[1].record["values"] == {"held_in": "4 of 4", "seen": "all"}


def test_a_claim_that_fails_in_some_cases_names_them(shown: list) -> None:
    with pytest.raises(ClaimFailed, match=r"held_in = 3 of 5, fails_for = 3; 4\)") as failure:
        claim("Less than three.", lambda n: n < 3, over=range(5))
    assert "Less than three." in str(failure.value) and shown[0].record["held"] is False
    with pytest.raises(ClaimFailed, match=r"n=0, d=0 \(ZeroDivisionError: division by zero\)"):
        claim("Divides.", lambda n, d: n / d == 0, over={"n": [0], "d": [1, 0]})
    with pytest.raises(ClaimFailed, match=r"fails_for = 0; 1; 2 and 7 more"):
        claim("Never.", lambda n: False, over=range(10))


def test_a_claim_over_no_case_or_without_a_check_is_refused(shown: list) -> None:
    with pytest.raises(BookError, match="has no case"):
        claim("All.", lambda n: True, over=[])
    with pytest.raises(BookError, match="has no case"):
        claim("All.", lambda a, b: True, over={"a": [1], "b": []})
    with pytest.raises(BookError, match="needs a function"):
        claim("All.", True, over=[1])
    assert shown == []


def test_a_drift_run_collects_the_failed_claim(shown: list, monkeypatch) -> None:
    monkeypatch.setenv("INSIDETORCH_COLLECT", "1")
    claim("two is three", False)
    assert [out.record["held"] for out in shown] == [False]


def test_markup_in_a_claim_is_text(shown: list) -> None:
    claim("<img src=x onerror=alert(1)>", True, value="<script>")
    assert "<img" not in shown[0].html and "<script>" not in shown[0].html


def test_a_verdict_shows_who_says_it_and_enters_the_table(shown: list) -> None:
    verdict("one-is-two", True, now="One is one.")
    assert 'href="https://example.org/a?b&amp;c"' in shown[0].html
    assert shown[0].record["outcome"] == "refuted" and shown[0].record["held"]
    table = settled()
    assert "One is `two` & more." in table.text and "A book, 2019" in table.text


def test_an_unknown_verdict_names_the_nearest(shown: list) -> None:
    with pytest.raises(BookError, match=r"one-is-too.*nearest: one-is-two"):
        verdict("one-is-too", True)


GOES_WITH = {
    "confirmed": {}, "refuted": {}, "until": {"until": "1.5"}, "since": {"since": "2.1"},
    "half": {"now": "Ones, not twos."}, "depends": {"on": "the device"},
    "open": {"takes": "a machine with two GPUs."},
}  # fmt: skip


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_has_one_label_and_what_goes_with_it(shown: list, outcome: str) -> None:
    verdict("one-is-two", True, outcome=outcome, **GOES_WITH[outcome])
    kind = OUTCOMES[outcome]
    assert f"--it-outcome:var({kind.colour})" in shown[0].html
    for said in (shown[0].html, shown[0].text, settled().text):
        assert kind.label in said
        assert all(value.rstrip(".") in said for value in GOES_WITH[outcome].values())


def test_the_outcomes_are_told_apart_and_their_colours_are_the_themes() -> None:
    css = display.style_block()
    for one in ("label", "words", "means", "colour"):
        assert len({getattr(kind, one) for kind in OUTCOMES.values()}) == len(OUTCOMES)
    assert all(f"{kind.colour}: #" in css for kind in OUTCOMES.values())


def test_what_is_open_or_depends_says_so_below_the_sentence(shown: list) -> None:
    verdict("one-is-two", True, outcome="open", takes="a year.", now="Nobody tried.")
    verdict("one-is-two", True, outcome="depends", on="the `dtype`")
    first, second = (BeautifulSoup(one.html, "html.parser").get_text(" ") for one in shown)
    assert "To know, it would take: a year." in first and "Nobody tried." in first
    assert "On: the" in second and "dtype" in second


@pytest.mark.parametrize(
    "arguments",
    [
        {"outcome": "maybe"}, {"until": "2.1"}, {"outcome": "confirmed", "on": "the device"},
        *({"outcome": name} for name, needed in GOES_WITH.items() if needed),
        {"outcome": "since", "since": "2.1", "until": "2.3"}, {"outcome": "half", "now": " "},
    ],
)  # fmt: skip
def test_a_verdict_without_a_clear_outcome_is_refused(shown: list, arguments: dict) -> None:
    with pytest.raises(BookError, match="one-is-two"):
        verdict("one-is-two", True, **arguments)
    assert shown == []


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_was_tried_must_hold_whatever_the_outcome(shown: list, outcome: str) -> None:
    with pytest.raises(ClaimFailed, match="Evidence failed"):
        verdict("one-is-two", False, outcome=outcome, **GOES_WITH[outcome])
    assert "it-failed" in shown[0].html and "--it-outcome" not in shown[0].html


def test_evidence_that_fails_fails_the_verdict(shown: list) -> None:
    with pytest.raises(ClaimFailed, match="One is `two`"):
        verdict("one-is-two", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- id: a\n  sentence: S.\n  sources: []\n", "line 1: entry 1 (a) lacks 'chapter'"),
        (
            "- {id: a, sentence: S., chapter: c, sources: [{title: T, day: 2019}]}",
            "line 1: entry 1 (a), 'sources', entry 1 (T) has 'day', which means nothing",
        ),
        ("a: 1", "must be a list, not a mapping"),
    ],
)
def test_a_bad_entry_of_the_verdicts_is_said_with_its_place(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "verdicts.yml"
    path.write_text(text)
    with pytest.raises(BookError) as error:
        claims.read_verdicts(path)
    assert str(error.value).startswith("verdicts.yml") and said in str(error.value)


def test_settled_before_any_verdict_says_so(shown: list) -> None:
    with pytest.raises(BookError, match="before any verdict"):
        settled()


def test_a_declared_warning_is_shown_as_declared(shown: list) -> None:
    with warns(FutureWarning, match="old name"):
        warnings.warn("the old name goes", FutureWarning, stacklevel=1)
    assert shown[0].record["declared"] is True and shown[0].record["deprecation"] is True


def test_a_declared_warning_that_does_not_come_fails(shown: list) -> None:
    with pytest.raises(ClaimFailed, match="FutureWarning"), warns(FutureWarning):
        pass


def test_another_warning_inside_the_block_stays_undeclared(shown: list) -> None:
    with warns(FutureWarning, match="old name"):
        warnings.warn("the old name goes", FutureWarning, stacklevel=1)
        warnings.warn("a different one", DeprecationWarning, stacklevel=1)
    assert [out.record["declared"] for out in shown] == [True, False]


def test_a_warning_never_shows_a_path_of_this_machine(shown: list) -> None:
    claims.show_warning(UserWarning, "m", declared=False, origin="/a/b/site-packages/torch/x.py")
    claims.show_warning(UserWarning, "m", declared=False, origin="/a/b/mine.py")
    assert [out.record["origin"] for out in shown] == ["torch/x.py", "this cell"]


def test_every_verdict_in_the_book_says_who_and_where() -> None:
    import yaml

    entries = yaml.safe_load(Path("book/verdicts.yml").read_text(encoding="utf-8"))
    assert len({entry["id"] for entry in entries}) == len(entries)
    for entry in entries:
        assert entry["sentence"].strip() and entry["sources"], entry["id"]
        assert all(source["title"] for source in entry["sources"]), entry["id"]


def test_records_are_found_in_order_with_their_cell() -> None:
    def output(kind: str) -> dict:
        return {"data": {ledger.RECORD_MIME: {"kind": kind}, "text/plain": ""}}

    notebook = {
        "cells": [
            {"cell_type": "markdown", "source": ""},
            {"cell_type": "code", "outputs": [output("claim"), {"output_type": "stream"}]},
            {"cell_type": "code", "outputs": [output("verdict"), output("unknown")]},
        ]
    }
    assert [(r["cell"], r["kind"]) for r in ledger.records(notebook)] == [
        (1, "claim"),
        (2, "verdict"),
    ]


def test_the_style_block_comes_off_whole() -> None:
    bundle = display.Display("<p>x</p>", "x")._repr_mimebundle_()
    assert bundle["text/html"].startswith("<style data-insidetorch>")
    assert display.strip_style(bundle["text/html"]) == "<p>x</p>"


def test_a_table_reads_in_a_terminal() -> None:
    shown = display.table(["name", "ns"], [["add", 12], ["mul", 7]], caption="Cost", numeric=[1])
    assert shown.text.splitlines() == ["Cost", "name  ns", "────  ──", "add   12", "mul    7"]
    assert shown.html.count("<tr>") == 3


def test_the_cells_of_a_table_are_text_with_code_in_it() -> None:
    shown = display.table(["in `f`"], [["`x < y`, and z"], [display.Display("`raw`", "raw")]])
    assert '<th scope="col">in <code>f</code></th>' in shown.html
    assert "<td><code>x &lt; y</code>, and z</td>" in shown.html
    assert "<td>`raw`</td>" in shown.html


def test_a_warning_names_files_as_they_are_named_everywhere(shown: list) -> None:
    said = 'Traceback:\n  File "/home/me/venv/lib/site-packages/torch/a.py", line 1, in f\n'
    said += '  File "/home/me/book/x.py", line 2, in g\n  File "<frozen y>", line 3'
    claims.show_warning(UserWarning, said, declared=True, origin="x")
    message = shown[0].record["message"]
    assert 'File "torch/a.py", line 1' in message and 'File "x.py", line 2' in message
    assert 'File "<frozen y>"' in message and "/home" not in shown[0].html
