"""The iterator in miniature against PyTorch's: plans, types, inner loops, and the bits of sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from insidetorch import private
from miniatures.tensor_iterator import iterator, summation
from miniatures.tensor_iterator.cases import loops_agree, planned, random_pair, seen
from miniatures.tensor_iterator.iterator import broadcast, plan
from miniatures.tensor_iterator.loops import by_vectors, compute, takes_vectors
from miniatures.tensor_iterator.promotion import promote, result_type
from miniatures.tensor_iterator.summation import total
from miniatures.tensor_iterator.watch import (
    block,
    by_bits,
    lanes,
    layouts,
    ordering,
    telltale,
    threads,
)

SEEDS = range(50_000, 50_150)


def agreeing() -> list[bool]:
    """Return for some operands that no chapter has seen whether the plans are equal."""
    return [seen(*pair) == planned(*pair) for pair in map(random_pair, SEEDS)]


def test_plans_are_pytorchs() -> None:
    assert all(agreeing())
    pairs = [pair for pair in map(random_pair, SEEDS) if all(isinstance(x, Tensor) for x in pair)]
    assert private.has_iterator() and all(loops_agree(*pair) for pair in pairs)


@pytest.mark.parametrize("rule", ["_compare", "_shortcut"])
def test_a_rule_taken_away_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterator, rule, lambda *given: None if rule == "_shortcut" else 0)
    found = agreeing()
    if rule == "_compare":
        assert not all(found)
    else:  # the long way leads to the same result, in more loops
        alike = torch.zeros(2, 3, 4).transpose(0, 1)
        assert plan(alike, alike).out_strides == alike.stride()


def test_shapes_that_do_not_fit_are_refused() -> None:
    assert broadcast([(5, 3, 4, 1), (3, 1, 1)]) == (5, 3, 4, 1)
    with pytest.raises(RuntimeError, match="2 and 3 do not fit"):
        broadcast([(2,), (3,)])


def test_types_of_other_integers_are_refused_as_by_pytorch() -> None:
    for one, other in [(torch.uint16, torch.int32), (torch.uint16, torch.uint32)]:
        for promoting in (promote, torch.promote_types):
            with pytest.raises(RuntimeError, match="Promotion for uint16"):
                promoting(one, other)
    assert promote(torch.uint16, torch.float32) == torch.float32
    assert result_type([2, 0.5]) == torch.float32


def test_a_plan_computes() -> None:
    for one, other in [
        (torch.arange(6.0).reshape(2, 3), torch.tensor([1.0, 2.0, 3.0])),
        (torch.arange(6.0).reshape(2, 3).t(), torch.arange(6.0).reshape(3, 2)),
        (torch.tensor(2.0), torch.arange(8.0)[::2]),
    ]:
        made, real = plan(one, other), one * other
        memory = real.as_strided((real.numel(),), (1,)).tolist()
        assert compute(made, [one, other], float.__mul__) == memory


def test_the_inner_loop_is_the_one_that_ran() -> None:
    pair = telltale()
    found = layouts(pair or (0.5, 0.25))
    assert [takes_vectors(plan(*both)) for both in found.values()].count(True) == 7
    if pair:
        for both in found.values():
            assert by_bits(*both) == by_vectors(plan(*both), block())


def test_sums_have_pytorchs_bits() -> None:
    rng, width = np.random.default_rng(77), lanes()
    for number in (1, 2, 3):
        for length in (1, 7, 8, 100, 4097, 40_000):
            x = rng.standard_normal(length).astype(np.float32)
            with threads(number):
                assert float(total(x, width, number)) == torch.from_numpy(x).sum().item()


def test_another_cascade_has_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summation, "LEVELS", 1)
    x = np.random.default_rng(78).standard_normal(100_000).astype(np.float32)
    with threads(1):
        assert float(total(x, lanes() if lanes() else 8)) != torch.from_numpy(x).sum().item()


def test_the_replay_ends_with_the_plan() -> None:
    image = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    bias = torch.zeros(3, 1, 1)
    said, heads, rows = ordering({"image": image, "bias": bias})[-1]
    assert said.startswith("Merged") and heads == ["size 40", "size 3"]
    assert rows == {"image": ["3", "1"], "bias": ["0", "1"]}
