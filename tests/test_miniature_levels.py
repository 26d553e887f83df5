"""The miniature of levels gives what `torch.func` gives, and a rule taken away is noticed."""

from __future__ import annotations

import pytest
import torch

from miniatures.modes_and_transforms import derivatives, levels
from miniatures.modes_and_transforms.cases import calls_below, equal, random_case
from miniatures.modes_and_transforms.watch import doors, kept, record_levels, stack_while
from miniatures.modes_and_transforms.watch_wishes import wishes

CASES = range(5000, 5040)


@pytest.mark.parametrize("seed", CASES)
def test_it_gives_what_pytorch_gives(seed):
    assert equal(random_case(seed))


def holds(seed):
    try:
        return equal(random_case(seed))
    except (RuntimeError, IndexError):
        return False


@pytest.mark.parametrize("op", ["sum", "mul", "expand"])
def test_a_wrong_batching_rule_is_noticed(monkeypatch, op):
    monkeypatch.setitem(
        levels.RULES, op, lambda xs, params, size: levels.bind(op, *xs[::-1], **params)
    )
    if op == "mul":
        monkeypatch.setitem(levels.RULES, op, lambda xs, params, size: levels.bind("add", *xs))
    assert not all(map(holds, CASES))


def test_a_wrong_derivative_is_noticed(monkeypatch):
    monkeypatch.setitem(derivatives.PULL, "sin", lambda g, out, xs, p: [g])
    assert not all(map(holds, CASES))


def test_a_level_that_stays_on_the_stack_would_see_itself():
    note = levels.Log()
    levels.under(note, lambda: levels.bind("sin", torch.ones(2)))
    assert note.seen == ["sin"]
    assert levels.STACK == []


def test_an_error_leaves_no_level():
    def fails(row):
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        levels.vmap(fails, (0,))(torch.ones(2, 2))
    assert levels.STACK == []


def test_calls_below_do_not_depend_on_the_rows():
    def of(rows):
        note = levels.Log()
        run = levels.vmap(lambda r: levels.bind("sin", r), (0,))
        levels.under(note, lambda: run(torch.ones(rows, 2)))
        return note.seen

    assert of(2) == of(50) == ["sin"]
    assert calls_below(random_case(3))


def test_what_is_watched():
    seen = doors(lambda t: t + 1, torch.ones(2))
    assert [who for who, _ in seen] == [
        "function mode", "subclass, __torch_function__", "dispatch mode",
        "subclass, __torch_dispatch__",
    ]  # fmt: skip
    assert kept()["leaf.grad"] == "Tensor"
    assert all(each.granted for each in wishes())
    assert stack_while({"a": 0}, lambda: torch.ones(1) + 1)[-1] == ("after", 1)


def test_a_recording_ends_without_levels():
    def f(row):
        return torch.sum(row)

    x = torch.ones(2, 2)
    run = record_levels(lambda: torch.func.vmap(f)(x), ("sum",), f)
    what = [each.what for each in run]
    assert what[:3] == ["enter", "wrap", "call"]
    assert what[-3:] == ["kernel", "unwrap", "leave"]
    assert run[-1].stack == ()
