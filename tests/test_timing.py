"""Times are medians with their spread, and a ratio is against what was stated."""

import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.utils import benchmark

from insidetorch.display import seconds, significant
from insidetorch.errors import BookError
from insidetorch.measure import cpu_beside_gpu as comparison
from insidetorch.measure.cpu_beside_gpu import matmul_peak
from insidetorch.measure.timing import Bench, bench, bench_table

QUICK = 0.01


def test_the_time_of_a_call_is_measured():
    nap = bench("time.sleep(0.002)", setup="import time", min_run_time=QUICK)
    assert nap.median >= 0.002
    assert nap.iqr >= 0
    assert nap.runs >= 1
    assert nap.label == "time.sleep(0.002)"
    assert nap.text.startswith("time.sleep(0.002): ")


def test_a_function_is_called_and_names_itself():
    calls = []

    def work():
        calls.append(1)

    assert bench(work, min_run_time=QUICK).label == "work"
    assert len(calls) > 1


def test_a_rate_is_work_over_the_median_and_a_ratio_is_against_the_limit():
    x = torch.ones(1000)
    found = bench(
        "x.clone()",
        globals={"x": x},
        work=2 * x.nbytes,
        unit="B",
        limit=(1e9, "a limit"),
        min_run_time=QUICK,
    )
    assert found.rate == pytest.approx(8000 / found.median)
    assert found.ratio == pytest.approx(found.rate / 1e9)
    assert "% of a limit (1 GB/s)" in found.text
    assert found.record["limit"] == {"value": 1e9, "name": "a limit"}


def test_without_work_the_limit_is_a_time():
    found = bench("pass", limit=(2.0, "two seconds"), min_run_time=QUICK)
    assert found.rate is None
    assert found.ratio == pytest.approx(found.median / 2)
    assert "× two seconds (2 s)" in found.text


def test_the_threads_are_set_for_the_measurement_only():
    before = torch.get_num_threads()
    seen = []
    bench(lambda: seen.append(torch.get_num_threads()), threads=1, min_run_time=QUICK)
    assert set(seen) == {1}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"unit": "B"}, "has no work"),
        ({"work": 0}, "work=0"),
        ({"limit": (-1.0, "x")}, r"limit=-1\.0"),
    ],
)
def test_bad_arguments_are_told_in_one_sentence(wrong, message):
    with pytest.raises(BookError, match=message):
        bench("pass", **wrong)


def test_a_table_compares_with_the_first():
    first = Bench("", "", {"kind": "timing"}, label="slow", median=2e-3, iqr=1e-4, runs=3, calls=9)
    second = Bench("", "", {"kind": "timing"}, label="fast", median=1e-3, iqr=1e-5, runs=3, calls=9)
    shown = bench_table([first, second], caption="Two ways")
    lines = shown.text.splitlines()
    assert lines[0] == "Two ways"
    assert "rate" not in lines[1]
    assert lines[3].split() == ["slow", "2", "ms", "100", "µs", "3", "×", "9", "1", "×"]
    assert lines[4].split()[-2:] == ["0.5", "×"]
    assert len(shown.record["results"]) == 2


def test_an_empty_table_is_refused():
    with pytest.raises(BookError, match="nothing to show"):
        bench_table([])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5 s"),
        (0.9999, "1 s"),
        (0.0123, "12.3 ms"),
        (4.5678e-6, "4.57 µs"),
        (2.5e-8, "25 ns"),
        (3e-12, "0.003 ns"),
        (0, "0 s"),
        (4000, "4,000 s"),
    ],
)
def test_times_as_text(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.00001234, "0.0000123"), (12.345, "12.3"), (123456, "123,456"), (0, "0")]
)
def test_three_significant_digits(value, text):
    assert significant(value) == text


@pytest.mark.slow
def test_where_a_clock_waits_for_a_gpu_there_are_runs_enough_for_a_spread(monkeypatch):
    """Against a clock that takes long, PyTorch's timer makes one long run."""

    def clock():
        time.sleep(2e-5)
        return time.perf_counter()

    monkeypatch.setattr(benchmark, "Timer", partial(benchmark.Timer, timer=clock))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    found = bench("x + 1", globals={"x": 1}, min_run_time=QUICK)
    assert found.runs >= 30 and found.iqr > 0
    slow = bench("time.sleep(0.1)", setup="import time", min_run_time=QUICK)
    assert 3 <= slow.runs < 30, "a slow call is not repeated for minutes"


def test_the_limit_of_products_is_of_random_numbers(monkeypatch):
    """On ones a GPU draws less power and is faster than on anything that a model has."""
    products = []

    def measured(function, **_):
        products.append(function())
        return SimpleNamespace(median=1.0)

    monkeypatch.setattr(comparison, "bench", measured)
    assert matmul_peak("cpu", dtype="bfloat16", size=64)[0] == 2 * 64**3
    assert products[0].dtype == torch.bfloat16 and products[0].float().std() > 1
