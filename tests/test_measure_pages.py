"""The measuring of pages: what counts as code, picture, excerpt and prose, and how high it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from built_site import ROOT
from playwright.sync_api import Browser

sys.path.insert(0, str(ROOT / "scripts"))

import measure_pages

PAGE = """<style>* { margin: 0; padding: 0; line-height: 20px; font-size: 16px }
.h { height: 450px } h3 { display: inline }
.cell_input, .it-excerpt, .it-picture, .it-claim { height: 90px }</style>
<header class="h"></header><article class="bd-article">
<h1>Two words</h1><p>Three more words, — no fourth.</p>
<div class="cell"><div class="cell_input"><pre>x = 1</pre></div>
<div class="cell_output"><p>not prose</p><figure class="it it-excerpt"><pre>code</pre></figure>
<figure class="it it-picture"><figure class="it-figure"></figure></figure>
<div class="it it-claim it-held"><p>It holds.</p>
<details class="it-how"><summary>how</summary><pre class="h">claim</pre></details></div></div></div>
<section><details class="it-deeper"><summary><h3>Deeper: more</h3></summary>
<p class="h">Hidden words.</p><div class="it it-claim it-held"></div>
<figure class="it it-picture"></figure></details></section></article>"""


@pytest.mark.slow
def test_a_page_is_measured_as_its_reader_meets_it(tmp_path: Path, browser: Browser) -> None:
    path = tmp_path / "a.html"
    path.write_text(f"<!doctype html>{PAGE}", encoding="utf-8")
    page = measure_pages.measure(browser, path)
    core = 20 + 20 + 90 + 20 + 90 + 90 + 90 + 20
    assert page.core * 900 == pytest.approx(core, abs=3)
    assert page.screens * 900 == pytest.approx(core + 450 + 90 + 90, abs=3)
    for share in (page.code, page.pictures, page.excerpts):
        assert share == pytest.approx(90 / core, abs=0.01)
    assert page.prose == pytest.approx(60 / core, abs=0.01)
    assert (page.checks, page.count, page.words) == (1, 2, 9)
    assert page.longest * 900 == pytest.approx(240, abs=3)
    opened = measure_pages.measure(browser, path, deeper=True)
    assert opened.prose > 0.4 and opened.longest > page.longest
    assert (opened.core, opened.screens, opened.words) == (page.core, page.screens, page.words)


def test_what_misses_a_bar_has_a_star() -> None:
    good = measure_pages.Page(30.0, 15.0, 0.1, 0.2, 0.4, 0.05, 20, 9, 3.0, 3000)
    bad = measure_pages.Page(30.0, 17.0, 0.16, 0.02, 0.4, 0.05, 21, 9, 7.0, 2000)
    _, first, second = measure_pages.lines([("good", good), ("bad", bad)])
    assert "*" not in first and second.count("*") == len(measure_pages.BARS)
    assert first.split()[:4] == ["good", "30.0", "15.0", "10%"]
