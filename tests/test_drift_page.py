"""The page "Still true?", and the links of a site."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from insidetorch.claims import claim
from insidetorch.drift import report
from insidetorch.drift.history import History, Row
from insidetorch.drift.links import broken, outgoing, sentences
from insidetorch.drift.outcomes import Outcome, text_id
from insidetorch.drift.reasons import Reason
from insidetorch.drift.reread import Item, Level, Rest
from insidetorch.drift.run import Result
from insidetorch.site.book_ledger import Ledger, completed
from insidetorch.site.drift_data import DriftData
from insidetorch.site.reread import PARTS
from insidetorch.site.still_true import summary, with_releases

LEDGER = completed(msgspec.convert(
    {
        "built": "2026-11-21T01:00:00+00:00", "torch": "2.13.0+cpu", "commit": "c",
        "python": "3.11", "cpu": "a processor",
        "chapters": [
            {
                "doc": "notebooks/a", "title": "A <chapter>", "records": [
                    {"cell": 1, "kind": "claim", "text": "The `grad` is <kept>.", "held": True},
                    {"cell": 2, "kind": "verdict", "sentence": "It is so.", "held": True},
                    {"cell": 3, "kind": "warning", "category": "FutureWarning", "message": "soon",
                     "declared": True, "deprecation": True},
                ],
            }
        ],
    },
    Ledger,
))  # fmt: skip
FAILED = Outcome("failed", "notebooks/a", 1, "The `grad` is <kept>.", "n = 1 → 2")
RESULT = Result("2.15.0+cpu", "d", "2.13.0+cpu", "3.11", "a processor", "2026-11-21T02:00:00",
                {"notebooks/a": (text_id("It is so."),)}, (FAILED,))  # fmt: skip
HISTORY = History(
    ("2.12.1", "2.13.0", "2.15.0"), "2.13.0",
    (
        Row("notebooks/a", "excerpt", "torch::Y", (("2.12.1", "a", "f"), ("2.15.0", "", ""))),
        Row("notebooks/a", "api", "torch.x", (("2.12.1", "b", "f"), ("2.13.0", "c", "f"))),
    ),
)  # fmt: skip
EMPTY = DriftData()
FULL = DriftData(
    HISTORY, (RESULT,), (Reason("2.15.0", "notebooks/a", "The `grad`", "Mended <there>."),)
)


def link(doc: str) -> str:
    return f"../{doc}.html"


def test_a_book_without_data_says_so() -> None:
    for kind in ("drift-claims", "drift-differences", "drift-history", "drift-anchors"):
        html = PARTS[kind](EMPTY, None, link)
        assert html.startswith('<p class="it">') and html.endswith(".</p>")


def test_a_sentence_that_does_not_hold_everywhere_is_a_row_that_leads_to_it() -> None:
    html = PARTS["drift-claims"](FULL, LEDGER, link)
    assert "A &lt;chapter&gt;: 2 of 2 on 2.13.0; 1 on 2.15.0" in html
    assert re.findall(r'scope="col">([^<]+)<', html) == ["Sentence", "2.13.0", "2.15.0"]
    assert 'href="../notebooks/a.html#:~:text=The%20grad%20is%20%3Ckept%3E."' in html
    assert "<code>grad</code> is &lt;kept&gt;" in html
    assert re.findall(r'aria-label="(held|failed)"', html) == ["held", "failed"]
    assert "It is so." not in html, "what held everywhere is counted"


def test_a_chapter_that_holds_everywhere_is_one_line() -> None:
    kept = replace(RESULT, outcomes=(), held={
        "notebooks/a": (text_id("It is so."), text_id("The `grad` is <kept>."))
    })  # fmt: skip
    html = PARTS["drift-claims"](DriftData(None, (kept,)), LEDGER, link)
    assert html == '<p class="it">A &lt;chapter&gt;: 2 of 2 on 2.13.0; 2 on 2.15.0.</p>'


def test_a_sentence_written_since_a_run_is_not_said_to_have_held_there() -> None:
    before = replace(RESULT, held={"notebooks/a": ()}, outcomes=())
    html = PARTS["drift-claims"](DriftData(None, (before,)), LEDGER, link)
    assert "2 of 2 on 2.13.0; 0 on 2.15.0" in html
    other = replace(RESULT, torch="2.14.0", held={"notebooks/a": ()})
    html = PARTS["drift-claims"](DriftData(None, (before, other)), LEDGER, link)
    assert html.count('aria-label="written since that run"') == 1


def test_differences_are_listed_with_their_reasons() -> None:
    html = PARTS["drift-differences"](FULL, LEDGER, link)
    assert "Mended &lt;there&gt;." in html and "no longer holds" in html
    without = PARTS["drift-differences"](DriftData(None, (RESULT,)), LEDGER, link)
    assert "not explained yet" in without


def test_anchors_have_a_state_in_each_release_and_an_age() -> None:
    html = PARTS["drift-anchors"](FULL, LEDGER, link)
    rows = re.findall(r"<tr>.*?</tr>", html)[1:]
    assert "before 2.12.1" in rows[0] and "torch::Y" in rows[0]
    assert re.findall(r'aria-label="([^"]+)"', rows[0]) == ["the same", "the same", "absent"]
    assert re.findall(r'aria-label="([^"]+)"', rows[1]) == ["another text", "the same", "the same"]


def test_the_figure_counts_the_anchors_of_each_release_and_says_so_in_words() -> None:
    html = PARTS["drift-history"](FULL, LEDGER, link)
    assert "2.12.1: 1 of 2 the same; 2.13.0: 2 of 2 the same; 2.15.0: 1 of 2 the same" in html
    heights = re.findall(r'height="([\d.]+)" style', html)
    assert sum(map(float, heights)) == pytest.approx(3 * 90)


def test_a_static_report_shows_its_differences_escaped() -> None:
    rests = (Rest("notebooks/a", "It is <so>.", 9, held=True),)
    item = Item(Level.SHOWN, "condition added", "torch::Y", "y.h", "y.h", ("a<b>",), ("c",),
                ("said <so>",), (), rests)  # fmt: skip
    far = replace(item, level=Level.REST, target="torch::Z")
    made = report.Report("2.15.0", "2.13.0", (item, far), ("torch::U: not at hand",))
    html = PARTS["drift-differences"](DriftData(reports=(made,)), LEDGER, link)
    assert "reread: 1 sentence rests on what changed" in html
    assert "condition added: <code>torch::Y</code>" in html
    assert "<td><pre>a&lt;b&gt;</pre></td><td><pre>c</pre></td>" in html
    assert 'href="../notebooks/a.html#:~:text=It%20is%20%3Cso%3E."' in html
    assert "said &lt;so&gt;" in html and "Its claims held" in html
    folded = html[html.index("<details>") :]
    assert "torch::Z" in folded and "torch::U" in folded and "torch::Y" not in folded
    explained = DriftData(reports=(made,), reasons=(Reason("2.15.0", "", "torch::Y", "As <was>."),))
    html = PARTS["drift-differences"](explained, LEDGER, link)
    assert "stands: nothing" in html and "As &lt;was&gt;." in html


def test_readers_get_one_sentence_and_a_row_for_each_chapter() -> None:
    html = summary(FULL, LEDGER, link)
    assert "Of 2 sentences that are checked as the chapters run, 2 held on 2.13.0; 1 held" in html
    (row,) = re.findall(r"<tr>.*?</tr>", html)[1:]
    assert '<a href="../notebooks/a.html">A &lt;chapter&gt;</a>' in row
    assert re.findall(r"<td[^>]*>(.*?)</td>", row)[-3:] == ["2", "2", "1 (1 not)"]
    assert "2 held on 2.13.0." in summary(EMPTY, LEDGER, link)


def test_the_mark_of_a_sentence_says_on_which_releases_it_held(monkeypatch) -> None:
    shown: list = []
    monkeypatch.setattr("insidetorch.claims.show", shown.append)
    claim("The `grad` is <kept>.", True)
    body = f"<p>before</p>{shown[0].html}"
    here = with_releases(body, LEDGER.chapters[0], ())
    assert 'aria-label="held on torch 2.13.0" title="held on torch 2.13.0">✔' in here
    held = replace(RESULT, held={"notebooks/a": (text_id("The `grad` is <kept>."),)})
    both = with_releases(body, LEDGER.chapters[0], (held,))
    assert 'title="held on torch 2.13.0, 2.15.0"' in both
    assert with_releases("<p>none</p>", LEDGER.chapters[0], (held,)) == "<p>none</p>"


def test_deprecations_of_the_last_run_are_listed() -> None:
    html = PARTS["drift-warnings"](FULL, LEDGER, link)
    assert "FutureWarning: soon" in html


class _Site(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        codes = {"/gone": 404, "/shy": 403, "/busy": 503, "/no-head": 405}
        self.send_response(codes.get(self.path, 200))
        self.end_headers()

    def do_GET(self) -> None:
        codes = {"/gone": 404, "/shy": 403, "/busy": 503}
        self.send_response(codes.get(self.path, 200))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_links_that_lead_nowhere_are_told_with_their_pages(tmp_path: Path, host: str) -> None:
    nowhere = "http://127.0.0.1:9/"
    paths = ("/", "/gone#part", "/shy", "/busy", "/no-head")
    body = "".join(f'<a href="{host}{path}">x</a>' for path in paths)
    (tmp_path / "a.html").write_text(f'{body}<a href="{nowhere}">y</a><a href="b.html">z</a>')
    (tmp_path / "b.html").write_text(f'<a href="{host}/gone">x</a>')
    pages = outgoing(tmp_path)
    assert pages[f"{host}/gone"] == ["a.html", "b.html"]
    found = broken(pages, pause=0)
    assert set(found) == {f"{host}/gone", nowhere}
    assert f"{host}/gone (status 404), linked from a.html, b.html" in sentences(found, pages)
