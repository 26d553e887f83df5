"""Tests of the ways into the built book: map, glossary, questions and paths, by keyboard too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from urllib.parse import urlsplit

import msgspec
import pytest
from built_site import ROOT, SITE
from playwright.sync_api import Browser, Page
from selectolax.lexbor import LexborHTMLParser, LexborNode

from insidetorch.display import plain
from insidetorch.site import questions
from insidetorch.site.glossary import read_glossary

pytestmark = [pytest.mark.site, pytest.mark.usefixtures("site")]

QUESTIONS = (questions.PAGE, questions.REST)

# What is in focus is in view, at least in part: a browser scrolls no further.
SEEN = """() => {
  const box = document.activeElement.getBoundingClientRect();
  return box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight;
}"""


@pytest.fixture(params=[1280, 390, 320], ids=["desktop", "phone", "small phone"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    yield context.new_page()
    context.close()


def parsed(doc: str) -> LexborHTMLParser:
    return LexborHTMLParser((SITE / f"{doc}.html").read_text(encoding="utf-8"))


@cache
def listed() -> list[dict]:
    """Return the entries of the list of questions."""
    return msgspec.yaml.decode((ROOT / "book" / "questions.yml").read_bytes())


def asked() -> list[LexborNode]:
    """Return the questions as the pages show them."""
    return [li for doc in QUESTIONS for li in parsed(doc).css(".it-questions li")]


def visit(page: Page, doc: str) -> None:
    page.goto(f"{(SITE / doc).as_uri()}.html", wait_until="load")


def in_view(page: Page, id: str) -> bool:
    place = page.locator(f"[id='{id}']").bounding_box()
    assert place is not None
    return 0 <= place["y"] < 800


def test_the_boxes_of_the_map_are_reached_and_followed_by_keyboard(page: Page) -> None:
    visit(page, "book/map")
    links = page.locator(".it-architecture svg a")
    addresses = [link.get_attribute("href") for link in links.all()]
    assert len(addresses) > 4
    page.locator(".it-architecture figure").focus()
    reached = []
    for _ in addresses:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('href')"))
        page.wait_for_function(SEEN)
    assert reached == addresses
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{urlsplit(addresses[-1]).path.removeprefix('..')}")


def test_the_drawing_of_the_map_scrolls_in_its_own_box_and_can_be_read(page: Page) -> None:
    visit(page, "book/map")
    texts = page.locator(".it-architecture svg text").all()
    assert min(text.bounding_box()["height"] for text in texts) > 9
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    assert page.locator(".it-architecture svg").get_attribute("aria-label")


def test_a_link_leads_to_its_verdict_though_those_above_are_not_drawn(browser: Browser) -> None:
    entries = parsed("book/verdicts").css(".it-verdicts .it-verdict")
    ids = [entry.attributes["id"] for entry in entries]
    for id in ids[:: len(ids) // 4]:
        context = browser.new_context(
            viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
        )
        page = context.new_page()
        visit(page, "book/verdicts")
        page.goto(f"{page.url}#{id}")
        entry = f"document.getElementById('{id}')"
        assert page.evaluate(f"getComputedStyle({entry}).contentVisibility") == "auto"
        page.wait_for_function(f"(y => 0 <= y && y < 200)({entry}.getBoundingClientRect().y)")
        context.close()


def test_a_letter_leads_to_its_terms(page: Page) -> None:
    visit(page, "book/glossary")
    letters = page.locator("nav.it-letters a")
    letter = letters.nth(letters.count() // 2)
    letter.focus()
    page.keyboard.press("Enter")
    assert in_view(page, letter.get_attribute("href").removeprefix("#"))


def test_a_term_leads_to_its_entry_and_the_entry_back(page: Page) -> None:
    visit(page, "notebooks/autograd-engine")
    use = page.locator("article a:has(.std-term)", has_text="ready queue").first
    use.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-ready-queue")
    assert in_view(page, "term-ready-queue")
    entry = page.locator("dt#term-ready-queue ~ dd").first
    back = entry.locator(".it-seen a").last
    assert back.inner_text() == "The engine"
    back.click()
    page.wait_for_url("**/autograd-engine.html#*")
    assert in_view(page, urlsplit(page.url).fragment)


def test_the_threads_of_a_question_stand_behind_it() -> None:
    threads = [sorted(one["url"] for one in entry["sources"]) for entry in listed()]
    links = [sorted(link.attributes["href"] for link in one.css("a")[1:]) for one in asked()]
    assert sorted(links) == sorted(threads)


def test_every_term_has_an_entry_that_says_where_it_is_shown() -> None:
    terms = {dt.text().strip(): dt for dt in parsed("book/glossary").css("dt")}
    for entry in read_glossary(ROOT / "book" / "glossary.yml"):
        body = terms[entry.names[0]]
        while body.tag != "dd":
            body = body.next
        seen = body.css_first(".it-seen:has(a)")
        assert seen is not None, entry.names[0]
        assert body.text().replace(seen.text(), "").strip(), entry.names[0]


def test_every_question_is_on_the_page_once() -> None:
    shown = [li.css_first("a").text() for li in asked()]
    assert sorted(shown) == sorted(plain(entry["question"]) for entry in listed())


def test_a_path_leads_to_sections_and_to_whole_pages_only_by_their_name() -> None:
    links = parsed("book/paths").css("article a.reference.internal")
    assert len(links) > 40
    for link in (link.attributes["href"] for link in links):
        address = urlsplit(link)
        doc = (SITE / "book" / address.path).resolve() if address.path else SITE / "book/paths.html"
        assert doc.is_file(), link["href"]
