"""Recordings: what a file holds, is refused for, and replays."""

from __future__ import annotations

import base64
import html
import json
import re
import string
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from insidetorch.display import Display, style_block, table
from insidetorch.errors import BookError
from insidetorch.gpu import recording as recordings
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Recording, Run

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
