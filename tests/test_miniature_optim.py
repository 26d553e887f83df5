"""The miniature optimizers end with PyTorch's bits after 50 steps, for every flag they know."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

from miniatures.optimizers.cases import FRAME, decay_of, follows, form_of
from miniatures.optimizers.draw import calls, matched
from miniatures.optimizers.optim import Optimizer, Schedule, adam, cosine, ramp, sgd, stairs
from miniatures.optimizers.watch import fresh, launches, watch
from miniatures.optimizers.watch_moments import recorded

STEPS = 50
LOOP, FOREACH = {"foreach": False}, {"foreach": True}
KINDS = [  # in bfloat16 on the CPU, PyTorch's own forms differ: foreach rounds its factors
    ("float32-loop", torch.float32, LOOP),  # the chapter's own comparison: here, some flags
    ("float32-foreach", torch.float32, FOREACH),
    ("float64-loop", torch.float64, LOOP),
    ("float64-foreach", torch.float64, FOREACH),
    ("bfloat16-loop", torch.bfloat16, LOOP),
]
SGD_FLAGS = [
    {
        "momentum": momentum,
        "dampening": dampening,
        "nesterov": nesterov,
        "weight_decay": decay,
        "maximize": up,
    }
    for momentum, dampening, nesterov, decay, up in product(
        (0.0, 0.9), (0.0, 0.3), (False, True), (0.0, 0.1), (False, True)
    )
    if not nesterov or (momentum and not dampening)
]
ADAM_FLAGS = [
    {
        "amsgrad": amsgrad,
        "decoupled": decoupled,
        "weight_decay": decay,
        "maximize": up,
        "betas": betas,
    }
    for amsgrad, decoupled, decay, up, betas in product(
        (False, True), (False, True), (0.0, 0.1), (False, True), ((0.9, 0.999), (0.4, 0.7))
    )
]


def cases(all_flags: list[dict[str, Any]]) -> list[Any]:
    """Return every combination of flags and kind, but every seventh of the chapter's kind."""
    return [
        pytest.param(
            *(flags, dtype, form),
            id=f"{name}-{'-'.join(str(value) for value in flags.values())}",
        )
        for i, flags in enumerate(all_flags)
        for name, dtype, form in KINDS
        if name != "float32-loop" or i % 7 == 4
    ]


def parameters(dtype: torch.dtype) -> list[Tensor]:
    source = torch.Generator().manual_seed(3)
    shapes = [(7,), (5, 3), (), (4, 4)]
    params = [torch.randn(shape, generator=source).to(dtype) for shape in shapes]
    params[3] = params[3].t()  # dense, but not in row order
    return [nn.Parameter(param) for param in params]


def train(params: list[Tensor], optimizer: Any, after: Callable[[], object] = lambda: None) -> None:
    """Take the same 50 steps for the same parameters; now and then one has no gradient."""
    source = torch.Generator().manual_seed(4)
    for step in range(STEPS):
        for i, param in enumerate(params):
            noise = torch.randn(param.shape, generator=source).to(param.dtype)
            param.grad = None if (step + i) % 7 == 0 else torch.empty_like(param).copy_(noise)
        optimizer.step()
        after()


def groups(params: list[Tensor], **options: Any) -> list[dict[str, Any]]:
    return [{"params": params[:2]}, {"params": params[2:], **options}]


def assert_same(mine: list[Tensor], theirs: list[Tensor]) -> None:
    for a, b in zip(mine, theirs, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("flags", "dtype", "form"), cases(SGD_FLAGS))
def test_sgd_has_the_bits_of_pytorch(flags: dict[str, Any], dtype: torch.dtype, form: Any) -> None:
    mine, theirs = parameters(dtype), parameters(dtype)
    train(mine, Optimizer(groups(mine, lr=0.3), sgd, lr=0.05, **flags))
    train(theirs, torch.optim.SGD(groups(theirs, lr=0.3), lr=0.05, **flags, **form))
    assert_same(mine, theirs)


@pytest.mark.parametrize(("flags", "dtype", "form"), cases(ADAM_FLAGS))
def test_adam_has_the_bits_of_pytorch(flags: dict[str, Any], dtype: torch.dtype, form: Any) -> None:
    mine, theirs = parameters(dtype), parameters(dtype)
    small = Optimizer(groups(mine, lr=0.3), adam, lr=0.05, **flags)
    train(mine, small)
    options = {key: value for key, value in flags.items() if key != "decoupled"}
    kind = torch.optim.AdamW if flags["decoupled"] else torch.optim.Adam
    large = kind(groups(theirs, lr=0.3), lr=0.05, **options, **form)
    train(theirs, large)
    assert_same(mine, theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert small.state[a]["step"] == large.state[b]["step"].item()
        for name in ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * flags["amsgrad"]:
            assert torch.equal(small.state[a][name], large.state[b][name])


def test_a_flag_that_is_ignored_would_be_noticed() -> None:
    ends = []
    for rule, all_flags in ((sgd, SGD_FLAGS), (adam, ADAM_FLAGS)):
        for flags in all_flags:
            params = parameters(torch.float32)
            train(params, Optimizer(params, rule, lr=0.05, **flags))
            ends.append((rule, flags, torch.cat([p.detach().flatten() for p in params])))
    for i, (rule, flags, end) in enumerate(ends):
        for other_rule, other, other_end in ends[i + 1 :]:
            without_momentum = rule is sgd and flags["momentum"] == other.get("momentum") == 0
            without_decay = rule is adam and flags["weight_decay"] == other["weight_decay"] == 0
            dead = (without_momentum and "dampening") or (without_decay and "decoupled")
            same_but_for = [key for key in flags if rule is other_rule and flags[key] != other[key]]
            if rule is not other_rule or same_but_for != [dead]:
                assert not torch.equal(end, other_end), (flags, other)


SCHEDULES: list[tuple[str, list[Any], Callable[[Any], list[Any]]]] = [
    ("stairs", [stairs(7, 0.3)], lambda o: [lr_scheduler.StepLR(o, 7, 0.3)]),
    ("ramp", [ramp(0.1, 9)], lambda o: [lr_scheduler.LinearLR(o, 0.1, total_iters=9)]),
    ("cosine", [cosine(20)], lambda o: [lr_scheduler.CosineAnnealingLR(o, 20)]),
    ("least", [cosine(13, 0.01)], lambda o: [lr_scheduler.CosineAnnealingLR(o, 13, 0.01)]),
    (
        "chained",
        [ramp(0.1, 9), cosine(60), stairs(11, 0.5)],
        lambda o: [
            lr_scheduler.LinearLR(o, 0.1, total_iters=9),
            lr_scheduler.CosineAnnealingLR(o, 60),
            lr_scheduler.StepLR(o, 11, 0.5),
        ],
    ),
]


@pytest.mark.parametrize(("name", "mine", "theirs"), SCHEDULES, ids=[s[0] for s in SCHEDULES])
def test_schedules_give_the_same_rates_and_the_same_bits(
    name: str, mine: list[Any], theirs: Callable[[Any], list[Any]]
) -> None:
    a, b = parameters(torch.float32), parameters(torch.float32)
    small = Optimizer(groups(a, lr=0.3), sgd, lr=0.05, momentum=0.9)
    large = torch.optim.SGD(groups(b, lr=0.3), lr=0.05, momentum=0.9)
    small_schedules = [Schedule(small, rate) for rate in mine]
    large_schedules = theirs(large)
    rates: list[list[list[float]]] = [[], []]

    def after(optimizer: Any, schedules: list[Any], seen: list[list[float]]) -> None:
        seen.append([group["lr"] for group in optimizer.param_groups])
        for schedule in schedules:
            schedule.step()

    train(a, small, lambda: after(small, small_schedules, rates[0]))
    train(b, large, lambda: after(large, large_schedules, rates[1]))
    assert rates[0] == rates[1]
    assert len({tuple(pair) for pair in rates[0]}) > 5
    assert_same(a, b)


def test_hooks_run_around_the_closure_and_the_closure_may_differentiate() -> None:
    param = nn.Parameter(torch.tensor([3.0]))
    optimizer, seen = Optimizer([param], sgd, lr=1.0), []
    optimizer.before.append(lambda o: seen.append("before"))
    optimizer.after.append(lambda o: seen.append("after"))

    def closure() -> Tensor:
        seen.append("closure")
        param.grad = None
        loss = (param * param).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert param.item() == -3.0
    assert seen == ["before", "closure", "after"]


def test_defaults_are_copied_when_the_group_is_made() -> None:
    optimizer = Optimizer([nn.Parameter(torch.zeros(1))], sgd, lr=1.0)
    optimizer.defaults["lr"] = 2.0
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 2.0]


def test_launches_counts_full_tables() -> None:
    assert launches([], 4) == launches([0, 0], 4) == 0
    assert launches([5] * 8, 4) == 2
    assert launches([5] * 9, 4) == 3
    assert launches([10 * 320 + 1], 4, chunk=10) == 2
    assert launches([10 * 320] * 2, 4, chunk=10) == 2
    # a tensor cut by a full table of chunks takes a place in the next table too
    assert launches([10 * 6, 10 * 6, 5, 5], 2, blocks=8, chunk=10) == 3


def test_watch_counts_what_is_read_written_and_held() -> None:
    a, b = torch.ones(100), torch.ones(100)
    work = watch(lambda: a.add_(b))
    assert (work.operators, work.moved, work.peak) == (("add_",), 1200, 0)
    work = watch(lambda: a.sqrt() / b)
    assert (work.operators, work.moved, work.peak) == (("sqrt", "div"), 2000, 800)
    work = watch(lambda: torch.stack([a.exp() for _ in range(4)]))
    assert work.peak == 3200


def test_fresh_parameters_are_the_same_ones() -> None:
    for a, b in zip(fresh([3, 4]), fresh([3, 4]), strict=True):
        assert torch.equal(a, b)
        assert a.grad is not None
        assert b.grad is not None
        assert torch.equal(a.grad, b.grad)


@pytest.mark.parametrize("name", list(FRAME))
def test_the_frame_gives_what_an_optimizer_does(name: str) -> None:
    assert follows(name, steps=8)


def test_a_wrong_formula_is_noticed() -> None:
    kind, options, _, over, under = FRAME["Adam"]
    wrong = (kind, options, FRAME["RMSprop"][2], over, under)
    with patch.dict(cast(dict[str, Any], FRAME), {"Adam": wrong}):
        assert not follows("Adam")


def test_moments_are_read_from_the_state() -> None:
    first, second = recorded({"one": [2.0, 2.0], "other": [1.0, -1.0]})
    assert first.step == 1 and first.means == pytest.approx((2.0, 1.0))
    assert second.roots == pytest.approx((2.0, 1.0))
    assert second.moves[0] == pytest.approx(1.0, abs=1e-6) and abs(second.moves[1]) < 0.1


def test_forms_and_decays_are_told_apart() -> None:
    assert form_of("Adam") == "foreach" and form_of("Adam", fused=False) == "loop"
    assert form_of("SGD", fused=True) == "fused" and form_of("RMSprop", fused=True) == "–"
    assert decay_of("Adam") == decay_of("Adadelta") == "penalty"
    assert decay_of("AdamW") == decay_of("Muon") == "multiplies" and decay_of("Rprop") == "none"


def test_pictures_say_what_they_show() -> None:
    shown = matched(("left", ["a", "b"]), ("right", ["c"]), [(0, 0, False)])
    assert "a → c (wrong)" in shown.text and "Nobody's: b" in shown.text
    assert (
        "foreach: 2 calls"
        in calls({"loop": ["mul_"] * 4, "foreach": ["_foreach_mul_"] * 2}, 4).text
    )
