"""AOTAutograd in small against PyTorch: graphs without writes, and the cut through joint graphs."""

from __future__ import annotations

import pytest

from miniatures.aotautograd import cases, cut, functional, rules


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_a_program_with_writes_gets_pytorchs_graph(seed: int) -> None:
    assert all(cases.same_graph(seed).values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_the_same_values_are_kept(seed: int) -> None:
    assert all(cases.same_cut(seed).values())


@pytest.mark.slow
def test_a_view_that_is_not_made_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        functional.Functionaliser,
        "read",
        lambda self, tensor: tensor.value if isinstance(tensor, functional.Alias) else tensor,
    )
    assert not all(cases.same_graph(seed)["results"] for seed in range(12))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["stored_late", "price"])
def test_a_rule_of_the_cut_taken_away_is_noticed(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rule == "stored_late":
        monkeypatch.setattr(rules, "stored_late", lambda node, joint: False)
    else:
        monkeypatch.setattr(cut, "fusible", lambda a, b: False)
    assert not all(cases.same_cut(seed)["kept"] for seed in range(30))


def test_a_write_through_a_view_reaches_the_whole() -> None:
    small = functional.Functionaliser()
    whole = small.fresh(small.emit("input", shape=(4, 4)))
    row = small.view("select", whole, 0, 1)
    small.write("mul_", row, 2.0)
    end = small.read(whole)
    assert [value.op for value in small.graph([end])] == [
        "input", "select", "mul", "select_scatter",
    ]  # fmt: skip


def test_the_cheapest_pipes_are_closed() -> None:
    x = rules.Node("x", "primal", [], 400)
    big = rules.Node("big", "mm", [x], 400)
    small = rules.Node("small", "mm", [big], 4)
    result = rules.Node("result", "mm", [small], 4)
    incoming = rules.Node("incoming", "tangent", [], 4)
    end = rules.Node("end", "mm", [small, incoming], 4)
    joint = rules.Joint([x, big, small, result, incoming, end], [result], [end])
    assert cut.kept(joint) == ["small"]
    assert cut.split(joint, ["small"]) == (["small"], ["big", "small", "result"], ["end"])
