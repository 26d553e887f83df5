"""Pictures with a caption, a number and a name; replays; notes at the lines of an excerpt."""

from __future__ import annotations

import gzip
import re
from typing import Any

import pytest
from bs4 import BeautifulSoup

from insidetorch.display import Display
from insidetorch.errors import BookError
from insidetorch.publish.pictures import numbered
from insidetorch.show.excerpts import source
from insidetorch.show.figures import captioned, graph
from insidetorch.show.replays import replay
from insidetorch.show.timelines import Timeline
from insidetorch.show.traces import TRACE_MIME


def page(*shown: Display, text: str = "") -> dict[str, Any]:
    outputs = [{"output_type": "display_data", "data": {"text/html": one.html}} for one in shown]
    cells = [{"cell_type": "markdown", "source": text}, {"cell_type": "code", "outputs": outputs}]
    return numbered({"cells": cells}, "notebooks/x")


def test_captions_are_counted_and_links_say_the_number() -> None:
    pictures = [Display("<p>0</p>", "0")]
    pictures += [captioned(Display("<p>1</p>", "1"), f"Look `{n}`.", n) for n in ("one", "two")]
    made = page(*pictures, text="See [](#fig-two), then [](#fig-one).")
    assert made["cells"][0]["source"] == (
        'See <a class="reference internal" href="#fig-two">Figure 2</a>, then '
        '<a class="reference internal" href="#fig-one">Figure 1</a>.'
    )
    html = made["cells"][1]["outputs"][2]["data"]["text/html"]
    found = BeautifulSoup(html, "html.parser").select_one("figure#fig-two > figcaption")
    assert found is not None and found.get_text() == "Figure 2. Look two."
    assert found.code is not None


def test_what_has_no_caption_is_left_as_it_is() -> None:
    plain = Display("<p>0</p>", "0")
    assert captioned(plain, "") is plain


def test_a_timeline_with_a_caption_keeps_its_trace() -> None:
    kept = {"file": "a.json", "small": "x"}
    shown = captioned(Timeline("<p>0</p>", "0", None, (), kept), "Look.", "one")
    assert shown._repr_mimebundle_()[TRACE_MIME] == kept


def test_a_link_to_no_picture_and_a_name_worn_twice_are_refused() -> None:
    one = captioned(Display("", ""), "Look.", "one")
    with pytest.raises(BookError, match=r"notebooks/x: \[\]\(#fig-two\) names no picture"):
        page(one, text="[](#fig-two)")
    with pytest.raises(BookError, match="two pictures have the name fig-one"):
        page(one, one)
    with pytest.raises(BookError, match="must be small letters"):
        captioned(one, "Look.", "One two")


def test_a_replay_has_a_sentence_for_each_state_and_key_states() -> None:
    states = [(Display(f"<b>{n}</b>", str(n)), f"State `{n}`.") for n in range(10)]
    shown = replay(states, caption="Watch.", name="run")
    found = BeautifulSoup(shown.html, "html.parser")
    assert len(found.select("figure#fig-run .it-state")) == 10
    kept = [one.b.get_text() for one in found.select(".it-key") if one.b]
    assert kept[0] == "0" and kept[-1] == "9" and len(kept) == 6
    assert "3. State `2`.\n2" in shown.text and shown.text.endswith("Watch.")
    two = BeautifulSoup(replay(states, caption="W.", key=[1, 4]).html, "html.parser")
    assert [one.b.get_text() for one in two.select(".it-key") if one.b] == ["1", "4"]


@pytest.mark.parametrize(
    ("states", "options"),
    [(1, {}), (2, {"caption": " "}), (3, {"key": [3]}), (3, {"key": []})],
)
def test_half_a_replay_is_refused(states: int, options: dict[str, Any]) -> None:
    given = [(Display("", ""), "Said.") for _ in range(states)]
    with pytest.raises(BookError, match="replay"):
        replay(given, **{"caption": "Watch.", **options})


def test_ten_states_are_light() -> None:
    nodes = " -> ".join(f"n{at}" for at in range(12))
    states = [
        (graph(f"digraph {{ {nodes}; n{at} [color=red] }}", alt=f"node {at}"), f"Node {at} runs.")
        for at in range(10)
    ]
    shown = replay(states, caption="Which node is next.")
    assert len(gzip.compress(shown.html.encode())) <= 60_000


def test_a_line_of_an_excerpt_has_its_note_below() -> None:
    shown = source(
        "torch.nn.Module.zero_grad",
        notes={"p.grad = None": "the memory goes", "for p in": "every parameter, `requires_grad`"},
    )
    found = BeautifulSoup(shown.html, "html.parser")
    assert [one.get_text() for one in found.select("ol.it-notes > li")] == [
        "every parameter, requires_grad", "the memory goes"
    ]  # fmt: skip
    marked = [one.parent.get_text().strip() for one in found.select(".it-note") if one.parent]
    assert "for p in" in marked[0] and "p.grad = None" in marked[1]
    assert re.search(r"for p in .*\(1\)", shown.text) and "2. the memory goes" in shown.text


def test_a_note_whose_line_is_gone_is_refused() -> None:
    with pytest.raises(BookError, match=r"no shown line has it: 'never there'"):
        source("torch.nn.Module.zero_grad", notes={"never there": "x"})
    with pytest.raises(BookError, match="not in the installed torch"):
        source("torch/csrc/autograd/engine.cpp:Engine::execute", notes={"x": "y"})
