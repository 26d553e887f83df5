"""Recordings: what identifies a cell, what a file holds, and what a foreign one may show."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import string
import tokenize
from dataclasses import replace
from html.parser import HTMLParser
from importlib import util
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from insidetorch.display import Display, style_block, table
from insidetorch.errors import BookError
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import recording as recordings
from insidetorch.gpu import sanitise
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Recording, Run
from insidetorch.records import RECORD_MIME

BODY = """\
x = torch.ones(4, 8, device="cuda")
for i in range(3):
    if i % 2 == 0 and not done:
        x = x * 1.5 + helper(x, i)
print("norm", x.norm() < limit, [1, 2][0])
x.sum()
"""
EARLIER = (
    "import torch\nfrom insidetorch import claim",
    "limit = 10\ndef helper(x, i):\n    return scale(x) - i",
    "def scale(x):\n    return x / 2\ndone = False",
    "unused = 1",
)
MACHINE = Machine(
    ("Simulated device",), "9.0", 2**33, "1.2", "13.0", "2.13.0", "c" * 40, "3.12.1", "OS", "CPU"
)  # fmt: skip
RUN = Run("20260101t000000z-simulated", "2026-01-01T00:00:00Z", "b" * 40, MACHINE)


def recording(*outputs: dict, **changes: object) -> Recording:
    made = Recording("demo", "cell-1", "0" * 64, RUN.id, 1.5, outputs)
    return replace(made, **changes)


def shown(data: dict, metadata: dict | None = None) -> dict:
    return {"data": data, "metadata": metadata or {}}


def through_a_file(made: Recording) -> list[dict]:
    content = recordings.write(made)
    return list(recordings.replayed(recordings.read(content, f"{made.chapter}/{made.cell}.json")))


# ── The label ───────────────────────────────────────────────────────────────────────────────────


def test_a_label_has_a_name_and_options() -> None:
    label = cell_code.label('two-gpus --title "Two GPUs" --memory 1.5GiB --gpus 2')
    assert label == cell_code.Label("two-gpus", "Two GPUs", 3 * 2**29, 2)
    assert cell_code.label("a").heading == "a" and label.heading == "Two GPUs"


@pytest.mark.parametrize(
    "line",
    [
        "", "a_b", "a/b", "..", "-a", "a-", "run-1", "a b", "a --what", "a --memory 8", "a" * 61,
        "a --gpus 0", "a --gpus x", 'a --title "x',
    ],
)  # fmt: skip
def test_a_malformed_label_is_refused_in_one_sentence(line: str) -> None:
    with pytest.raises(BookError) as refused:
        cell_code.label(line)
    assert str(refused.value).startswith("%%cuda") and "\n" not in str(refused.value)


def test_two_cells_of_one_name_are_refused() -> None:
    with pytest.raises(BookError, match="%%cuda a: two cells"):
        cell_code.labels(["%%cuda a\n1", "x = 1", "%%cuda a\n2"])


def test_other_cells_are_no_cuda_cells() -> None:
    assert cell_code.split("%%cuda-like a\n1") is None
    assert cell_code.split("x = '%%cuda a'") is None
    assert cell_code.split("%%cuda a\nx\ny") == ("a", "x\ny")
    assert cell_code.split("%%cuda a") == ("a", "")


# ── What identifies the code ────────────────────────────────────────────────────────────────────


def tokens(source: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(source).readline))


def changed(token: tokenize.TokenInfo) -> list[str]:
    text = token.string
    if token.type == tokenize.NAME:
        return [f"{text}_", f"{text}2", "None"]
    if token.type == tokenize.NUMBER:
        return [f"{text}7", f"3{text}"]
    if token.type == tokenize.STRING:
        return [f"{text[:-1]}_{text[-1]}", "''"]
    return ["+", "-", "*", "<", ">", "==", "%", "=", "(", "]", ","]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_change_of_the_code_changes_the_digest(data: st.DataObject) -> None:
    words = [t for t in tokens(BODY) if t.string.strip() and t.type != tokenize.COMMENT]
    token = data.draw(st.sampled_from(words))
    new = data.draw(st.sampled_from(changed(token)))
    assume(new != token.string)
    lines = BODY.splitlines(keepends=True)
    row, start, end = token.start[0] - 1, token.start[1], token.end[1]
    lines[row] = lines[row][:start] + new + lines[row][end:]
    assert cell_code.digest("".join(lines), EARLIER) != cell_code.digest(BODY, EARLIER)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_white_space_and_comments_do_not(data: st.DataObject) -> None:
    spaces = st.sampled_from([" ", "  ", "\t", "   "])
    note = st.sampled_from(["", "  # a remark", " #", "  # x = 1"])
    blank = st.sampled_from(["", "\n", "# alone\n", "    # indented\n\n"])
    lines = []
    for line in BODY.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        words = [t.string for t in tokens(line.lstrip() + "\n") if t.string.strip()]
        spaced = "".join(word + data.draw(spaces) for word in words)
        lines.append(f"{data.draw(blank)}{indent}{spaced.rstrip()}{data.draw(note)}\n")
    assert cell_code.digest("".join(lines), EARLIER) == cell_code.digest(BODY, EARLIER)


def test_helpers_that_the_cell_names_count_and_others_do_not() -> None:
    first = cell_code.digest(BODY, EARLIER)

    def with_cell(index: int, source: str) -> str:
        return cell_code.digest(BODY, [*EARLIER[:index], source, *EARLIER[index + 1 :]])

    assert with_cell(3, "unused = 2") == first
    assert with_cell(0, "import torch\nfrom insidetorch import claim, source") == first
    assert with_cell(1, EARLIER[1].replace("10", "11")) != first
    assert with_cell(1, EARLIER[1].replace("- i", "+ i")) != first
    assert with_cell(2, EARLIER[2].replace("/ 2", "/ 3")) != first, "a helper of a helper"
    assert with_cell(2, EARLIER[2] + "\nlimit = 10") == first, "said again"
    assert with_cell(2, EARLIER[2] + "\nlimit += 1") != first
    assert cell_code.digest(BODY, [*EARLIER, "%%cuda other\ndone = True"]) != first


def test_of_a_miniature_the_names_that_are_needed_count(tmp_path: Path) -> None:
    parts = {
        "imports": "from .queue import Queue, other",
        "run": "def run(x):\n    return Queue(x)",
        "rest": "def rest(x):\n    return 1",
    }
    queue = "class Queue: pass\ndef other(): pass"
    (tmp_path / "miniatures").mkdir()
    (tmp_path / "miniatures" / "__init__.py").write_text("raise SystemExit")

    def digest(engine: dict[str, str], queue: str, *earlier: str, body: str = "run(x)") -> str:
        for name, text in (("engine", "\n".join(engine.values())), ("queue", queue)):
            (tmp_path / "miniatures" / f"{name}.py").write_text(f"{text}\nraise SystemExit")
        return cell_code.digest(body, earlier, cell_code.reached_in([tmp_path]))

    earlier = "from miniatures.engine import run"
    for options in ({}, {"body": f"{earlier}\nrun(x)"}):
        cells = () if options else (earlier,)
        first = digest(parts, queue, *cells, **options)
        for engine, other, same in (
            ({**parts, "rest": "rest = 2"}, queue, True),
            (parts, queue.replace("other(): pass", "other(): return 1"), True),
            ({**parts, "run": parts["run"].replace("run(x)", "run(x, y=1)")}, queue, False),
            (parts, queue.replace("Queue: pass", "Queue: x = 1"), False),
        ):
            assert (digest(engine, other, *cells, **options) == first) == same


def test_of_the_toolkit_what_measures_counts_and_what_shows_does_not(
    tmp_path: Path, monkeypatch
) -> None:
    sources = {
        "__init__": "raise SystemExit",
        "measure/timing": "from insidetorch.display import show\n"
        "def bench(f): return show(runs(f))\ndef runs(f): return 30\ndef seconds(s): return 's'",
        "display": "def show(x): return x",
    }
    (tmp_path / "insidetorch" / "measure").mkdir(parents=True)
    monkeypatch.setattr(cell_code, "_TOOLKIT", tmp_path)

    def digest(module: str = "measure/timing", old: str = "", new: str = "") -> str:
        for name, text in sources.items():
            text = text.replace(old, new) if name == module else text
            (tmp_path / "insidetorch" / f"{name}.py").write_text(text)
        cells = ["from insidetorch import bench, figure"]
        return cell_code.digest("bench(f)", cells, cell_code.reached_in([]))

    assert digest("measure/timing", "30", "2") != digest()
    assert digest("measure/timing", "show(runs(f))", "runs(f)") != digest()
    assert digest("measure/timing", "'s'", "'seconds'") == digest()
    assert digest("measure/timing", "return 30", "return 30  # at least") == digest()
    assert digest("display", "return x", "return ''") == digest()


def test_the_modules_that_count_are_there() -> None:
    assert all(util.find_spec(name) for name in cell_code.COUNTED)


def test_what_a_cell_reaches_is_asked_of_the_cell_and_what_it_needs() -> None:
    asked: list[str] = []

    def reached(sources) -> str:
        asked.extend(sources)
        return str(len(asked))

    first = cell_code.digest("print( helper(1, 2) )", EARLIER, reached)
    assert asked[0] == "print(helper(1, 2))" and len(asked) == 3
    assert "def helper(x, i):\n    return scale(x) - i" in asked
    assert cell_code.digest("print( helper(1, 2) )", EARLIER, reached) != first


def test_cells_in_ipythons_own_language_have_digests_too() -> None:
    assert cell_code.digest("!nvidia-smi  # now") == cell_code.digest("!nvidia-smi  # now\n\n")
    assert cell_code.digest("!nvidia-smi") != cell_code.digest("!nvidia-smi -L")
    assert cell_code.digest("this is ( no code") != cell_code.digest("this is ( not code")


def test_what_must_run_for_a_cell() -> None:
    sources = ["a = 1", "%%cuda one\nx = a", "%%cuda two\nprint(a)", "%%cuda three\nx", "b = 2"]
    assert cell_code.cells_to_run(sources, ["three"]) == [0, 1, 3]
    assert cell_code.cells_to_run(sources, ["two"]) == [0, 2]
    assert cell_code.cells_to_run(sources, []) == []


# ── Record → file → replay ──────────────────────────────────────────────────────────────────────

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MARKUP_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], include_characters="\n\t"), max_size=20
)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    names = ["div", "span", "b", "code", "em"] + (["svg"] if depth == 3 else [])
    if depth == 0:
        return html.escape(draw(MARKUP_TEXT), quote=False)
    name = draw(st.sampled_from(names))
    if name == "svg":
        box = draw(st.integers(1, 500))
        shape = draw(
            st.sampled_from(["<rect/>", '<path d="M0 0L1 1" clip-path="url(#c)"/>', "<g></g>"])
        )
        clip = '<clipPath id="c"><rect width="1" height="1"/></clipPath>'
        word = html.escape(draw(MARKUP_TEXT))
        return (
            f'<svg viewBox="0 0 {box} 9"><defs>{clip}</defs>{shape}<text x="1">{word}</text></svg>'
        )
    attribute = draw(
        st.sampled_from(
            ["", ' class="it it-claim"', ' style="color: var(--it-ink, #333); width: 40%"',
             ' title="a &lt; &quot;b&quot;"', ' role="note" aria-label="x &amp; y"', " tabindex=0"]
        )
    )  # fmt: skip
    inner = "".join(draw(st.lists(elements(depth - 1), max_size=3)))
    return f"<{name}{attribute}>{inner}</{name}>"


@pytest.mark.slow
@given(text=TEXT, stream=TEXT.filter(bool), fragment=elements(), pixels=st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_text_and_pixels_are_replayed_byte_for_byte_html_and_svg_as_they_are_read(
    text: str, stream: str, fragment: str, pixels: bytes
) -> None:
    picture = (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" '
        '"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">\n<!-- drawn -->\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text>{len(text)}</text></svg>'
    )
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + pixels).decode()
    outputs = (
        {"stream": "stdout", "text": stream},
        shown({"text/plain": text, "text/html": fragment}),
        shown({"image/png": png, "text/plain": text}, {"image/png": {"width": 10}}),
        shown({"image/svg+xml": picture}),
    )
    replayed = through_a_file(recording(*outputs))
    assert [as_read(one) for one in replayed] == [as_read(one) for one in outputs]


def as_read(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output with its markup in one of the ways in which it can be written."""
    data = dict(output.get("data", {}))
    if "text/html" in data:
        data["text/html"] = str(BeautifulSoup(data["text/html"], "html.parser"))
    if "image/svg+xml" in data:
        data["image/svg+xml"] = ElementTree.canonicalize(data["image/svg+xml"])
    return {**output, "data": data}


def toolkit_displays() -> list[Display]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import torch

    from insidetorch import bench, figure, graph, source, trace_ops

    fig, axes = plt.subplots()
    axes.plot([1, 2, 3], label="x < y & z")
    axes.imshow([[0.0, 1.0]])
    axes.legend()
    x = torch.ones(3, requires_grad=True)
    return [
        figure(fig, alt='a "figure" & more'),
        graph('digraph {a -> b [label="x < y"]; subgraph cluster_1 {c; d}}', alt="a graph"),
        table(["a", "b"], [["1 < 2", Display("<code>x</code>", "x")]], caption="c", numeric=[1]),
        source("torch.autograd.backward", lines=None),
        trace_ops(lambda: x * 2),
        bench("x * 2", globals={"x": x}, min_run_time=0.01),
    ]


@pytest.mark.slow
def test_all_that_the_toolkit_shows_is_replayed_as_it_is() -> None:
    for made in toolkit_displays():
        bundle = made._repr_mimebundle_()
        stored = recordings.without_style(bundle)
        assert style_block() not in stored["text/html"]
        (output,) = through_a_file(recording(shown(stored)))
        assert (
            as_read(output)["data"] == as_read({"data": json.loads(json.dumps(bundle))})["data"]
        ), made.text


def test_a_file_is_reviewable_line_by_line() -> None:
    content = recordings.write(recording({"stream": "stdout", "text": "one\ntwo\n"})).decode()
    assert re.search(r'^ +"one\\n",$', content, re.MULTILINE)
    keys = list(json.loads(content))
    assert keys == sorted(keys) and content.endswith("}\n")


def test_half_a_surrogate_pair_survives() -> None:
    outputs = ({"stream": "stdout", "text": "a\udc80b"},)
    assert through_a_file(recording(*outputs)) == list(outputs)


def test_a_recording_that_is_too_large_is_refused() -> None:
    big = recording({"stream": "stdout", "text": "x" * (recordings.MAX_CELL + 1)})
    with pytest.raises(BookError, match=r"demo: the outputs of %%cuda cell-1 are .* show less"):
        recordings.write(big)
    with pytest.raises(BookError, match="larger than"):
        recordings.read(b" " * (recordings.MAX_CELL + 1), "demo/cell-1.json")


def test_a_run_goes_through_its_file() -> None:
    place = f"demo/run-{RUN.id}.json"
    assert recordings.read_run(recordings.write_run(RUN), place) == RUN


GOOD = json.loads(recordings.write(recording({"stream": "stdout", "text": "x"}, shown({}))))
GOOD_RUN = json.loads(recordings.write_run(RUN))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(string.printable, max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip


@pytest.mark.slow
@given(st.data(), JSON)
@settings(max_examples=300, deadline=None)
def test_a_field_of_another_kind_is_refused_in_one_sentence(data: st.DataObject, value) -> None:
    good, read, place = data.draw(
        st.sampled_from(
            [
                (GOOD, recordings.read, "demo/cell-1.json"),
                (GOOD_RUN, recordings.read_run, f"demo/run-{RUN.id}.json"),
            ]
        )
    )
    field = data.draw(st.sampled_from(sorted(good)))
    assume(type(value) is not type(good[field]))
    assume(not (field == "seconds" and type(value) is int))
    with pytest.raises(BookError) as refused:
        read(json.dumps({**good, field: value}).encode(), place)
    assert "\n" not in str(refused.value) and place in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema": 2}', b"[" * 100_000])
def test_what_is_no_recording_is_refused(content: bytes) -> None:
    with pytest.raises(BookError, match=r"demo/cell-1\.json is refused"):
        recordings.read(content, "demo/cell-1.json")


def test_a_recording_is_found_by_chapter_or_by_its_code(tmp_path: Path, monkeypatch) -> None:
    for chapter, digest in (("one", "1" * 64), ("two", "2" * 64)):
        (tmp_path / chapter).mkdir()
        made = recording(chapter=chapter, digest=digest)
        (tmp_path / chapter / "cell-1.json").write_bytes(recordings.write(made))
    monkeypatch.delenv("INSIDETORCH_CHAPTER", raising=False)

    def chapter(digest: str) -> str | None:
        found = recordings.find("cell-1", digest, tmp_path)
        return found and found.chapter

    assert chapter("2" * 64) == "two" and chapter("3" * 64) is None
    monkeypatch.setenv("INSIDETORCH_CHAPTER", "one")
    assert chapter("2" * 64) == "one", "stale: the cell is looked up in its own chapter"
    assert recordings.find("other", "1" * 64, tmp_path) is None


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


# ── The book's own recordings ───────────────────────────────────────────────────────────────────


def test_every_recording_of_the_book_is_whole() -> None:
    root = Path("recordings")
    for path in sorted(root.glob("*/*.json")):
        if path.name.startswith("run-"):
            recordings.read_run(path.read_bytes(), f"{path.parent.name}/{path.name}")
            continue
        made = recordings.load(path)
        recordings.run_of(made, root)
        for item in made.artifacts:
            content = (path.parent / item.file).read_bytes()
            assert recordings.sha256(content) == item.sha256
