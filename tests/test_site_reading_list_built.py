"""The reading list as Sphinx builds it, and its filter in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page
from test_site_reading_list import NODES, RECORD, SITE
from tiny_site import Build, build_site

from insidetorch.site.bibliography import (
    STATES,
)

CONF = """
extensions = ["myst_parser", "sphinxcontrib.bibtex", "insidetorch.site"]
bibtex_bibfiles = ["book/references.bib"]
bibtex_cite_id = "ref-{key}"
bibtex_reference_style = "author_year"
html_math_renderer = "mathml"
html_theme = "basic"
nitpicky = True
insidetorch_ledger = "ledger.json"
"""
BIB = (
    "@misc{a-text,\n author = {{Some Body}}, title = {{A text}}, langid = {en}, "
    "keywords = {autograd}}\n"
    "@misc{other, title = {{Other}}, langid = {zh}, keywords = {autograd}}\n"
)
ENTRY = {
    "id": "nodes-run", "sentence": "Nodes run.", "chapter": "notebooks/nodes",
    "sources": [{"title": "A text", "year": 2019, "url": "https://example.org", "ref": "a-text"}],
}  # fmt: skip
FILES = {
    "conf.py": CONF,
    "index.md": "# A book\n\n```{toctree}\nnotebooks/nodes\nbook/verdicts\nbook/references\n```\n",
    "notebooks/nodes.md": (
        "# Nodes\n\nAs {cite:p}`a-text` says.\n\n```{raw} html\n"
        '<div class="it it-verdict it-refuted">Refuted</div>\n```\n'
    ),
    "book/references.md": "# References\n\n```{reading-list}\n```\n\n```{bibliography}\n```\n",
    "book/verdicts.md": "# Verdicts\n\n```{survival}\n```\n\n```{verdicts}\n```\n",
    "book/references.bib": BIB,
    "book/subjects.yml": "- {id: autograd, title: Autograd, chapters: [notebooks/nodes]}\n",
    "book/verdicts.yml": yaml.safe_dump([ENTRY]),
}
LEDGER = json.dumps(
    {
        "torch": "9.8.7",
        "chapters": [{"doc": NODES, "title": "Nodes", "records": [RECORD]}],
    }
)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return what builds a small site: with changed files, to its warnings and its pages."""
    return partial(build_site, tmp_path, FILES)


class TestSite:
    def test_citations_and_verdicts_lead_to_what_they_name(self, build: Build) -> None:
        said, pages = build(**{"ledger.json": LEDGER})
        assert said == []
        (cited,) = pages["nodes"].select("a[href*='#ref-']")
        assert cited["href"] == "../book/references.html#ref-a-text"
        assert len(pages["references"].select("#ref-a-text")) == 1
        assert pages["references"].select("div.citation, dl.citation") == []
        (settled,) = pages["references"].select("[data-s=settled] .it-state a[href*=verdict]")
        assert settled["href"] == "verdicts.html#verdict-nodes-run"
        (cell,) = pages["verdicts"].select("#verdict-nodes-run .it-ran a")
        assert cell["href"] == "../notebooks/nodes.html#verdict-nodes-run"
        assert pages["nodes"].select_one("#verdict-nodes-run").get_text() == "Refuted"
        scripts = [tag.get("src", "") for tag in pages["references"].select("script")]
        assert any(source.split("?")[0].endswith("filter.js") for source in scripts)
        assert "filter.js" not in str(pages["nodes"])

    def test_without_a_ledger_the_list_stands_and_the_verdicts_say_so(self, build: Build) -> None:
        said, pages = build()
        assert said == []
        assert len(pages["references"].select(".it-refs li")) == 2
        assert pages["references"].select_one("[data-s=settled]")["id"] == "ref-a-text"
        assert pages["verdicts"].get_text().count("the site was built without it") == 2
        assert not pages["nodes"].select("#verdict-nodes-run")

    def test_a_new_verdict_shows_without_touching_the_page(self, build: Build) -> None:
        build(**{"ledger.json": LEDGER, "book/verdicts.yml": "[]\n"})
        said, pages = build(**{"ledger.json": LEDGER})
        assert said == []
        assert pages["references"].select_one("[data-s=settled]")["id"] == "ref-a-text"

    @pytest.mark.parametrize(
        ("name", "text", "problem"),
        [
            ("book/verdicts.yml", yaml.safe_dump([ENTRY]).replace("ref: a-text", "ref: a-txt"),
             "names the reference 'a-txt', which is not in book/references.bib"),
            ("book/subjects.yml", "[]\n", "the subject 'autograd' of 'a-text' has no chapter"),
            ("book/references.bib", BIB.replace("{zh}", "{xx}"), "'other' has the langid 'xx'"),
            ("ledger.json", LEDGER.replace('"kind": "verdict"', '"kind": "claim"'),
             "settled by 0 cells"),
        ],
    )  # fmt: skip
    def test_a_hole_fails_the_build(self, build: Build, name: str, text: str, problem: str) -> None:
        said, _ = build(**{"ledger.json": LEDGER, name: text})
        assert any(line.startswith("WARNING: ") and problem in line for line in said), said


@pytest.fixture
def list_page(site: Path, browser: Browser) -> Iterator[Callable[[bool], Page]]:
    """Return what opens the References page of the built site, with JavaScript or without."""
    contexts = []

    def opened(scripts: bool) -> Page:
        contexts.append(browser.new_context(java_script_enabled=scripts))
        page = contexts[-1].new_page()
        page.goto((site / "book" / "references.html").as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.site
class TestFilter:
    def test_by_mouse_each_choice_leaves_what_fits(self, list_page: Callable) -> None:
        page = list_page(True)
        assert page.locator(".it-filter output").inner_text() == "294 of 294"
        page.locator("select[name=l]").select_option("zh")
        chinese = page.locator(".it-refs li:visible").count()
        assert 0 < chinese < 294
        assert page.locator(".it-refs li[data-l=en]:visible").count() == 0
        page.locator("select[name=t]").select_option("memory")
        both = page.locator(".it-refs li:visible")
        assert 0 < both.count() < chinese
        assert all("memory" in (item.get_attribute("data-t") or "").split() for item in both.all())
        assert page.locator(".it-filter output").inner_text() == f"{both.count()} of 294"
        headings = page.locator(".it-refs section:visible")
        assert all(one.locator("li:visible").count() for one in headings.all())
        page.locator(".it-filter button").click()
        page.wait_for_function("document.querySelector('.it-filter output').value[0] == '2'")
        assert page.locator(".it-refs li:visible").count() == 294

    def test_by_keyboard_too(self, list_page: Callable) -> None:
        page = list_page(True)
        page.locator("select[name=s]").focus()
        shown = []
        for kind in STATES:
            page.keyboard.press("ArrowDown")
            assert page.locator("select[name=s]").input_value() == kind
            shown.append(page.locator(".it-refs li:visible").count())
            assert page.locator(f".it-refs li[data-s={kind}]:visible").count() == shown[-1]
        assert sum(shown) == 294
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelectorAll('.it-refs li[hidden]').length == 0")

    def test_without_scripts_all_is_there_and_reached_by_subject(self, list_page: Callable) -> None:
        page = list_page(False)
        assert page.locator(".it-refs li:visible").count() == 294
        assert not page.locator("form.it-filter").is_visible()
        page.locator(".it-letters a", has_text="Mixed precision").click()
        assert page.url.endswith("#subject-amp")

    def test_the_page_is_light(self) -> None:
        assert (SITE / "book" / "references.html").stat().st_size < 200_000
