"""The miniature autocast runs the operators PyTorch's runs, and the scaler finds its scales."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from insidetorch.errors import BookError
from miniatures.amp import autocast as amp
from miniatures.amp.autocast import Autocast, Scaler
from miniatures.amp.cases import random_program, random_scaling
from miniatures.amp.cases_sums import gradient_of_uses, sums
from miniatures.amp.watch import CastsAlive, on_fake_cuda, policies, saved_bytes, trace
from miniatures.amp.watch_pass import recorded
from miniatures.amp.watch_scaler import reads_of_loop, trail, transitions

CPU_TYPES = [torch.float32, torch.bfloat16, torch.float32, torch.float64, torch.int64]
CUDA_TYPES = [torch.float32, torch.float16, torch.float32]
SEEDS = range(5000, 5010)


def run_on_cpu(seed: int, context: Any) -> tuple[list[Any], list[Tensor | None]]:
    noise = torch.Generator().manual_seed(seed)
    weights = [torch.rand(4, 4, generator=noise).requires_grad_() for _ in range(3)]

    def make(dtype: torch.dtype) -> Tensor:
        return (torch.rand(4, 4, generator=noise) * 3).to(dtype)

    program = random_program(seed, make, CPU_TYPES)

    def run() -> None:
        with context:
            results = program(weights)
        total = sum(r.float().sum() for r in results if r.requires_grad and not r.is_complex())
        if isinstance(total, Tensor):
            total.backward()

    return trace(run), [weight.grad for weight in weights]


def test_same_operators_types_and_gradients_on_the_cpu() -> None:
    """On a few programs: the chapter compares two hundred."""
    table, seen, compared = policies("cpu"), set(), 0
    for seed in SEEDS:
        theirs, their_grads = run_on_cpu(seed, torch.autocast("cpu"))
        ours, our_grads = run_on_cpu(seed, Autocast(table))
        assert ours == theirs, seed
        for mine, their in zip(our_grads, their_grads, strict=True):
            assert (mine is None) == (their is None)
            if mine is not None:
                assert torch.allclose(mine, their, rtol=0, atol=0, equal_nan=True), seed
                compared += bool(mine.isfinite().all() and mine.any())
        seen |= {name for name, *_ in theirs}
    assert {"aten::mm.default", "aten::_to_copy.default"} <= seen
    assert compared > len(SEEDS) // 2
    assert not Autocast.active and not Autocast.casts


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(range(200), marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_same_operators_and_types_by_the_lists_for_cuda(seeds: range) -> None:
    table, casts = policies("cuda"), 0
    for seed in seeds:

        def run(make: Any, seed: int = seed) -> list[Any]:
            program = random_program(seed, lambda dtype: make(4, 4, dtype=dtype), CUDA_TYPES)
            weights = [make(4, 4) for _ in range(3)]
            theirs = trace(lambda: program(weights))
            torch.set_autocast_enabled("cuda", False)
            with Autocast(table, dtype=torch.float16, device="cuda"):
                ours = trace(lambda: program(weights))
            assert ours == theirs, seed
            return theirs

        casts += sum(name == "aten::_to_copy.default" for name, *_ in on_fake_cuda(run))
    assert casts > len(seeds)


@pytest.mark.parametrize("off", [{"cache": False}, {"enabled": False}], ids=str)
@pytest.mark.slow
def test_switches(off: dict[str, bool]) -> None:
    table = policies("cpu")
    official = {"cache_enabled" if key == "cache" else key: value for key, value in off.items()}
    for seed in range(30):
        theirs, _ = run_on_cpu(seed, torch.autocast("cpu", **official))
        ours, _ = run_on_cpu(seed, Autocast(table, **off))
        assert ours == theirs, seed


def test_nesting_keeps_the_cache_and_the_inner_one_rules() -> None:
    table, weight = policies("cpu"), torch.rand(4, 4, requires_grad=True)

    def nested(outer: Any, inner: Any) -> list[Any]:
        def run() -> None:
            with outer:
                weight @ weight
                with inner:
                    weight @ weight
                weight @ weight

        return trace(run)

    theirs = nested(torch.autocast("cpu"), torch.autocast("cpu", enabled=False))
    assert nested(Autocast(table), Autocast(table, enabled=False)) == theirs
    assert sum(name == "aten::_to_copy.default" for name, *_ in theirs) == 1


def test_same_scales_and_weights() -> None:
    """In a few runs: the chapter compares two hundred."""
    skipped = grown = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        scale = chance.choice([2.0**16, 1.0, 3.0, 2.0**126])
        growth = chance.choice([2.0, 1.5, 1.1])
        backoff, interval = chance.choice([0.5, 0.3]), chance.randint(1, 3)
        official = torch.amp.GradScaler(
            "cpu",
            init_scale=scale,
            growth_factor=growth,
            backoff_factor=backoff,
            growth_interval=interval,
        )
        theirs = random_scaling(seed, official)
        ours = random_scaling(
            seed, Scaler(factor=scale, growth=growth, backoff=backoff, interval=interval)
        )
        assert ours == theirs, seed
        scales = [scale for scale, _ in theirs]
        skipped += any(b < a for a, b in pairwise(scales))
        grown += any(b > a for a, b in pairwise(scales))
    assert skipped and grown


def test_policies_are_complete() -> None:
    for device in ("cpu", "cuda"):
        named = policies(device)
        # A name with a namespace is an operator that some other test registered.
        others = {n for n, policy in named.items() if policy == "other" and "::" not in n}
        assert len(named) > 100
        assert others <= {"norm.Scalar", "norm.ScalarOpt_dim", "binary_cross_entropy"}


def test_policies_of_another_device() -> None:
    with pytest.raises(BookError, match="give one of cpu, cuda"):
        policies("tpu")


def test_saved_bytes_counts_a_memory_once() -> None:
    x = torch.rand(8, requires_grad=True)
    assert saved_bytes(lambda: x * x) == {"float32": 32}
    assert saved_bytes(lambda: x * x, besides=[x]) == {}


def test_casts_are_counted_while_something_holds_them() -> None:
    x = torch.rand(8)
    with CastsAlive() as alive:
        low = x.bfloat16()
        x.half()
    assert alive.nbytes == low.nbytes == 16
    del low
    assert alive.nbytes == 0


def test_its_lines_are_short() -> None:
    lines = Path(amp.__file__).read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 80


def test_sums_round_each_time_or_once() -> None:
    found = sums(torch.bfloat16, 512)
    assert found["sum"] == found["mm"] == 512
    assert found["total = total + one"] == found["index_add, 1-d"] == 256
    assert sums(torch.float32, 512) == dict.fromkeys(found, 512)
    assert gradient_of_uses(300) == 256
    assert gradient_of_uses(300, cache_enabled=False) == 300


def test_a_recorded_pass_says_what_was_cast_and_kept() -> None:
    x, w = torch.rand(2, 3), torch.rand(3, 3, requires_grad=True)

    def program() -> Tensor:
        return ((x @ w) @ w).relu()

    states = recorded(["a = x @ w", "b = a @ w", "c = b.relu()"], program, {"x": x, "w": w})
    first, second, third = states[-1].lines
    assert [place.cast for place in first.inputs] == ["bfloat16", "bfloat16"]
    assert [(place.cast, place.kept) for place in second.inputs] == [
        ("", False),
        ("bfloat16", True),
    ]
    assert third.result is not None and third.result.came == "bfloat16"
    assert states[-1].kept == ["w in bfloat16"] and len(states) == 2 + 3


def test_the_states_of_a_scaler() -> None:
    found = transitions()
    assert found["READY", "unscale_"] == "UNSCALED"
    assert found["UNSCALED", "step"] == found["READY", "step"] == "STEPPED"
    assert found["STEPPED", "update"] == found["UNSCALED", "update"] == "READY"
    assert "already been called" in found["UNSCALED", "unscale_"]
    assert "No inf checks" in found["READY", "update"]


def test_what_a_loop_reads_and_how_the_scale_moves() -> None:
    assert reads_of_loop(fused=False)["step(optimizer)"] == 1
    assert reads_of_loop(fused=True)["step(optimizer)"] == 0
    assert [scale for scale, *_ in trail({1}, 4)] == [16, 16, 8, 8]
