"""`parallel_for` in miniature against `at::parallel_for`: the same chunks, threads and bits."""

from __future__ import annotations

import random

import pytest
import torch

from miniatures.cpu_performance.parallel_for import (
    GRAIN_SIZE,
    Cost,
    chunks,
    for_each,
    reduce,
    started,
)
from miniatures.cpu_performance.watch import (
    faults,
    in_process,
    nested_chunks,
    onednn,
    real_chunks,
    threads,
)

compiled = pytest.mark.needs("c++")


@compiled
def test_chunks_are_pytorchs() -> None:
    """In a few loops: the chapter compares three hundred."""
    rng = random.Random(7)
    cut = 0
    for _ in range(30):
        begin, count = rng.randint(-100, 100), rng.choice([0, 1, 2, 7, 1000, 2**15, 2**15 + 1])
        end = begin + rng.randint(0, count + 2)
        grain = rng.choice([0, 1, 2, 3, 100, GRAIN_SIZE, rng.randint(0, count + 1)])
        number = rng.randint(1, 9)
        with threads(number):
            found = real_chunks(begin, end, grain)
        assert found == chunks(begin, end, grain, number)
        cut += len(found) > 1
    assert cut > 5


@compiled
def test_a_loop_inside_a_loop_is_one_chunk() -> None:
    for number in (1, 2, 4):
        with threads(number):
            outer = len(real_chunks(0, 2, 0))
            assert nested_chunks(50) == outer * len(chunks(0, 50, 1, number, inside=True))


def test_sums_have_pytorchs_bits() -> None:
    generator = torch.Generator().manual_seed(0)
    rng, several = random.Random(1), 0
    for _ in range(200):
        count, number = rng.randint(1, 300_000), rng.randint(1, 8)
        values = torch.rand(count, generator=generator)
        with threads(number):
            theirs = values.sum()
        with threads(1):
            ours = reduce(
                count,
                number,
                lambda first, last, v=values: v[first:last].sum().item(),
                lambda slots: torch.tensor(slots).sum().item(),
            )
        assert ours == theirs.item()
        several += len(for_each(count, number)) > 1
    assert several > 100


@pytest.mark.slow
def test_a_cut_wakes_every_thread() -> None:
    code = """
torch.set_num_threads(6)
x, out, answer = torch.rand(32770), torch.rand(32770), [tasks()]
for count in (100, 32768, 32769, 32770):
    torch.add(x[:count], 1, out=out[:count])
    answer.append(tasks() - answer[0])
"""
    _, *new = in_process(code)
    assert new == [0, 0, 5, 5]
    assert [started(count, threads=6) - 1 for count in (100, 32768, 32769, 32770)] == new


def test_chunks_cover_the_range_once() -> None:
    rng = random.Random(2)
    for _ in range(500):
        end, grain, number = rng.randint(1, 500), rng.randint(0, 60), rng.randint(1, 40)
        cut = chunks(0, end, grain, number)
        assert [first for _, first, _ in cut] == [0, *(last for _, _, last in cut[:-1])]
        assert cut[-1][2] == end
        assert len(cut) <= number
        sizes = [last - first for _, first, last in cut]
        assert len(set(sizes[:-1])) <= 1
        assert sizes[-1] <= sizes[0]


def test_nothing_to_do() -> None:
    assert chunks(5, 5, 1, 4) == chunks(5, 3, 1, 4) == for_each(0, 4) == []
    assert started(0, threads=4) == 0


def test_cost_follows_the_busiest_core() -> None:
    free = Cost(call=0.0, element=1.0, shared=0.0, wake=0.0, cores=2)
    assert free.seconds(65536, 1) == 65536
    assert free.seconds(65536, 2) == 32768
    assert free.seconds(4 * 32768, 4) == 2 * 32768
    assert free.seconds(3 * 32768, 3) == 2 * 32768
    bound = Cost(call=0.0, element=1.0, shared=0.75, wake=0.0, cores=2)
    assert bound.seconds(65536, 2) == 0.75 * 65536


def test_cost_charges_for_every_thread_that_wakes() -> None:
    dear = Cost(call=1.0, element=1e-6, shared=0.0, wake=1.0, cores=8)
    assert dear.seconds(32768, 8) == pytest.approx(1 + 32768e-6)
    assert dear.seconds(32769, 8) == pytest.approx(1 + 7 + 16385e-6)


@pytest.mark.parametrize(("element", "shared", "cores"), [(1.0, 0.0, 4), (1.0, 0.5, 4)])
def test_break_even_is_where_the_times_cross(element: float, shared: float, cores: int) -> None:
    cost = Cost(call=3.0, element=element, shared=shared, wake=100_000.0, cores=cores)
    length = cost.break_even(4)
    assert cost.seconds(length + 8, 4) <= cost.seconds(length + 8, 1)
    assert cost.seconds(length - 8, 4, grain=1) > cost.seconds(length - 8, 1)


def test_break_even_of_a_full_bus_is_none() -> None:
    assert Cost(call=0.0, element=1.0, shared=1.0, wake=1.0, cores=4).break_even(4) == 0


def test_faults_counts_the_pages_of_new_memory() -> None:
    x = torch.ones(2**24)
    out = torch.empty_like(x)
    torch.add(x, 1, out=out)
    pages = 2**26 // 4096
    assert faults(lambda: torch.add(x, 1, out=out)) < pages / 20
    assert faults(lambda: torch.empty(2**24)) < pages / 20


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="no MKL")
@pytest.mark.slow
def test_the_log_names_the_products_of_mkl() -> None:
    log = onednn("""
m = torch.rand(64, 64)
print("# quiet"); m @ m
print("# single")
with torch.backends.mkl.verbose(1): m @ m""")
    assert [(line["mark"], line["primitive"]) for line in log if line["engine"] == "MKL"] == [
        ("single", "SGEMM")
    ]
