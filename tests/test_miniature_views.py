"""The arithmetic of strides is PyTorch's, and the cache counts lines."""

from __future__ import annotations

import random

import pytest
import torch

from insidetorch.private.views import internal_overlap
from miniatures.views_and_strides import cases
from miniatures.views_and_strides.cases import OVERLAPS, new_sizes, random_case
from miniatures.views_and_strides.cases_forty import FORTY, INPUTS
from miniatures.views_and_strides.lines import Cache, fetched
from miniatures.views_and_strides.strides import Way
from miniatures.views_and_strides.watch import copied_inside, fate, keeps_format, stages


def test_a_few_chains_of_views() -> None:
    """The chapter compares four hundred."""
    for seed in range(7000, 7040):
        case = random_case(seed)
        assert case.agree(), f"seed {seed}: {case.steps}"


def viewed_alike(seed: int) -> bool:
    case = random_case(seed)
    sizes = new_sizes(case, random.Random(seed))
    way = case.way.view(*sizes)
    try:
        strides = case.tensor.view(sizes).stride()
    except RuntimeError:
        return way is None
    return way is not None and way.strides == strides


def test_a_few_views_to_new_sizes() -> None:
    assert all(viewed_alike(seed) for seed in range(7000, 7040))


def test_without_the_rule_that_neighbours_must_join_the_comparison_notices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def all_one(self: Way) -> list[tuple[int, int]]:
        return [(torch.Size(self.sizes).numel(), self.strides[-1] if self.strides else 1)]

    monkeypatch.setattr(Way, "runs", all_one)
    assert not all(viewed_alike(seed) for seed in range(7000, 7040))


def test_without_size_one_left_out_the_comparison_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(self: Way, order: tuple[int, ...]) -> bool:
        wanted = 1
        for d in order:
            if self.strides[d] != wanted:
                return False
            wanted *= self.sizes[d]
        return True

    monkeypatch.setattr(Way, "_packed_by", strict)
    assert not all(random_case(seed).agree() for seed in range(7000, 7040))


def test_the_cases_take_each_step_and_each_answer() -> None:
    steps, answers = set[str](), set[str]()
    for seed in range(300):
        case = random_case(seed)
        steps |= {step.partition("(")[0] for step in case.steps}
        answers.add(case.way.overlaps())
    assert len(steps) == len(cases.STEPS)
    assert answers == set(OVERLAPS)


def test_what_cannot_be_is_refused() -> None:
    way = Way((2, 3), (3, 1))
    with pytest.raises(ValueError, match="another number"):
        way.view(5)
    with pytest.raises(ValueError, match="size 1"):
        way.expand(4, 3)
    assert Way((), ()).expand(2).strides == (0,)
    assert OVERLAPS[internal_overlap(torch.ones(()).expand(2))] == "yes"


def test_lines_are_counted_once_while_they_are_held() -> None:
    assert fetched(range(32)) == 2
    assert fetched(range(0, 320, 16)) == 20
    assert fetched([0, 16, 0, 16], cache=Cache(1)) == 4
    assert fetched([0, 16, 0, 16], cache=Cache(2)) == 2
    assert fetched(range(16), range(16)) == 2


def test_the_watchers() -> None:
    x = torch.arange(24.0).reshape(4, 6)
    assert fate(lambda t: t.t(), x) == ("view", 0)
    assert fate(lambda t: t.contiguous(), x) == ("itself", 0)
    assert fate(lambda t: t.t().view(24), x) == ("raises", 0)
    assert fate(lambda t: t.clone(), x) == ("copy", 96)
    assert copied_inside(lambda: x.t().contiguous()) == 24
    assert [step.name for step in stages(lambda: x.t().reshape(24))] == [
        "t",
        "clone",
        "_unsafe_view",
    ]
    image = torch.rand(2, 8, 3, 3).to(memory_format=torch.channels_last)
    told = [
        keeps_format(call, image)
        for call in (torch.relu, torch.Tensor.contiguous, lambda t: t[:, :1], lambda t: t[:, :4])
    ]
    assert told == ["last", "plain", "other", "other"]
    assert len(FORTY) == 40
    assert len({make().shape for make in INPUTS.values()}) == 1
