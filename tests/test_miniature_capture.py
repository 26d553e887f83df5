"""Capturing in small against PyTorch's: FX's nodes, and the answers of its alias analysis."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx, nn

from miniatures.capture import cases, cases_random
from miniatures.capture.alias import Aliases
from miniatures.capture.nodes import Names, Node, run
from miniatures.capture.tracer import Proxy, Tracer


@pytest.mark.parametrize("seed", range(5000, 5020))
def test_the_tracer_makes_the_nodes_of_fx(seed: int) -> None:
    assert cases_random.compare(seed) == {"nodes": True, "results": True}


@pytest.mark.parametrize("broken", ["names", "parameters", "layers"])
def test_a_rule_taken_away_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "names":
        monkeypatch.setattr(Names, "new", lambda self, wish: wish)
    elif broken == "parameters":
        monkeypatch.setattr(Tracer, "read", lambda self, value: value)
    else:
        monkeypatch.setattr(
            Tracer, "module", lambda self, call, module, args, kwargs: call(module, *args, **kwargs)
        )
    agreed = []
    for seed in range(20):
        try:
            agreed.append(cases_random.compare(seed)["nodes"])
        except (TypeError, RuntimeError, AttributeError):
            agreed.append(False)
    assert not all(agreed)


@pytest.mark.parametrize("seed", range(5000, 5020))
def test_the_alias_analysis_agrees(seed: int) -> None:
    found = cases_random.compare_aliases(seed)
    assert found["pairs"] == found["alike"]
    assert found["values"] == found["written alike"]


def test_an_alias_analysis_without_lists_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Aliases, "release", lambda self, *values: None)
    totals = [cases_random.compare_aliases(seed) for seed in range(30)]
    assert any(one["pairs"] != one["alike"] for one in totals)


def test_a_proxy_has_no_value() -> None:
    proxy = Proxy(Tracer(), Node("placeholder", "x", "x", (), {}))
    with pytest.raises(TypeError, match="needs a value"):
        bool(proxy)
    with pytest.raises(TypeError, match="needs a value"):
        list(proxy)


@pytest.mark.parametrize("way", ["jit.trace", "jit.script", "symbolic_trace", "make_fx"])
def test_a_plain_program_follows_in_each_way(way: str) -> None:
    assert cases.outcome(way, "a list in Python").word == "follows"


def test_outcomes_are_told_apart() -> None:
    words = [cases.outcome(way, "if, on values").word for way in ("jit.trace", "jit.script")]
    assert words == ["differs", "follows"]
    assert cases.outcome("symbolic_trace", "if, on values").word == "refused"


def test_a_module_and_its_list_give_the_same() -> None:
    module: Any = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    nodes = Tracer().trace(module)
    assert cases_random.told(nodes, Node) == cases_random.told(
        fx.symbolic_trace(module).graph.nodes, fx.Node
    )
    assert torch.equal(run(nodes, module, torch.ones(2)), module(torch.ones(2)))
