"""A training step that is watched is the step itself, and its pictures say what was there."""

from __future__ import annotations

import torch

from miniatures.ten_minutes import draw
from miniatures.ten_minutes.watch import watched_step


def program() -> tuple[torch.nn.Linear, torch.optim.SGD, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.rand(2, 2), torch.rand(2, 1)


def test_a_watched_step_changes_what_a_plain_one_does() -> None:
    watched, optimizer, x, y = program()
    states = watched_step(watched, optimizer, x, y)
    plain, optimizer, x, y = program()
    (plain(x) - y).square().mean().backward()
    optimizer.step()
    assert torch.equal(watched.weight, plain.weight) and torch.equal(watched.bias, plain.bias)
    assert states[-1].values["weight"] == tuple(plain.weight.flatten().tolist())
    assert plain.weight.grad is not None
    assert states[-1].gradients["weight"] == tuple(plain.weight.grad.flatten().tolist())


def test_a_gradient_that_no_leaf_keeps_is_there_for_one_moment() -> None:
    states = watched_step(*program())
    assert [sum("error" in one.gradients for one in states), len(states)] == [1, 12]
    assert set(states[-1].gradients) == {"weight", "bias"}


def test_each_moment_has_a_sentence_of_its_own_and_a_picture() -> None:
    states = watched_step(*program())
    assert sorted(map(draw.sentence, states)) == sorted(draw.SAID.values())
    first, last = draw.moments([states[0], states[-1]])
    assert "Gradients: none." in first[0].text and "of weight [" in last[0].text


def test_the_keys_of_a_grid_stand_in_their_order() -> None:
    shown = draw.key_grid({"a": ["CPU", "View", "Autograd"], "b": ["Meta", "View", "Other"]})
    assert "a has Autograd, View, CPU; b has Other, View, Meta" in shown.text


def test_who_reads_a_cell_is_told() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    text = draw.reads({"x": x, "column": x[:, 1]}).text
    assert "[0, 1, 2, 3]" in text and "column has strides (2,) and reads cells [1, 3]" in text
