"""Tests of the search: its words and its index, and what readers of the built site find with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from built_site import ROOT, SITE
from playwright.sync_api import Browser, Page

from insidetorch.decode import decode
from insidetorch.site.search import Alias, Place, _Reader, _without_colours, files, stem, words

PAGE = """<nav><p>not this</p></nav><article><section id="one"><h1>One <code>x_y</code>
<a class="headerlink">#</a></h1><ul class="it it-stamp"><li>stamped</li></ul><p>Some text.</p>
<section id="two"><span id="a-label"></span><details><summary><h2>Two</h2></summary>
<div class="cell_input"><pre><span class="n">code</span></pre></div>
<figure id="excerpt-f" class="it it-excerpt"><figcaption><span class="it-symbol">a::f</span>
<span class="it-place">f.h</span></figcaption><pre>inside</pre></figure>
<svg><text>drawn</text></svg></details></section><p>After it.</p></section></article>
<p>nor this</p>"""

# What somebody types, and where it should lead. Names, messages, questions; then Chinese.
ENGINE, GRAPH, MODULE = (
    "notebooks/autograd-engine",
    "notebooks/autograd-graph",
    "notebooks/nn-module",
)
WANTED = {
    "evaluate_function": f"{ENGINE}#excerpt-Engine-evaluate_function",
    "GraphTask": f"{ENGINE}#excerpt-torch-autograd-GraphTask",
    "ready queue": "book/glossary#term-ready-queue",
    "AccumulateGrad": f"{ENGINE}#excerpt-torch-autograd-AccumulateGrad-accumulateGrad",
    "THPEngine_run_backward": f"{ENGINE}#engine-into-cpp",
    "Engine::thread_main": f"{ENGINE}#excerpt-Engine-thread_main",
    "_call_impl": f"{MODULE}#excerpt-torch-nn-modules-module-Module-_call_impl",
    "register_full_backward_hook": f"{MODULE}#module-backward-hooks",
    "state_dict": f"{MODULE}#module-state-dict",
    "zero_grad": "notebooks/optimizers#excerpt-torch-optim-optimizer-Optimizer-zero_grad",
    "unscale": "notebooks/amp#excerpt-torch-amp-grad_scaler-GradScaler-unscale_",
    "dispatch key set": "book/glossary#term-key-set",
    "TensorIterator": "notebooks/tensor-iterator#excerpt-at-TensorIteratorBase",
    "modified by an inplace operation": f"{GRAPH}#graph-inplace-error",
    "one of the variables needed for gradient computation has been modified by an inplace": (
        f"{GRAPH}#graph-inplace-error"
    ),
    "Trying to backward through the graph a second time": f"{ENGINE}#engine-freeing",
    "how a claim held": "book/how-to-read#read-claims",
    "foreach or fused optimizer": "notebooks/optimizers#optim-forms",
    "view size is not compatible with input tensor's size and stride": (
        "notebooks/views-and-strides#views-view"
    ),
    "loss is NaN with autocast": "notebooks/amp#amp-which",
    "does backward inside backward deadlock": f"{ENGINE}#engine-reentrant",
    "why is zero_grad setting None": "notebooks/optimizers#optim-grads",
    "find my graph breaks": "notebooks/dynamo#dynamo-breaks",
    "what is a leaf tensor": f"{GRAPH}#graph-edges",
    "no_grad or inference_mode or detach": f"{GRAPH}#graph-detach",
    "显存": "notebooks/caching-allocator#alloc-short-answer",
    "反向传播": f"{ENGINE}#engine-short-answer",
    "学习率": "notebooks/optimizers#optim-schedules",
    "初始化": "book/references#ref-gemfield-init",
    "完美转发": "book/references#ref-zhihu-perfect-forwarding",
    "动态生成": "book/references#ref-gemfield-aten-codegen",
    "梯度": f"{GRAPH}#graph-short-answer",
    "显存碎片": "notebooks/caching-allocator#alloc-fragments",
}


def test_names_count_whole_and_by_their_parts_and_chinese_by_two_characters() -> None:
    assert dict(words("Engine::evaluate_function")) == {
        "engin": 1, "evaluate_function": 1, "evaluat": 0.5, "function": 0.5,
    }  # fmt: skip
    assert dict(words("AutogradMeta TH_2")) == {
        "autogradmeta": 1, "autograd": 0.5, "meta": 0.5, "th_2": 1, "th": 0.5,
    }  # fmt: skip
    chinese = [word for word, _ in words("PyTorch显存管理 of 图")][-4:]
    assert chinese == ["显存", "存管", "管理", "图"]
    assert dict(words("unscale_ x")) == {"unscale_": 1, "unscal": 0.5, "x": 1}
    assert {stem(word) for word in ("compile", "compiles", "compiled", "compiling")} == {"compil"}


def test_a_page_is_read_as_its_sections_and_excerpts() -> None:
    reader = _Reader("doc", False)
    reader.feed(_without_colours(PAGE))
    found = {place.anchor: place for place in reader.places}
    assert list(found) == ["excerpt-f", "a-label", "one"]
    one, two, excerpt = found["one"], found["a-label"], found["excerpt-f"]
    assert "".join(one.title.split()) == "Onex_y" and "text" in one.words and "after" in one.words
    assert not {"stamp", "drawn", "this", stem("inside")} & (one.words.keys() | two.words.keys())
    assert (excerpt.kind, excerpt.title, excerpt.note) == ("Source", "a::f", "f.h")
    assert stem("inside") in excerpt.words and two.words["two"] > two.words["cod"]


def test_the_index_is_cut_into_small_files_that_hold_it_all() -> None:
    places = [
        Place("Section", "doc", f"a{n}", f"T {n}", words={f"w{n % 7}": 1.0, f"x{n}": 2.0})
        for n in range(2000)
    ]
    made = dict(files(places, {"doc": "Doc"}))
    assert max(len(text) for text in made.values()) < 14_000
    index = part(made["index.js"])
    shown = {k: v for at in range(len(index["p"])) for k, v in part(made[f"p{at}.js"]).items()}
    assert len(shown) == index["count"] == 2000 and shown["17"][2] == "a17"
    found = {k: v for at in range(len(index["t"])) for k, v in part(made[f"t{at}.js"]).items()}
    assert list(found) == sorted(found) and [*index["t"]] == [
        next(iter(part(made[f"t{at}.js"]))) for at in range(len(index["t"]))
    ]
    steps = [int(step, 36) for step in re.findall(r"([0-9a-z]+)[A-Z]", found["w3"])]
    assert [sum(steps[: at + 1]) for at in range(3)] == [3, 10, 17]


def test_the_index_says_how_much_of_a_title_a_word_is() -> None:
    def letters(kind: str, title: str, word: str, anchor: str = "a") -> str:
        place = Place(kind, "doc", anchor, title)
        place.add(title, 1)
        others = [Place("Section", "doc", "b", "T", words={"t": 3.0})]
        made = dict(files([place, *others], {"doc": "Doc"}))
        return part(made["t0.js"])[word].removeprefix("0")

    assert letters("Section", "4. State dicts", "dict")[1] == "C"  # one word of two
    assert letters("Source", "torch::Engine::run", "run")[1] == "B"  # its name is the last
    assert len(letters("Source", "torch::Engine::run", "engin")) == 1
    plain = letters("Section", "Views", "view")
    assert plain[1] == letters("Section", "Deeper: views", "view")[1] == "B"
    assert plain[0] > letters("Section", "Deeper: views", "view")[0]
    assert plain[0] > letters("Question", "Views", "view")[0]
    assert plain[0] > letters("Source", "Views", "view", "excerpt-miniatures-views")[0]


def part(text: str) -> dict:
    name, data = re.fullmatch(r'insideSearch\("(\w+)",(.*)\)', text, re.DOTALL).groups()
    assert name
    return json.loads(data)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def look_up(page: Page, query: str) -> list[str]:
    """Search for something; return the places that are found, best first."""
    page.goto("about:blank")
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={quote(query)}")
    page.wait_for_function("document.querySelector('.it-found-count').textContent")
    links = page.locator(".it-found li > a")
    return [unquote(str(link.get_attribute("href"))).replace(".html", "") for link in links.all()]


@pytest.mark.site
@pytest.mark.usefixtures("site")
def test_readers_find_the_right_place_among_the_first_three(page: Page) -> None:
    assert len(WANTED) == 33
    lost, heavy = {}, {}
    for query, place in WANTED.items():
        found = look_up(page, query)[:3]
        if place not in found:
            lost[query] = found
        scripts = page.evaluate("[...document.head.querySelectorAll('script')].map(s => s.src)")
        parts = [Path(unquote(source.removeprefix("file://"))) for source in scripts]
        size = sum(path.stat().st_size for path in parts if path.parent.name == "search")
        if not 1000 < size < 300_000:
            heavy[query] = size
    assert len(lost) <= 3, lost
    assert heavy == {}


@pytest.mark.site
@pytest.mark.usefixtures("site")
def test_results_are_as_wide_as_a_phone_and_open_at_their_place(page: Page) -> None:
    wrong = []
    for query in ("evaluate_function", "state_dict", "find my graph breaks", "ready queue", "显存"):
        look_up(page, query)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append(f"the results of {query} scroll sideways")
        link = page.locator(".it-found li > a").first
        anchor = unquote(str(link.get_attribute("href"))).partition("#")[2]
        link.click()
        page.wait_for_load_state()
        page.wait_for_timeout(300)
        top = page.evaluate(f"document.getElementById({anchor!r}).getBoundingClientRect().top")
        if not -5 <= top < 844:
            wrong.append(f"{query} opens {page.url}, which is {top} px off")
    assert wrong == []


@pytest.mark.site
@pytest.mark.usefixtures("site")
def test_what_nothing_has_gets_a_sentence_and_more_places_come_when_asked(page: Page) -> None:
    assert look_up(page, "qqqqzzzz") == []
    assert "No place has “qqqqzzzz”" in page.locator(".it-found-count").inner_text()
    shown = len(look_up(page, "backward"))
    assert 5 < shown <= 10
    page.locator(".it-more button").click()
    links = "document.querySelectorAll('.it-found li > a').length"
    page.wait_for_function(f"{links} > {shown}")


def test_chinese_words_lead_to_labels_of_the_book() -> None:
    pages = [*(ROOT / "notebooks").glob("*.md"), *(ROOT / "book").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    labels = set(re.findall(r"^\(([\w-]+)\)=", text, re.MULTILINE))
    entries = decode(list[Alias], ROOT / "book/chinese.yml")
    assert {entry.label for entry in entries} <= labels
    assert all("\u3400" <= word[0] <= "\u9fff" for entry in entries for word in entry.words.split())
