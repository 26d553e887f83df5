"""The miniature engine takes PyTorch's nodes in PyTorch's order and sums to the same bits."""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from insidetorch.private.graph import sequence_nr
from miniatures.autograd_engine.cases import Program, random_program, traits
from miniatures.autograd_engine.draw_graph import draw_ran, draw_state
from miniatures.autograd_engine.draw_runs import draw_lanes, draw_saved, draw_sums
from miniatures.autograd_engine.engine import Engine, NodeTask
from miniatures.autograd_engine.watch import (
    arrives,
    chains,
    error_of,
    foretold,
    freed,
    heap_of_equals,
    in_step,
    interrupted,
    ran,
    still_saved,
    ticks_while,
)
from miniatures.autograd_engine.watch_queue import recorded

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
    assert ticks_while(lambda: sum(range(10**6)), times=20) == 0
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


def program() -> tuple[dict[str, Tensor], Tensor]:
    leaves = {name: torch.ones(2, requires_grad=True) for name in "xwb"}
    product = leaves["x"] * leaves["w"]
    return leaves, (product.sin() * product.cos() + leaves["b"]).sum()


def test_recorded_states_tell_a_whole_pass() -> None:
    leaves, root = program()
    run = recorded(root, leaves)
    first, *between, last = run.states
    again = partial(torch.autograd.backward, root, retain_graph=True)
    assert run.order == ran(again, root)
    assert [state.running for state in between] == run.order
    assert sum(first.waiting.values()) == 1 + sum(
        after is not None for node in run.order for after, _ in node.next_functions
    )
    assert not last.waiting
    assert last.done == set(run.order)
    for now, after in pairwise(between):
        running: Any = now.running
        assert after.running in {*now.queue, *(node for node, _ in running.next_functions)}
    assert "a leaf goes before `MulBackward0`" in between[2].says
    assert "`CosBackward0` has left" in between[4].says


def test_states_are_drawn_with_their_counts() -> None:
    leaves, root = program()
    run = recorded(root, leaves)
    drawn = draw_state(run.states[0], run.label)
    assert "MulBackward0: waits for 2" in drawn.text
    assert "Queue: empty" in drawn.text
    assert "AccumulateGrad of b ran" in draw_ran(run.order, run.order, run.label).text
    assert "order 1: 1 holds 1, + 2 holds 3" in draw_sums([1, 2], [2, 1]).text
    assert (
        "here: Sum, –, leaf" in draw_lanes(["Sum", "Mul", "AccumulateGrad"], {"here": [0, 2]}).text
    )
    assert "as usual: 2, 1, 0" in draw_saved({"as usual": [2, 1, 0]}).text


def test_passes_in_step_need_each_other() -> None:
    def roots() -> list[Tensor]:
        return [torch.ones(2, requires_grad=True).sin().sum() for _ in range(2)]

    assert len(set(map(tuple, in_step(*roots()).values()))) == 1
    turn, usual = threading.Lock(), torch.autograd.backward

    def one_at_a_time(*given: Any, **options: Any) -> None:
        with turn:
            usual(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.autograd, "backward", one_at_a_time)
        with pytest.raises(threading.BrokenBarrierError):
            in_step(*roots(), patience=0.5)


def test_what_arrives_and_what_is_saved() -> None:
    kept: list[Any] = []

    def watched(leaf: Any) -> Any:
        leaf.register_hook(kept.append)
        return leaf * 2

    assert arrives(lambda leaf: leaf * 2, torch.ones(3)) == "taken"
    assert arrives(watched, torch.ones(3)) == "copied"
    assert still_saved(3) == [3, 2, 1, 0]
    assert still_saved(3, retain_graph=True) == [3, 3, 3, 3]


@pytest.mark.slow
def test_a_long_chain_is_freed_by_recursion_if_python_held_it() -> None:
    assert freed((1000, True), (140_000, False), (200_000, True)) == ["freed", "freed", "signal 11"]
    assert interrupted() == "filled"
