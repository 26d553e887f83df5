"""The miniature reducer equals DDP's on random models; the processes that run both always end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from insidetorch import processes
from miniatures.ddp.cases import compare
from miniatures.ddp.reducer import Reducer, assign_buckets, leaves
from miniatures.ddp.watch import (
    Branches,
    Collective,
    chain,
    collectives,
    construct_under,
    default_assignment,
    fake_ranks,
    one_rank,
    operators_in,
)
from miniatures.ddp.watch_pass import record_pass
from miniatures.ddp.watch_ranks import RankError, Ranks
from miniatures.ddp.watch_time import passes

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pair() -> Iterator[Ranks]:
    with Ranks(2, 120) as ranks:
        yield ranks


# ── Buckets ─────────────────────────────────────────────────────────────────────────────────────


def random_params(chance: random.Random) -> list[torch.Tensor]:
    kinds = chance.choice([[torch.float32], [torch.float32, torch.float64, torch.bfloat16]])
    return [
        torch.empty(chance.randint(0, 40), dtype=chance.choice(kinds))
        for _ in range(chance.randint(1, 30))
    ]


@pytest.mark.parametrize("part", range(4))
def test_buckets_are_pytorchs(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        chance = random.Random(seed)
        params = random_params(chance)
        caps = [chance.randint(1, 600) for _ in range(chance.randint(1, 3))]
        assert assign_buckets(params, caps) == default_assignment(params, caps), seed


def test_a_bucket_may_exceed_its_cap_by_its_last_parameter() -> None:
    params = [torch.empty(3), torch.empty(100), torch.empty(1)]
    assert assign_buckets(params, [16]) == [[0, 1], [2]]


def test_with_an_order_the_buckets_stay_as_they_were_closed() -> None:
    params = [torch.empty(4) for _ in range(4)]
    assert assign_buckets(params, [32], [3, 1, 2, 0]) == [[3, 1], [2, 0]]


# ── The reducer on two ranks ────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_miniature_is_ddp_on_random_models(pair: Ranks) -> None:
    """A few of them: the chapter compares a hundred."""
    for answers in pair(compare_some, range(5000, 5010)):
        assert all(all(equal.values()) and len(equal) == 3 for equal, _ in answers)
        assert {trait for _, traits in answers for trait in traits} == {
            "a rebuild",
            "accumulation",
            "an unused parameter",
            "buckets of two types",
            "several buckets",
        }


def compare_some(rank: int, seeds: range) -> list[tuple[dict[str, bool], list[str]]]:
    return [compare(rank, seed) for seed in seeds]


def unfinished(rank: int) -> str:
    model = Branches()
    small = Reducer(list(model.parameters()), 100)
    small.before_forward()
    small.after_forward([out := model(torch.ones(1, 8), right=False)])
    out.sum().backward()
    try:
        small.before_forward()
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_a_parameter_without_gradient_is_noticed_at_the_next_forward(pair: Ranks) -> None:
    assert all("did not reduce all buckets" in said for said in pair(unfinished))


def test_leaves_are_those_that_backward_reaches() -> None:
    model = Branches()
    found = set(leaves([model(torch.ones(1, 8), left=False)]))
    assert found == set(model.right.parameters())


# ── Watching ────────────────────────────────────────────────────────────────────────────────────


def reduce_once(rank: int) -> tuple[list[Collective], list[float]]:
    flat = torch.full((3,), rank + 1.0)
    return collectives(lambda: dist.all_reduce(flat)), flat.tolist()


@pytest.mark.slow
def test_collectives_are_seen_with_size_and_type(pair: Ranks) -> None:
    expected = [Collective("allreduce", 3, "float32")], [3.0, 3.0, 3.0]
    assert pair(reduce_once) == [expected, expected]
    assert expected[0][0].nbytes == 12


def test_a_group_of_one_and_a_fake_group_leave_no_group_behind() -> None:
    for group, size in ((one_rank(), 1), (fake_ranks(64), 64)):
        with group:
            assert dist.get_world_size() == size
        assert not dist.is_initialized()


def test_operators_are_told_in_order() -> None:
    loss = chain(2)(torch.ones(1, 8)).sum()
    names = [name for name in operators_in(loss.backward) if name.startswith("autograd::engine")]
    assert "SumBackward0" in names[0] and sum("AddmmBackward0" in name for name in names) == 2


@pytest.mark.slow
def test_a_recorded_pass_has_every_layer_and_every_all_reduce_of_both_ranks(pair: Ranks) -> None:
    for rank, pieces in enumerate(pair(record_pass, 4, 512, 8, 2)):
        layers = [piece.name for piece in pieces if piece.lane == "backward"]
        sums = [(piece.name, piece.turn) for piece in pieces if piece.lane == "all-reduce"]
        assert layers == ["4", "3", "2", "1"] and sums == [("0: 4, 3", 2), ("1: 2, 1", 4)]
        assert {piece.rank for piece in pieces} == {rank}
        assert all(piece.start <= piece.end for piece in pieces)


@pytest.mark.slow
def test_passes_are_timed_for_each_cap_and_gradients_for_each_layer(pair: Ranks) -> None:
    for seen, quiet in pair(passes, (0.01, 1), 2, (3, 64, 0.001), 3):
        assert set(seen) == {0.01, 1} and all(len(times) == 3 for times in seen.values())
        assert len(quiet) == 4 and quiet == sorted(quiet)


@pytest.mark.slow
def test_a_process_that_ends_well_has_no_signal() -> None:
    ended = construct_under("INFO")
    assert (ended.signal, ended.printed[-1]) == ("", "constructed")


# ── The processes ───────────────────────────────────────────────────────────────────────────────


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def number(rank: int) -> int:
    return os.getpid()


def fails_on_one(rank: int) -> None:
    if rank == 1:
        raise ValueError("one rank is unwell")
    dist.barrier()


def waits_for_ever(rank: int) -> None:
    if rank == 0:
        dist.barrier()


def dies(rank: int) -> None:
    if rank == 0:
        os._exit(7)
    dist.barrier()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "limit", "said"),
    [
        (fails_on_one, 60, "rank 1: ValueError: one rank is unwell"),
        (waits_for_ever, 3, "no answer from rank 0"),
        (dies, 60, "rank 0 is gone, exit status 7"),
    ],
)
def test_a_failure_is_told_and_ends_every_process(function, limit, said) -> None:  # type: ignore[no-untyped-def]
    with Ranks(2, 60) as ranks:
        numbers = ranks(number)
        folder = ranks.folder.name  # type: ignore[union-attr]
        ranks.limit = limit
        with pytest.raises(RankError, match=said):
            ranks(function)
        assert not any(map(alive, numbers)) and not Path(folder).exists()


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_ends_the_others_and_the_next_call_starts_anew(victim: int) -> None:
    with Ranks(2, 300) as ranks:
        numbers = ranks(number)
        folder = ranks.folder.name  # type: ignore[union-attr]
        with pytest.raises(RankError, match=f"^rank {victim} is gone, exit status -9$"):
            ranks(killed, victim)
        assert not any(map(alive, numbers)) and not Path(folder).exists()
        again = ranks(number)
        assert set(again).isdisjoint(numbers)
        os.kill(again[victim], signal.SIGKILL)  # between two calls
        with pytest.raises(RankError, match=f"^rank {victim} is gone, exit status -9$"):
            ranks(number)


def killed(rank: int, victim: int) -> None:
    if rank == victim:
        time.sleep(1)  # the other rank waits in its barrier
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


@pytest.mark.slow
def test_closing_and_collecting_end_the_processes() -> None:
    ranks = Ranks(1)
    first = ranks(number)[0]
    ranks.close()
    second = ranks(number)[0]  # a later call starts new processes
    assert not alive(first) and alive(second) and first != second
    del ranks
    assert not alive(second)


def ran(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with the book's packages in reach."""
    return processes.run([sys.executable, "-c", program], env=processes.environment(**environment))


@pytest.mark.slow
def test_the_processes_end_with_the_one_that_made_them(tmp_path: Path) -> None:
    program = """
import os
from miniatures.ddp.watch_ranks import Ranks
def number(rank): return os.getpid()
print(*Ranks(2)(number), flush=True)
os._exit(1)
"""
    done = ran(program, TMPDIR=str(tmp_path))
    numbers = [int(word) for word in done.stdout.split()]
    assert len(numbers) == 2, done.stderr
    end = time.monotonic() + 300
    while any(map(alive, numbers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(alive, numbers))


@pytest.mark.slow
def test_functions_of_a_notebook_travel_with_what_they_use() -> None:
    program = """
import torch
import torch.distributed as dist
from miniatures.ddp.watch_ranks import Ranks
factor = 10
def twice(x): return 2 * x
def outer(offset):
    def run(rank, values, *, extra=1):
        total = torch.tensor(float(rank)); dist.all_reduce(total)
        return [twice(v) * factor + offset + extra for v in values] + [total.item()]
    return run
with Ranks(2) as ranks:
    print(ranks(outer(3), [1, 2]))
"""
    done = ran(program)
    assert done.stdout.strip() == str([[24, 44, 1.0]] * 2), done.stderr
