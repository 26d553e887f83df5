"""What a recording from elsewhere may show: nothing active, nothing from another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_recordings import elements

from insidetorch.gpu import sanitise
from insidetorch.records import RECORD_MIME

# ── What a foreign recording may show ───────────────────────────────────────────────────────────

ATTACKS = [
    "<script>window.hacked = 1</script>", "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=window.hacked=1>", '<img src="https://evil.example/a.png">',
    '<img srcset="https://evil.example/a.png 1x">', "<svg onload=window.hacked=1></svg>",
    "<svg><script>window.hacked=1</script></svg>", '<a href="javascript:window.hacked=1">x</a>',
    '<svg><image href="https://evil.example/a.png"/></svg>',
    '<svg><image xlink:href="//evil.example/a.png"/></svg>',
    '<svg><use href="https://evil.example/a.svg#b"/></svg>',
    "<svg><foreignObject><iframe src=//evil.example></iframe></foreignObject></svg>",
    "<svg><style>@import 'https://evil.example/a.css';</style></svg>",
    '<svg><rect fill="url(https://evil.example/a.svg#b)"/></svg>',
    "<svg><animate onbegin=window.hacked=1 attributeName=x dur=1s></svg>",
    "<style>body{background:url(https://evil.example/a)}</style>",
    '<p style="background:url(https://evil.example/a)">x</p>',
    '<p style="position:fixed;inset:0">x</p>', '<link rel=stylesheet href="//evil.example/a.css">',
    "<iframe src=//evil.example></iframe>", '<object data="//evil.example/a"></object>',
    '<embed src="//evil.example/a">', '<form action="//evil.example"><input name=x></form>',
    '<meta http-equiv=refresh content="0;url=//evil.example">', '<base href="//evil.example/">',
    '<video src="//evil.example/a" autoplay></video>', "<details open ontoggle=window.hacked=1>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 "
    'onerror=window.hacked=1&gt;">', "<noscript><p title='</noscript><img src=x onerror="
    "window.hacked=1>'></noscript>", "<!--><img src=x onerror=window.hacked=1>-->",
    "<b title='`'><img src=x onerror=window.hacked=1>", "</p onclick=window.hacked=1 x='<img src="
    "//evil.example/a>'>", "<p/onclick=window.hacked=1>x",
    '<p title="a"onclick="window.hacked=1">x',
    "<textarea></textarea><img src=x onerror=window.hacked=1>", "<![CDATA[<img src=x onerror="
    "window.hacked=1>]]>", "<svg></p><style><a id=\"</style><img src=1 onerror=window.hacked=1>\">",
    "<svg><title><![CDATA[</title><img src=x onerror=window.hacked=1>]]></title></svg>",
    "<input autofocus onfocus=window.hacked=1>",
    '<a href="data:text/html,<script>1</script>">x</a>',
    '<img src="data:image/svg+xml;base64,PHN2Zz4=">', "<p class='modal fixed-top'>x</p>",
]  # fmt: skip
FORBIDDEN_TAGS = {
    "script", "style", "iframe", "object", "embed", "form", "input", "link", "meta", "base",
    "video", "foreignobject", "animate", "math", "noscript", "textarea", "set",
}  # fmt: skip
FORBIDDEN_VALUE = re.compile(
    r"evil\.example|javascript:|position|fixed-top|svg\+xml|text/html", re.IGNORECASE
)


class Active(HTMLParser):
    """Collects what could act or fetch in a fragment."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in FORBIDDEN_TAGS:
            self.found.append(tag)
        for name, value in attrs:
            harmless = name in ("title", "alt") or name.startswith("aria-")
            if name.startswith("on") or (not harmless and FORBIDDEN_VALUE.search(value or "")):
                self.found.append((tag, name, value))


@pytest.mark.slow
@given(st.sampled_from(ATTACKS), elements(), st.data())
@settings(max_examples=300, deadline=None)
def test_nothing_active_or_external_is_ever_shown(
    attack: str, fragment: str, data: st.DataObject
) -> None:
    at = data.draw(st.sampled_from([m.start() for m in re.finditer("<", fragment)] or [0]))
    clean = sanitise.html(fragment[:at] + attack + fragment[at:])
    assert not Active(clean).found
    assert sanitise.html(clean) == clean


def test_what_is_safe_around_an_attack_stays() -> None:
    clean = sanitise.html('<p class="it">a<script>1</script> <b onclick="x()">b</b></p>')
    assert clean == '<p class="it">a <b>b</b></p>'


@pytest.mark.parametrize(
    "fragment",
    [
        "<p title=a/onclick=x()>b", "<table><p>a</p></table>", "<b><i>a</b>b</i>", "<p>&lt&gt;</p>",
        "<svg><circle r='1'/></svg>", "<p>a<br/>b", "<p class='it\x0cx'>a</p>", "<p>it&#x27;s</p>",
    ],
)  # fmt: skip
def test_what_is_shown_is_what_the_sanitiser_wrote(fragment: str) -> None:
    """A text that two parsers read alike may still be read otherwise by a third, the browser."""
    clean = sanitise.html(fragment)
    assert clean != fragment and sanitise.html(clean) == clean


def test_code_keeps_the_empty_lines_that_it_starts_with() -> None:
    code = '<pre class="it-code">\n\n\nx</pre>'
    assert sanitise.html(code) == code
    assert sanitise.html("<pre>\nx</pre>") == "<pre>x</pre>"


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_browser_runs_and_fetches_nothing_of_it() -> None:
    from playwright.sync_api import sync_playwright

    from insidetorch.facts import chromium

    path = chromium()
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.set_content(f"<img src='data:image/png;base64,AA=='>{ATTACKS[2]}")
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") == 1, "the attack works on a page that is not clean"
        page.evaluate("delete window.hacked")
        for attack in ATTACKS:
            page.set_content(f"<div>{sanitise.html(attack)}</div>")
            page.wait_for_timeout(20)
            assert page.evaluate("window.hacked") is None, attack
        browser.close()
    assert not [url for url in asked if "evil.example" in url]


SVG_ATTACKS = [
    "<script>1</script>", '<rect onclick="x()"/>', '<image href="https://evil.example/a"/>',
    "<style>@import url(https://evil.example)</style>", "<foreignObject><p/></foreignObject>",
    '<a href="javascript:1"><rect/></a>', '<h:script xmlns:h="http://www.w3.org/1999/xhtml"/>',
    '<!--><img src="https://evil.example" onclick="x()">-->',
    '<use href="https://evil.example/#a"/>', '<rect style="fill:url(//evil.example)"/>',
]  # fmt: skip


@pytest.mark.parametrize("attack", SVG_ATTACKS)
def test_an_svg_file_loses_what_is_active_and_keeps_the_rest(attack: str) -> None:
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">'
    clean = sanitise.svg(f"{head}{attack}<circle r='1'/></svg>")
    assert not re.search(r"script|onclick|evil|foreign|<style|javascript", clean)
    assert "<circle" in clean and 'viewBox="0 0 1 1"' in clean
    assert sanitise.svg(clean) == clean


@pytest.mark.parametrize(
    "document",
    [
        "", "<svg", "<p>x</p>", '<?xml-stylesheet href="https://evil.example"?><svg/>',
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
    ],
)  # fmt: skip
def test_an_svg_file_that_is_no_plain_svg_is_left_out(document: str) -> None:
    assert sanitise.bundle({"image/svg+xml": document, "text/plain": "x"}) == {"text/plain": "x"}


def test_only_known_kinds_of_output_are_replayed() -> None:
    data = {
        "text/plain": "x", "text/markdown": "<script>1</script>", "text/latex": "x",
        "application/javascript": "alert(1)", "image/png": "bm8gcG5n", "image/jpeg": "!",
        "application/vnd.jupyter.widget-view+json": {}, RECORD_MIME: {"kind": "what"},
    }  # fmt: skip
    assert sanitise.bundle(data) == {"text/plain": "x"}
    assert sanitise.bundle({RECORD_MIME: {"kind": "claim", "held": True}}) != {}
