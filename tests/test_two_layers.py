"""The page's two layers: what is seen of a cell, and what folds below it."""

from __future__ import annotations

from logging import getLogger
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from insidetorch.publish.two_layers import layered, layers, parts
from insidetorch.records import RECORD_MIME


def cell(source: str, *outputs: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    return {
        "cell_type": "code", "id": "cell-3", "source": source, "metadata": metadata,
        "outputs": list(outputs), "execution_count": 3,
    }  # fmt: skip


def shown(html: str, kind: str = "") -> dict[str, Any]:
    record = {RECORD_MIME: {"kind": kind}} if kind else {}
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": html} | record}


def folded(output: dict[str, Any]) -> list[str]:
    """Return the code that is folded into an output, as a reader copies it."""
    page = BeautifulSoup(output["data"]["text/html"], "html.parser")
    return [each.pre.get_text().rstrip("\n") for each in page.select("details.it-how")]


def test_each_statement_has_its_layer() -> None:
    source = (
        "import torch\nfrom a import b\n\n# what is added\nx = torch.ones(2)\n"
        'display(source("c10::List"), source("c10::Dict"))\n'
        'claim("It holds.", x.sum() == 2,\n      seen=x)\nsettled()\nx'
    )
    assert [(part.layer, part.text) for part in parts(source)] == [
        ("setup", "import torch"),
        ("setup", "from a import b"),
        ("seen", "# what is added\nx = torch.ones(2)"),
        ("excerpt", 'display(source("c10::List"), source("c10::Dict"))'),
        ("check", 'claim("It holds.", x.sum() == 2,\n      seen=x)'),
        ("excerpt", "settled()"),
        ("seen", "x"),
    ]


def test_nothing_of_a_cell_is_lost() -> None:
    source = "import a\n# one\nx = 1  # two\n\n\nif x:\n    y = 2\nclaim('t', y)\n# the end"
    assert sorted("\n".join(part.text for part in parts(source)).split()) == sorted(source.split())


def test_what_is_marked_folds_with_the_check_that_follows_it() -> None:
    source = "x = f()\nx\n# check\nwant = g()\n\ngot = h(x)\nclaim('t', want == got)"
    assert [part.layer for part in parts(source)] == ["seen", "seen", "check", "check", "check"]
    made = layered(cell(source, shown("<p>✔</p>", "claim"), shown("<p>x</p>")))
    assert [one["source"] for one in made] == ["x = f()\nx"]
    first, second = made[0]["outputs"]
    assert first["data"]["text/html"] == "<p>x</p>"
    assert folded(second) == ["want = g()\ngot = h(x)\nclaim('t', want == got)"]


def test_a_block_with_a_check_in_it_is_a_check() -> None:
    source = "if old:\n    with a:\n        claim('a', 1)\nverdict('b', 1)\nif old:\n    x"
    assert [part.layer for part in parts(source)] == ["check", "check", "seen"]
    lines = shown("<p>a</p>", "claim"), shown("<p>b</p>", "verdict")
    (made,) = layered(cell(source, *lines))
    assert [len(folded(one)) for one in made["outputs"]] == [1, 1]
    (part,) = parts("try:\n    x\nexcept ValueError:\n    claim('a', 1)")
    assert part.layer == "check"


def test_each_check_carries_its_own_code_below_all_else() -> None:
    source = "x = 1\nclaim('a', x)\nx\nverdict('b', x)"
    outputs = shown("<p>a</p>", "claim"), shown("<p>1</p>"), shown("<p>b</p>", "verdict")
    (made,) = layered(cell(source, *outputs))
    assert made["source"] == "x = 1\nx"
    assert [folded(one) for one in made["outputs"]] == [[], ["claim('a', x)"], ["verdict('b', x)"]]


def test_a_check_that_made_more_lines_than_one_folds_into_the_last() -> None:
    source = "claim('a', 1)\nfor n in (1, 2):\n    claim('b', n)"
    lines = [shown(f"<p>{n}</p>", "claim") for n in range(3)]
    (made,) = layered(cell(source, *lines))
    assert [folded(one) for one in made["outputs"]] == [[], [], [source]]


def test_what_only_prepares_a_later_check_is_a_line_that_opens() -> None:
    (made,) = layered(cell("# check\nwant = g()"))
    assert made["source"] == "want = g()" and made["outputs"] == []
    assert {"hide-input", "it-prepares"} <= set(made["metadata"]["tags"])
    assert made["metadata"]["mystnb"]["code_prompt_show"] == "What a later check needs"


def test_imports_are_a_line_of_their_own_and_an_excerpts_call_is_quiet() -> None:
    source = "import torch\n\nsource('c10::List')"
    setup, rest = layered(cell(source, shown("<figure></figure>", "excerpt")))
    assert setup["source"] == "import torch" and setup["outputs"] == []
    assert {"hide-input", "it-setup"} <= set(setup["metadata"]["tags"])
    assert setup["metadata"]["mystnb"]["code_prompt_show"] == "Setup"
    assert setup["id"] != rest["id"]
    assert rest["metadata"]["tags"] == ["remove-input"]
    assert 'class="it-how it-quiet"' in rest["outputs"][0]["data"]["text/html"]
    assert folded(rest["outputs"][0]) == ["source('c10::List')"]


@pytest.mark.parametrize(
    "source", ["# check\nimport a\nclaim('t', a)", "import a\n\nclaim('t', a)"]
)
def test_imports_for_checks_alone_fold_with_the_check(source: str) -> None:
    (made,) = layered(cell(source, shown("<p>t</p>", "claim")))
    (code,) = folded(made["outputs"][0])
    assert code.split() == ["import", "a", "claim('t',", "a)"]
    assert "remove-input" in made["metadata"]["tags"]


def test_imports_that_follow_each_other_are_one_line() -> None:
    text = {"cell_type": "markdown", "id": "t", "source": "text", "metadata": {}}
    sources = ["import a", "import b", "import c\nc.x", text, "import d"]
    cells = [one if isinstance(one, dict) else cell(one) for one in sources]
    assert [[one["source"] for one in made] for made in layers(cells)] == [
        [], [], ["import a\nimport b\nimport c", "c.x"], ["text"], ["import d"],
    ]  # fmt: skip


CHECK = cell("claim('a', want + more)", shown("<p>a</p>", "claim"))
MORE = cell("# check\ndef more():\n    return 2")
TEXT = {"cell_type": "markdown", "id": "t", "source": "text", "metadata": {}}


def test_what_only_prepares_the_check_after_it_folds_with_that() -> None:
    first, second, (made,) = layers([cell("# check\nwant = g()"), MORE, CHECK])
    assert first == second == []
    (code,) = folded(made["outputs"][0])
    want = "want = g() def more(): return 2 claim('a', want + more)"
    assert code.split() == want.split()


@pytest.mark.parametrize("between", [TEXT, cell("seen = want"), cell("%timeit want")])
def test_what_prepares_a_check_further_on_keeps_its_line(between: dict[str, Any]) -> None:
    first, (both,), *_, (made,) = layers([cell("# check\nwant = g()"), MORE, between, CHECK])
    assert first == []
    assert both["source"].split("\n") == ["want = g()", "", "def more():", "    return 2"]
    assert folded(made["outputs"][0]) == ["claim('a', want + more)"]


@pytest.mark.parametrize("source", ["source('c10::List')", "claim('a', 1)", "settled()"])
def test_what_a_cell_shows_stays_on_the_page_though_nothing_of_its_code_is_seen(
    source: str,
) -> None:
    from myst_nb.core.nb_to_tokens import notebook_to_tokens

    (made,) = layered(cell(source, shown("<p>a</p>", "claim")))
    notebook = nbformat.from_dict(
        {"cells": [made], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )
    tokens = notebook_to_tokens(notebook, MarkdownIt(), {}, getLogger())
    assert [token.type for token in tokens].count("nb_cell_code") == 1


@pytest.mark.parametrize(
    "same",
    [
        cell("x = 1\nx", shown("1")),
        cell("%%cuda name\nimport torch", tags=("it-cuda",)),
        cell("import torch", tags=("hide-input",)),
        cell("%timeit x"),
        {"cell_type": "markdown", "id": "a", "source": "import", "metadata": {}},
    ],
)
def test_other_cells_stay_as_they_are(same: dict[str, Any]) -> None:
    assert layered(same) == [same]


def test_the_notebook_itself_is_untouched() -> None:
    given = cell("import torch\nclaim('a', 1)", shown("<p>a</p>", "claim"))
    before = repr(given)
    layered(given)
    assert repr(given) == before
