"""Tests of the built site: every page in a real browser, its search, its links, its notebooks."""

from __future__ import annotations

import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from built_site import CHAPTERS, DOCUMENTS, LEDGER, ROOT, SITE
from playwright.sync_api import Browser, BrowserContext, Page
from selectolax.lexbor import LexborHTMLParser, LexborNode

from insidetorch.publish.two_layers import layers

pytestmark = [pytest.mark.site, pytest.mark.usefixtures("site")]

UNFOLD = "document.querySelectorAll('article details').forEach(d => { d.open = true; })"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# Of a list, whose entries one template makes, axe judges the first, and weekly all.
REST_OF_LISTS = "article :nth-of-type(n+16)"
HANGS = 120_000  # milliseconds; what takes so long will not end


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site below a path prefix: its folder's name."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = partial(Quiet, directory=site.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{site.name}"
        server.shutdown()
        thread.join()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")  # type: ignore[arg-type]
    yield context
    context.close()


def pages() -> list[Path]:
    """Return the pages of the site, without the theme's template files."""
    return sorted(p for p in SITE.rglob("*.html") if "_static" not in p.relative_to(SITE).parts)


@cache
def parsed(path: Path) -> LexborHTMLParser:
    return LexborHTMLParser(path.read_text(encoding="utf-8"))


@cache
def ids(path: Path) -> frozenset[str]:
    """Return the names that a link to a page may end in."""
    return frozenset(str(tag.attributes["id"]) for tag in parsed(path).css("[id]"))


def spread(docs: list[str]) -> list[Any]:
    """Return the pages in two groups, of which each has a process and a browser of its own."""
    mark = pytest.mark.xdist_group
    return [pytest.param(doc, marks=mark(f"pages {i % 2 + 1}")) for i, doc in enumerate(docs)]


def watch(page: Page) -> list[str]:
    """Collect what a page complains of and whom else it talks to."""
    troubles: list[str] = []
    page.on(
        "console",
        lambda message: (
            troubles.append(f"console {message.type}: {message.text}")
            if message.type in ("error", "warning")
            else None
        ),
    )
    page.on("pageerror", lambda error: troubles.append(f"script: {error}"))

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left before it came
            troubles.append(f"not loaded: {request.url} ({request.failure})")

    page.on("requestfailed", failed)

    def elsewhere(request: Any) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("file", "data", "blob") and url.hostname != "127.0.0.1":
            troubles.append(f"talks to {request.url}")

    page.on("request", elsewhere)
    return troubles


def too_wide(page: Page) -> list[str]:
    """Return what reaches out of the page's width, apart from what scrolls in its own box."""
    found: list[str] = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const scrolls = e => e && (/(auto|scroll|hidden)/.test(getComputedStyle(e).overflowX)
                                     || scrolls(e.parentElement));
          return [...document.querySelectorAll('main *')]
            .filter(e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement))
            .map(e => e.outerHTML.slice(0, 120)).concat('the page scrolls sideways');
        }"""
    )
    return found


@pytest.mark.parametrize("doc", spread(DOCUMENTS))
def test_a_page(doc: str, browser: Browser, address: str, tmp_path: Path) -> None:
    """Visit a page twice, at a desktop by HTTP and on a phone as a file, and tell all troubles."""
    found: list[str] = []
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")  # type: ignore[arg-type]
    with closing(context):
        context.set_default_timeout(HANGS)
        page = context.new_page()
        troubles = watch(page)
        page.goto(f"{address}/{doc}.html", wait_until="load")
        found += head_of(page, doc) + too_wide(page)
        if doc not in CHAPTERS:
            page.keyboard.press("F3")  # lists are parsed, before they are shortened
            page.evaluate(f"document.querySelectorAll('{REST_OF_LISTS}').forEach(e => e.remove())")
        found += inaccessible(page, "light")
        page.emulate_media(color_scheme="dark")
        found += inaccessible(page, "dark")
        if doc in CHAPTERS:
            found += folded_for_ever(page) + not_downloaded(page, tmp_path) + cut_off(page)
        found += [f"by HTTP, {trouble}" for trouble in troubles]
    options: Any = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    with closing(browser.new_context(**options)) as context:
        context.set_default_timeout(HANGS)
        page = context.new_page()
        troubles = watch(page)
        page.goto(f"{SITE.as_uri()}/{doc}.html", wait_until="load")
        page.wait_for_timeout(200)
        found += [f"on a phone, {trouble}" for trouble in too_wide(page)]
        # What a small phone shows, and a desktop at four times the size.
        page.set_viewport_size({"width": 320, "height": 640})
        found += [f"on a small phone, {trouble}" for trouble in too_wide(page)]
        if doc in CHAPTERS:
            page.set_viewport_size(PHONE)  # type: ignore[arg-type]
            found += [f"on a phone, {trouble}" for trouble in missed(page) + sideways(page)]
        found += [f"as a file, {trouble}" for trouble in troubles]
    assert not found, f"{doc}:\n" + "\n".join(found)


@pytest.mark.weekly
@pytest.mark.parametrize("doc", spread([doc for doc in DOCUMENTS if doc not in CHAPTERS]))
def test_axe_finds_nothing_in_the_rest_of_a_list(
    doc: str, context: BrowserContext, address: str
) -> None:
    context.set_default_timeout(HANGS)
    page = context.new_page()
    page.goto(f"{address}/{doc}.html", wait_until="load")
    found = inaccessible(page, "light")
    page.emulate_media(color_scheme="dark")
    assert found + inaccessible(page, "dark") == []


def head_of(page: Page, doc: str) -> list[str]:
    """Return what the page's head lacks: a description, a title, an icon."""
    found = []
    if not page.locator("meta[name=description]").first.get_attribute("content"):
        found.append("the page has no description")
    title = page.locator("article h1").first.inner_text().rstrip("#").strip()
    if not title or "Inside PyTorch" not in page.title():
        found.append(f"the page is titled {page.title()!r} and headed {title!r}")
    icon = page.locator("link[rel~='icon']").first.get_attribute("href")
    if not icon or not (SITE / doc).parent.joinpath(urlsplit(icon).path).is_file():
        found.append(f"the icon {icon} is no file")
    return found


def inaccessible(page: Page, theme: str) -> list[str]:
    """Return what axe finds in a theme; in the dark one only its colours are judged."""
    from axe_playwright_python.sync_playwright import Axe

    page.wait_for_function(f"document.documentElement.dataset.theme === '{theme}'")
    # Colours fade in; they are judged when they have arrived.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    page.wait_for_function("document.getAnimations().every(a => a.playState !== 'running')")
    options: dict[str, Any] = {} if theme == "light" else {"runOnly": ["color-contrast"]}
    options |= {"resultTypes": ["violations"], "selectors": False}  # no list of all that is well
    report = Axe().run(page, options=options).response
    assert report["passes"]
    return [
        f"{theme}: {violation['id']} ({violation['impact']}): {node['html'][:160]}"
        for violation in report["violations"]
        for node in violation["nodes"][:3]
    ]


def folded_for_ever(page: Page) -> list[str]:
    """Return what is wrong with the first folded solution, which the keyboard opens."""
    page.keyboard.press("F3")  # what is folded is parsed
    folded = page.locator("article div.cell details.hide").filter(has_text="Show the solution")
    if folded.count() < 3:
        return [f"{folded.count()} solutions are folded"]
    code = folded.first.locator("pre").first
    # An exercise may stand in a section that folds as a whole.
    folded.first.evaluate("""solution => {
      for (let around = solution; (around = around.parentElement.closest("details")); )
        around.open = true;
    }""")
    before = code.is_visible()
    folded.first.locator("summary").focus()
    page.keyboard.press("Enter")
    code.wait_for(state="visible")
    return ["a solution is open from the start"] if before or not code.inner_text().strip() else []


def not_downloaded(page: Page, folder: Path) -> list[str]:
    """Return what is wrong with the notebook that the page offers."""
    with page.expect_download() as download:
        page.locator(".it-stamp a[download]").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    with zipfile.ZipFile(path) as archive:
        wheel, name = sorted(archive.namelist(), key=lambda name: name.endswith(".ipynb"))
        notebook = nbformat.v4.reads(archive.read(name).decode())
    nbformat.validate(notebook)
    sound = wheel.endswith(".whl") and any(cell.get("outputs") for cell in notebook.cells)
    return [] if sound else [f"{path.name} is offered, no notebook with outputs and a wheel"]


def cut_off(page: Page) -> list[str]:
    """Return the words of pictures that reach out of their picture, folded ones too."""
    page.evaluate(UNFOLD)
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('article svg')].flatMap(svg => {
          const box = svg.getBoundingClientRect();
          const out = ({left, right, top, bottom, width}) => width && (left < box.left - 3
            || right > box.right + 3 || top < box.top - 3 || bottom > box.bottom + 3);
          return box.width < 60 ? [] : [...svg.querySelectorAll('text')]
            .filter(text => out(text.getBoundingClientRect()))
            .map(text => `a picture cuts off "${text.textContent.trim()}"`);
        })"""
    )
    return found


def sideways(page: Page) -> list[str]:
    """Tell if more than a tenth of the cells scroll sideways, folded ones too."""
    page.evaluate(UNFOLD)
    page.add_style_tag(content="article pre { content-visibility: visible !important }")
    cells = page.locator("article div.cell").count()
    wide: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("article div.cell")]
          .map(cell => [...cell.querySelectorAll("*")].find(e => e.clientWidth
            && e.scrollWidth > e.clientWidth + 1
            && /(auto|scroll)/.test(getComputedStyle(e).overflowX)))
          .filter(Boolean).map(e => e.outerHTML.replace(/<[^>]*>/g, " ").trim().slice(0, 60))"""
    )
    if len(wide) * 10 <= cells:
        return []
    return [f"{len(wide)} of {cells} cells scroll sideways: {wide}"]


def missed(page: Page) -> list[str]:
    """Tell if a link does not lead to its place, where the code above is not drawn yet."""
    style = "getComputedStyle(document.querySelector('article pre')).contentVisibility"
    assert page.evaluate(style) == "auto"
    anchors = page.evaluate("[...document.querySelectorAll('article section[id]')].map(e => e.id)")
    anchor = anchors[-1]
    page.evaluate(f"location.hash = {json.dumps(anchor)}")
    page.wait_for_timeout(400)
    top = page.evaluate(f"document.getElementById({anchor!r}).getBoundingClientRect().top")
    end = page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
    return [] if -5 <= top < 200 or end else [f"#{anchor} is {top} px off"]


def test_the_first_page_is_reached_from_the_folder(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    page.goto(f"{address}/index.html")
    page.wait_for_url("**/book/index.html")
    assert page.locator("article h1").count() == 1


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_search_of_a_page_leads_to_places(
    context: BrowserContext, address: str, scheme: str
) -> None:
    page = context.new_page()
    troubles = watch(page)
    start = address if scheme == "http" else SITE.as_uri()
    page.goto(f"{start}/{DOCUMENTS[0]}.html")
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[type=search]")
    field.wait_for(state="visible")
    field.fill("evaluate_function")
    icon = page.locator("#pst-search-dialog i").bounding_box()
    text = field.bounding_box()
    inset = field.evaluate("e => parseFloat(getComputedStyle(e).paddingLeft)")
    assert icon["x"] + icon["width"] <= text["x"] + inset
    field.press("Enter")
    page.wait_for_url("**/search.html?*")
    page.locator(".it-found a", has_text="Engine::evaluate_function").first.click()
    page.wait_for_url("**/autograd-engine.html#excerpt-Engine-evaluate_function")
    assert troubles == []


def test_the_theme_can_be_switched_to_dark(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    page.goto(f"{address}/{CHAPTERS[0]}.html")
    shades = {}
    for _ in range(3):
        theme = page.evaluate("document.documentElement.dataset.theme")
        shades[theme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator(".article-header-buttons .theme-switch-button").click()
    assert set(shades) == {"light", "dark"}
    assert shades["light"] != shades["dark"]


def words_of(picture: LexborNode) -> int:
    """Count the words that say what a picture shows."""
    said = picture.attributes.get("aria-label") or picture.attributes.get("alt") or ""
    return len(said.split())


def test_every_picture_says_in_words_what_it_shows() -> None:
    lacking = [
        f"{path.relative_to(SITE)}: {str(picture.html)[:100]}"
        for path in pages()
        for picture in parsed(path).css("article figure svg, article img")
        if words_of(picture) < 3
    ]
    assert lacking == []


@pytest.mark.parametrize("doc", CHAPTERS)
def test_the_stamp_says_what_the_ledger_says(doc: str) -> None:
    ledger = json.loads(LEDGER.read_text(encoding="utf-8"))
    entry = next(chapter for chapter in ledger["chapters"] if chapter["doc"] == doc)
    stamp = parsed(SITE / f"{doc}.html").css_first("h1 + ul.it-stamp")
    assert stamp is not None
    text = stamp.text(separator=" ")
    claims = [record for record in entry["records"] if record["kind"] == "claim"]
    verdicts = [record for record in entry["records"] if record["kind"] == "verdict"]
    assert ledger["torch"] in text
    assert f"{len(claims)} of {len(claims)} claims held" in text
    assert not verdicts or f"{len(verdicts)} verdicts" in text
    assert stamp.css_first(f"a[href$='{ledger['commit']}']") is not None
    assert stamp.css_first(".it-freshness").text() in ("fresh", "cached")


@pytest.mark.parametrize("doc", CHAPTERS)
def test_every_cell_with_an_output_shows_one(doc: str) -> None:
    book = notebook_of(doc).cells
    cells = [
        cell for cell, made in zip(book, layers(book), strict=True)
        if cell.cell_type == "code" and cell.id != "install"
        and any("it-setup" not in one["metadata"].get("tags", ()) for one in made)
        and (cell.outputs or "remove-cell" not in cell.metadata.get("tags", []))
    ]  # fmt: skip
    shown = parsed(SITE / f"{doc}.html").css("article div.cell:not(.tag_it-setup)")
    assert len(shown) == len(cells)
    for number, (cell, box) in enumerate(zip(cells, shown, strict=True), start=1):
        outputs = box.css(".cell_output")
        assert bool(outputs) == bool(cell.outputs), f"cell {number} of {doc}"
        assert all(output.text(strip=True) or output.css_first("svg, img") for output in outputs)


def test_links_and_anchors_lead_somewhere() -> None:
    """Follow every relative link of every page to its file and its anchor."""
    broken = []
    for path in pages():
        for tag in parsed(path).css("a, link, script, img, source"):
            link = urlsplit(tag.attributes.get("href") or tag.attributes.get("src") or "")
            if link.scheme or link.netloc or not (link.path or link.fragment):
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            if link.path.startswith("/") or not target.is_file():
                broken.append(f"{path.relative_to(SITE)}: {link.geturl()}")
            elif link.fragment.startswith("profileURL="):
                # The viewer of traces takes what it opens, seen from its own page.
                trace = link.fragment.removeprefix("profileURL=").partition("&")[0]
                if not (target.parent / trace).is_file():
                    broken.append(f"{path.relative_to(SITE)}: {link.geturl()} (no such trace)")
            elif link.fragment.partition(":~:")[0] and target.suffix == ".html":
                name = unquote(link.fragment.partition(":~:")[0])
                if tag.tag == "a" and name not in ids(target):
                    broken.append(f"{path.relative_to(SITE)}: {link.geturl()} (no such anchor)")
    assert broken == []


def test_the_site_tells_nothing_of_the_machine_it_was_built_on() -> None:
    places = [str(ROOT), str(Path.home())]
    texts = [path for suffix in ("html", "ipynb", "md", "js") for path in SITE.rglob(f"*.{suffix}")]
    assert texts
    telling = [
        f"{path.relative_to(SITE)}: {place}"
        for path in texts
        for place in places
        if re.search(rf"{re.escape(place)}\b", path.read_text(encoding="utf-8"))
    ]
    assert telling == []


def notebook_of(doc: str) -> Any:
    # Valid it is: myst-nb has read it.
    return nbformat.v4.reads((SITE / "_sources" / f"{doc}.ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("doc", CHAPTERS)
def test_the_landing_page_and_the_map_lead_to_each_chapter(doc: str) -> None:
    ledger = json.loads(LEDGER.read_text(encoding="utf-8"))
    entry = next(chapter for chapter in ledger["chapters"] if chapter["doc"] == doc)
    quotes = any(record["kind"] == "excerpt" and record["file"] for record in entry["records"])
    for page in ("book/index", *(["book/source-map"] if quotes else [])):
        (article,) = parsed(SITE / f"{page}.html").css("article.bd-article")
        assert article.css_first(f"a[href$='{doc}.html']") is not None, page
