"""What a chapter says and calls, the order of what has to be read, and the report in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_site import build_site

from insidetorch.drift.outcomes import Outcome, text_id
from insidetorch.drift.prose import read
from insidetorch.drift.reasons import Reason
from insidetorch.drift.report import BODY, markdown, report, terminal
from insidetorch.drift.reread import FIRST_PAGE, Item, Level, Rest, placed
from insidetorch.drift.run import Result
from insidetorch.drift.signatures import Breakage
from insidetorch.drift.spoken import concerns

CHAPTER = """---
kernelspec: {name: python3}
---
# A title

First `one.two` here. Then a {term}`graph` and `torch/a/b.py`: no name. A third?

## A section

```{code-cell}
:tags: [hide-input]
from a import something as s
claim("It `holds`.", True)
source("x", notes={"return y": "What `y` is."})
s(1, 2, key=3)
x.attribute
```

| `row` | said |

```python
not_read(1)
```

- An item with `item`.
"""


def test_a_chapter_is_read_into_sentences_with_their_place() -> None:
    prose = read(CHAPTER)
    said = {one.text: one for one in prose.sentences}
    assert said["First `one.two` here."].names == {"one", "two"}
    assert said["Then a {term}`graph` and `torch/a/b.py`: no name."].names == set()
    assert said["First `one.two` here."].line == 6 and "A third?" in said
    claim, note = said["It `holds`."], said["What `y` is."]
    assert (claim.kind, claim.cell, claim.section) == ("claim", 1, 2)
    assert (note.kind, note.at) == ("note", "return y")
    assert "An item with `item`." in said and not any("not_read" in text for text in said)
    assert prose.near([1])[0].cell == 1 and "A third?" not in {s.text for s in prose.near([1])}
    (call,) = prose.calls["something"]
    assert (call.given, call.named) == (2, {"key"})
    assert "attribute" in prose.attributes and "not_read" not in prose.calls


def test_a_parameter_is_spoken_of_by_its_own_name_if_that_says_enough() -> None:
    prose = read("# A page\n\nBy default `broadcast_buffers` sends them.\n\nSo does `bias`.\n")
    for name, told in {"broadcast_buffers": True, "other_buffers": False, "bias": False}.items():
        change = Breakage("torch.DDP.__init__", "default changed", f"{name}: None → True", name)
        assert concerns(change, "torch.DDP", prose, used=False) is told
    said = read("# A page\n\nA `DDP` without `bias`.\n")
    change = Breakage("torch.DDP.__init__", "default changed", "bias: None → True", "bias")
    assert concerns(change, "torch.DDP", said, used=False)


def item(level: Level, target: str, *rests: Rest, why: str = "code changed") -> Item:
    return Item(level, why, target, "f.py", "f.py", ("old",), ("new",), (), ("-old", "+new"), rests)


def test_what_was_executed_and_held_comes_after_what_was_not() -> None:
    held, other = (Rest("a", text, 3, claims=(text_id(text),)) for text in ("Held.", "Other."))
    ran = Result("2.0", "", "1.0", "", "", "", {"a": (text_id("Held."),)}, ())
    found = [
        item(Level.COUNTED, "counted"), item(Level.REST, "rest", other),
        item(Level.SHOWN, "shown and held", held), item(Level.NAMED, "named", other),
        item(Level.SHOWN, "shown", other), item(Level.GONE, "gone", other),
    ]  # fmt: skip
    put = [one.target for one in placed(found, "2.0", ran, ())]
    assert put == ["gone", "shown", "named", "shown and held", "rest", "counted"]
    unknown = [one.target for one in placed(found, "2.0", None, ())]
    assert unknown.index("shown and held") < unknown.index("named")


def test_the_first_page_has_an_end_and_a_reason_takes_an_item_from_it() -> None:
    many = [
        item(Level.NAMED, f"t{n:02}", Rest("a", f"S{n}.", section=n)) for n in range(FIRST_PAGE + 5)
    ]
    put = placed(many, "2.0", None, [Reason("2.0", "a", "t07", "So it is.")])
    assert sum(one.first_page for one in put) == FIRST_PAGE
    (told,) = [one for one in put if one.reason]
    assert told.target == "t07" and not told.first_page
    assert "So it is." in markdown([report(many, "2.0", "1.0", reasons=[
        Reason("2.0", "a", "t07", "So it is.")])], "T")  # fmt: skip
    assert not any(one.reason for one in placed(many, "2.1", None, [Reason("2.0", "", "t", "x")]))


def test_what_has_no_room_on_the_first_page_is_said_to_rest_on_sentences() -> None:
    many = [
        item(Level.NAMED, f"t{n:02}", Rest("a", f"S{n}.", section=n)) for n in range(FIRST_PAGE + 5)
    ]
    lines = terminal(report(many, "2.0", "1.0"), everything=True)
    assert any(
        line.startswith("Folded: 5 more to reread, which rank below; 0 definitions")
        for line in lines
    )
    assert any(line.endswith("t44 (a); old → new") for line in lines)
    # Placed again, with what was executed, another may come first.
    held = Rest("a", "S0.", claims=(text_id("S0."),))
    ran = Result("2.0", "", "1.0", "", "", "", {"a": (text_id("S0."),)}, ())
    again = placed(placed([replace(many[0], rests=(held,)), *many[1:]], "2.0", None, ()),
                   "2.0", ran, ())  # fmt: skip
    assert next(one for one in again if one.target == "t00").late


def test_what_is_gone_takes_its_place_on_the_first_page() -> None:
    gone = [item(Level.GONE, f"g{n}", Rest("a", f"G{n}.", section=-n)) for n in range(1, 5)]
    many = [
        item(Level.NAMED, f"t{n:02}", Rest("a", f"S{n}.", section=n)) for n in range(FIRST_PAGE)
    ]
    put = placed([*gone, *many], "2.0", None, ())
    assert sum(one.first_page for one in put) == FIRST_PAGE
    assert all(one.first_page for one in put if one.level is Level.GONE)


def test_a_folded_line_says_what_changed_where_the_page_does_not_show_it() -> None:
    hidden = item(Level.REST, "t", Rest("a"))
    hidden = replace(hidden, old=("  one = 1",), new=(), shown=())
    made = report([hidden], "2.0", "1.0")
    assert any(
        line.endswith("t (a); not shown or named there: one = 1 → nothing")
        for line in terminal(made, everything=True)
    )


@pytest.mark.parametrize(
    ("levels", "kinds", "code", "sentence"),
    [
        ((), (), 0, "stands: nothing shown, named or executed differs"),
        ((Level.REST, Level.COUNTED), (), 0, "stands: nothing shown, named or executed differs"),
        ((Level.NAMED,), (), 1, "reread: 1 sentence rests on what changed"),
        ((Level.NAMED, Level.SHOWN), ("warning",), 1, "reread: 3 sentences rest on what changed"),
        ((Level.GONE, Level.SHOWN), (), 2, "broken: 1 failed or is gone; 1 sentence rests"),
        ((), ("failed", "error"), 2, "broken: 2 failed or are gone; 0 sentences rest"),
    ],
)
def test_the_verdict_has_degrees_by_chapter_and_for_the_book(
    levels: tuple[Level, ...], kinds: tuple[str, ...], code: int, sentence: str
) -> None:
    found = [item(level, f"t{level}", Rest("a", f"S{level}.")) for level in levels]
    outcomes = tuple(Outcome(kind, "b", 1, f"It is {kind}.") for kind in kinds)
    ran = Result("2.0", "", "1.0", "", "", "", {}, outcomes)
    made = report(found, "2.0", "1.0", ran=ran)
    assert made.code == code and made.sentence.startswith(sentence)
    assert terminal(made)[0].endswith(made.sentence)
    docs = {"a"} if min(levels, default=Level.REST) < Level.REST else set()
    assert set(made.chapters()) == docs | ({"b"} if kinds else set())
    assert made.of("c").startswith("stands")


def test_a_text_that_is_too_long_is_cut_behind_the_most_important_and_says_so() -> None:
    many = [item(Level.SHOWN, f"t{n}", Rest("a", "é" * 3000)) for n in range(FIRST_PAGE)]
    ran = Result("2.0", "", "1.0", "", "", "", {}, (Outcome("failed", "z", 1, "It holds."),))
    made = report([*many, item(Level.GONE, "gone", Rest("a"))], "2.0", "1.0", ran=ran)
    text, whole = markdown([made], "T"), markdown([made], "T", most=10**9)
    assert len(text.encode()) <= BODY < len(whole.encode())
    places = [text.index(word) for word in ("It holds.", "`gone`", "`t0`")]
    assert places == sorted(places)
    assert text.count("```diff") * 2 == text.count("```")
    assert text.rstrip().endswith("the JSON of this report has all.")


def test_readers_and_maintainers_have_a_page_each(tmp_path: Path) -> None:
    conf = 'extensions = ["myst_parser", "insidetorch.site"]\nhtml_math_renderer = "mathml"\n'
    said, pages = build_site(tmp_path, {
        "conf.py": conf + 'html_theme = "basic"\n', "index.md": "# A\n\n```{toctree}\nb\nc\n```\n",
        "b.md": "# Still true?\n\n```{still-true}\n```\n", "data/anchors.lock": "",
        "c.md": "# What to reread\n\n```{drift-differences}\n```\n\n```{drift-claims}\n```\n",
    })  # fmt: skip
    assert said == []
    assert "without a record of the last execution" in pages["b"].get_text()
    assert "not been compared with another release yet" in pages["c"].get_text()
