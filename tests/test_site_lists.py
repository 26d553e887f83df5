"""The lists of the built site: their filters, kept in the address; and the links that lead back."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from bs4 import BeautifulSoup
from built_site import DOCUMENTS, LEDGER, SITE
from playwright.sync_api import Browser, Page

from insidetorch.book.address import Address
from insidetorch.errors import BookError
from insidetorch.site import card, questions, report
from insidetorch.site.book_ledger import Executed, Ledger, completed

CHAPTER = Executed("notebooks/tensor", "Tensors", torch="9.8.7", python="3.12", cpu="A <cpu>")
ADDRESS = Address("https://github.com/o/r", "https://o.example")
CLAIM = (
    '<div class="it it-claim it-held"><div class="it-body"><p>A <code>view</code> &amp; so.</p>'
    "</div></div>"
)
CODE = '<details class="it-how"><summary>how</summary><noscript>code</noscript></details>'
MAINTAINERS = {"book/what-to-reread"}
LISTS = {
    "book/verdicts": ".it-verdict",
    "book/questions": ".it-questions li",
    "book/questions-how": ".it-questions li",
    "book/references": ".it-refs li",
    "book/glossary": ".it-glossary > dd",
    "book/wrong-without-error": ".it-silent li",
}


class TestReport:
    @pytest.mark.parametrize("html", [CLAIM, CLAIM + CODE])
    def test_it_says_sentence_chapter_release_and_machine(self, html: str) -> None:
        page = BeautifulSoup(report.reported(html, ADDRESS, CHAPTER), "html.parser")
        (link,) = page.select("a.it-report")
        given = parse_qs(urlsplit(link["href"]).query)
        assert link["href"].startswith("https://github.com/o/r/issues/new?")
        assert given["title"] == ["Tensors: A view & so."]
        for said in ("> A view & so.", "o.example/notebooks/tensor.html", "9.8.7", "A <cpu>"):
            assert said in given["body"][0]
        assert (link.parent.name == "details") == (CODE in html)

    def test_of_a_verdict_the_sentence_is_reported_and_not_its_label(self) -> None:
        html = (
            '<div id="verdict-a" class="it it-verdict it-refuted" style="x">'
            '<p class="it-label"><strong>Refuted</strong></p><blockquote><p>It is.</p></blockquote>'
            "<p>It is not.</p></div>"
        )
        assert "%3E%20It%20is.%0A" in report.reported(html, ADDRESS, CHAPTER)

    def test_without_a_repository_there_is_no_link(self) -> None:
        assert report.reported(CLAIM + CODE, Address(), CHAPTER) == CLAIM + CODE


def test_the_card_has_the_size_that_cards_have(tmp_path: Path) -> None:
    ledger = completed(Ledger((CHAPTER,), torch="9.8.7"))
    (tmp_path / "book").mkdir()
    (tmp_path / "book/verdicts.yml").write_text("[]")
    card.draw(tmp_path / "card.png", "A book", "It says.", tmp_path, ledger)
    head = (tmp_path / "card.png").read_bytes()[:24]
    assert head.startswith(b"\x89PNG") and struct.unpack(">II", head[16:]) == card.SIZE


class TestSymptoms:
    def read(self, folder: Path, text: str) -> list[questions.Symptom]:
        (folder / "symptoms.yml").write_text(text)
        return questions.read_symptoms(folder / "symptoms.yml")

    def test_a_question_has_the_first_symptom_of_whose_words_it_has_one(self, tmp_path) -> None:
        found = self.read(
            tmp_path,
            "- {id: a, title: A, words: [slow*, same result]}\n- {id: b, title: B, words: [inf]}\n"
            "- {id: c, title: C, words: []}\n",
        )
        asked = {
            "Is it slower?": "a", "Why inf?": "b", "Infer it?": "c", "How slow is inf?": "a",
            "Is it the Same Result?": "a", "Is it sameresult?": "c",
        }  # fmt: skip
        for text, symptom in asked.items():
            assert questions.symptom_of(questions.Question(text, (), "x", "y"), found) == symptom

    def test_the_last_symptom_must_take_what_is_left(self, tmp_path: Path) -> None:
        with pytest.raises(BookError, match="the last symptom has what no other has"):
            self.read(tmp_path, "- {id: a, title: A, words: [slow]}\n")


@pytest.fixture
def page(site: Path, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def visit(page: Page, doc: str, query: str = "") -> None:
    page.goto(f"{(SITE / doc).as_uri()}.html{query}", wait_until="load")


@pytest.mark.site
@pytest.mark.parametrize(("doc", "items"), LISTS.items())
def test_a_list_is_filtered_and_its_address_filters_it_again(page, doc, items) -> None:
    visit(page, doc)
    shown = page.locator(f"{items}:not([hidden])")
    total = int(page.locator(".it-filter output").inner_text().split()[-1])
    assert total > 50 and shown.count() > 20
    contents = [link.get_attribute("href") for link in page.locator(".it-letters a").all()]
    here = [to[1:] for to in contents if to.startswith("#")]
    assert len(contents) > 4 and here and all(page.locator(f"[id='{to}']").count() for to in here)
    page.locator(".it-filter input").fill("tensor")
    few = shown.count()
    assert 0 < few < total and "tensor" in shown.first.evaluate(
        "e => [e, e.previousElementSibling].map(o => o?.textContent).join(' ').toLowerCase()"
    )
    for select in page.locator(".it-filter select").all():
        select.select_option(index=1)
        assert shown.count() <= few
        few = shown.count()
        if few:
            break
    assert page.locator(".it-filter output").inner_text() == f"{few} of {total}"
    page.reload()
    assert "q=tensor" in page.url and shown.count() == few
    assert all(
        one.locator(f"{items.split()[-1]}:not([hidden])").count()
        for one in page.locator("article section:has(h2, h3):visible").all()
        if not one.locator("form").count() and one.locator(items.split()[-1]).count()
    )
    page.locator(".it-filter button").click()
    page.wait_for_function("!location.search")
    assert shown.count() == total


@pytest.mark.site
def test_the_first_page_counts_what_the_build_settled(site: Path, page: Page) -> None:
    ledger = msgspec.json.decode(LEDGER.read_bytes())
    given = [
        r["outcome"] for c in ledger["chapters"] for r in c["records"] if r["kind"] == "verdict"
    ]
    visit(page, "book/index")
    said = page.locator(".it-finding p").inner_text()
    wrong = sum(outcome in ("refuted", "until") for outcome in given)
    assert f"Of {len(given)} statements about PyTorch" in said and f"{wrong} are not true" in said
    assert page.locator(".it-live-verdict .it-verdict").is_visible()
    assert page.locator(".it-live-verdict .it-excerpt").is_visible()
    assert page.locator("article .it-figure svg").first.is_visible()
    assert page.locator(".it-doors li").count() == 5
    assert page.title().count("Inside PyTorch") == 1
    page.locator(".it-key a").first.click()
    page.wait_for_load_state()
    shown = page.locator(".it-verdict:not([hidden])").count()
    assert shown == given.count("refuted") and page.url.endswith("?o=refuted")


@pytest.mark.site
def test_the_root_says_what_the_book_is(site: Path) -> None:
    root = BeautifulSoup((site / "index.html").read_text(encoding="utf-8"), "html.parser")
    first = BeautifulSoup((site / "book/index.html").read_text(encoding="utf-8"), "html.parser")
    for select in ("title", "meta[name=description]"):
        assert str(root.select_one(select)) == str(first.select_one(select))


@pytest.mark.site
@pytest.mark.parametrize("doc", DOCUMENTS)
def test_a_page_is_light_its_focus_is_seen_and_its_names_are_whole(page: Page, doc: str) -> None:
    visit(page, doc)
    if doc not in MAINTAINERS:
        assert page.evaluate("document.querySelectorAll('*').length") <= 6000
    for _ in range(25):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            "() => { const s = getComputedStyle(document.activeElement);"
            " return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; }"
        )
        assert seen, page.evaluate("document.activeElement.outerHTML.slice(0, 160)")
    page.set_viewport_size({"width": 390, "height": 844})
    broken = """[...document.querySelectorAll('article code')]
      .filter(e => /^\\w{1,30}$/.test(e.textContent) && !e.querySelector('wbr'))
      .filter(e => e.getClientRects().length > 1)
      .map(e => e.textContent)"""
    assert page.evaluate(broken) == []


@pytest.mark.site
def test_on_paper_all_is_open_and_solutions_stand_behind_the_chapter(page: Page) -> None:
    visit(page, "notebooks/autograd-engine")
    before = page.evaluate("document.querySelectorAll('article details:not([open])').length")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("article details:not([open])").count() == 0
    solved = page.locator(".it-solutions div.cell").count()
    assert solved >= 3 and page.locator(".it-solutions h3").count() == solved
    solutions = page.locator("div.cell details.hide").filter(has_text="Show the solution")
    assert solutions.count() == solved
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".it-solutions").count() == 0 and solutions.count() == solved
    assert page.locator("article details:not([open])").count() >= before > 0


@pytest.mark.site
def test_what_is_folded_is_found_by_its_address_and_by_the_search_of_the_page(
    page: Page,
) -> None:
    doc = "notebooks/autograd-engine"
    whole = BeautifulSoup((SITE / f"{doc}.html").read_text(encoding="utf-8"), "html.parser")
    inside = whole.select("details.it-deeper > noscript [id^=excerpt-]")[0]["id"]
    visit(page, doc)
    assert page.locator(f"[id='{inside}']").count() == 0
    page.keyboard.press("Control+f")
    assert page.locator("details > noscript").count() == 0
    visit(page, doc, f"#{inside}")
    page.reload()
    page.wait_for_function(
        "id => document.getElementById(id).getBoundingClientRect().top < innerHeight", arg=inside
    )
    code = page.locator(f"[id='{inside}']")
    assert code.is_visible()
    label = whole.select("section > span[id]:has(+ details.it-deeper)")[0]["id"]
    visit(page, doc, f"#{label}")
    page.reload()
    page.wait_for_selector(f"section > [id='{label}'] + details.it-deeper[open]")
    page.locator("details.it-how:visible").first.locator("summary").click()
    assert page.locator("details.it-how[open] pre").first.is_visible()
