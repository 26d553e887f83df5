"""The miniature engine takes PyTorch's nodes in PyTorch's order and sums to the same bits."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from insidetorch.private.graph import sequence_nr
from miniatures.autograd_engine.cases import Program, random_program, traits
from miniatures.autograd_engine.engine import Engine, NodeTask
from miniatures.autograd_engine.watch import (
    chains,
    error_of,
    foretold,
    heap_of_equals,
    ran,
    ticks_while,
)

SEEDS = range(250)


def both(program: Program, passes: int = 2) -> tuple[Engine, list[list[Any]], list[list[Any]]]:
    """Run a program `passes` times through each engine; return the miniature and both orders."""
    engine, mine, theirs = Engine(), [], []
    for _ in range(passes):
        engine.order.clear()
        engine.backward(*program.roots, grads=program.grads)
        mine.append(list(engine.order))
        theirs.append(
            ran(
                lambda: torch.autograd.backward(program.roots, program.grads, retain_graph=True),
                *program.roots,
            )
        )
    return engine, mine, theirs


def same_bits(mine: Tensor | None, theirs: Tensor | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine.dtype == theirs.dtype and torch.equal(mine, theirs)


def test_order_and_gradients_equal_pytorch() -> None:
    """On a few programs: the chapter compares two hundred."""
    for seed in range(5000, 5010):
        program = random_program(seed)
        engine, mine, theirs = both(program)
        assert mine == theirs, f"seed {seed}"
        for leaf in program.leaves:
            assert same_bits(engine.grads.get(leaf), leaf.grad), f"seed {seed}"
            if leaf.grad is not None:
                assert engine.grads[leaf].stride() == leaf.grad.stride(), f"seed {seed}"


def test_the_programs_have_what_the_comparison_is_about() -> None:
    found = Counter(trait for seed in SEEDS for trait in traits(random_program(seed)))
    assert len(found) == 10
    assert min(found.values()) > len(SEEDS) // 20, found
    ties = 0
    names: set[str] = set()
    for seed in SEEDS:
        engine = Engine()
        program = random_program(seed)
        engine.backward(*program.roots, grads=program.grads)
        names.update(node.name() for node in engine.order)
        leaf = [sequence_nr(node) is None for node in engine.order]
        ties += any(a and b for a, b in pairwise(leaf))
    assert ties > 0
    assert names >= {"UnbindBackward0", "SplitWithSizesBackward0", "TanhBackward0", "MulBackward0"}


def test_traits_tell_programs_apart() -> None:
    x, y = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    plain = Program([x], [x * y.detach()], [torch.ones(2, 3)], ["multiply"])
    assert traits(plain) == set()
    z = x + x
    rich = Program([x, y], [z * z, x, x], [torch.ones(2, 3)] * 3, ["in place", "rows"])
    assert traits(rich) == {
        "a value used several times", "a leaf used several times", "a leaf that gets nothing",
        "a leaf as a root", "several roots", "a root given twice", "a node with several outputs",
        "a write in place",
    }  # fmt: skip


def test_equals_leave_a_heap_as_from_heapq() -> None:
    class Equal:
        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Equal) -> bool:
            return False

    for count in range(40):
        heap: list[Equal] = []
        for number in range(count):
            heapq.heappush(heap, Equal(number))
        assert heap_of_equals(count) == [heapq.heappop(heap).number for _ in range(count)]


def test_the_observers_see_what_happens() -> None:
    assert error_of(lambda: None) == ""
    assert error_of(lambda: int("three")).startswith("invalid literal")
    assert ticks_while(lambda: time.sleep(0.5)) > 0
    assert ticks_while(lambda: sum(range(10**6))) == 0
    told, came = foretold(chains(3, 30))
    assert told == came
    assert len([node for node in came if node.name() == "MulBackward0"]) == 30


@pytest.mark.parametrize(
    "broken",
    [
        lambda mine, other: mine.urgency() < other.urgency(),
        lambda mine, other: mine.urgency() >= other.urgency(),
        lambda mine, other: False,
    ],
    ids=["oldest first", "ties the other way", "no priority"],
)
def test_another_comparison_gives_another_order(
    broken: Callable[[NodeTask, NodeTask], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeTask, "__lt__", broken)
    differ = 0
    for seed in SEEDS[:100]:
        _, mine, theirs = both(random_program(seed), passes=1)
        differ += mine != theirs
    assert differ > 0


def test_summing_in_another_order_gives_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTask, "__lt__", lambda mine, other: mine.urgency() < other.urgency())
    differ = 0
    for seed in SEEDS[:100]:
        program = random_program(seed)
        engine, _, _ = both(program, passes=1)
        differ += any(not same_bits(engine.grads.get(leaf), leaf.grad) for leaf in program.leaves)
    assert differ > 0


def test_a_backward_inside_a_backward_runs_first_in_both() -> None:
    def build() -> tuple[Tensor, Tensor, Tensor]:
        a = torch.tensor([0.3, 0.7], requires_grad=True)
        inner = (a * a).exp().sum()
        left, right = a.sin(), a.cos()
        return a, inner, (left * right).sum()

    a, inner, outer = build()
    trigger = outer.grad_fn.next_functions[0][0]

    engine = Engine()
    engine.pre_hooks[trigger].append(lambda _: engine.backward(inner))
    engine.backward(outer)

    def nested() -> None:
        trigger.register_prehook(lambda _: torch.autograd.backward(inner, retain_graph=True))
        outer.backward(retain_graph=True)

    order = ran(nested, outer, inner)
    assert engine.order == order
    assert engine.order.index(inner.grad_fn) == engine.order.index(trigger) + 1
    assert a.grad is not None
    assert torch.equal(engine.grads[a], a.grad)


def test_create_graph_records_the_backward_pass() -> None:
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    engine = Engine()
    engine.backward((x * x * x).sum(), create_graph=True)
    (mine,) = torch.autograd.grad(engine.grads[x].sum(), x)
    assert torch.equal(mine, 6 * x)


def test_hooks_replace_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    engine = Engine()
    engine.pre_hooks[y.grad_fn].append(lambda grads: (grads[0] * 10,))
    engine.backward(y.sum())
    assert engine.grads[x].tolist() == [30.0, 30.0]


def test_callbacks_run_once_the_leaves_are_filled() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    engine, seen = Engine(), []

    def hook(grads: Any) -> None:
        engine.running[-1].callbacks.append(lambda: seen.append(engine.grads[x].tolist()))

    engine.pre_hooks[y.grad_fn].append(hook)
    engine.backward(y.sum())
    assert seen == [[2.0, 2.0]]


def test_after_an_error_the_next_backward_skips_what_was_left() -> None:
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    left, right = a.sin(), b.cos()
    engine = Engine()

    def fail(grads: Any) -> None:
        raise ValueError("no gradient today")

    engine.pre_hooks[right.grad_fn].append(fail)
    with pytest.raises(ValueError, match="no gradient today"):
        engine.backward((left * right).sum())
    assert engine.ready, "the error should leave a task behind"
    assert not engine.grads

    engine.pre_hooks.clear()
    engine.backward((left * right).sum())
    torch.autograd.backward((left * right).sum())
    assert a.grad is not None
    assert b.grad is not None
    assert torch.equal(engine.grads[a], a.grad)
    assert torch.equal(engine.grads[b], b.grad)
    assert not engine.ready
    assert not engine.running


def test_leaf_layout_is_kept() -> None:
    weight = torch.zeros(3, 2).t().requires_grad_()
    engine = Engine()
    engine.backward(weight * torch.ones(2, 3))
    (weight * torch.ones(2, 3)).backward(torch.ones(2, 3))
    assert weight.grad is not None
    assert engine.grads[weight].stride() == weight.grad.stride() == (1, 2)
