"""The tracer, its reader and its steps against PyTorch's profiler."""

from __future__ import annotations

from itertools import count

import pytest
import torch

from insidetorch import private
from miniatures.profilers import cases, cases_traces, reading
from miniatures.profilers.cases_device import LINE, raw
from miniatures.profilers.steps import Schedule, Steps
from miniatures.profilers.tracer import Tracer


@pytest.mark.slow
@pytest.mark.needs("g++")
@pytest.mark.parametrize("seed", range(5000, 5006))
def test_both_tell_the_same_tree(seed: int) -> None:
    assert cases.agrees(seed)


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_rule_taken_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reading, "_doubled", lambda node: False)
        assert not all(cases.agrees(seed) for seed in range(4))
    with monkeypatch.context() as patch:
        patch.setattr(reading, "by_time", lambda node: (-node.start, node.end))
        assert not any(cases.agrees(seed) for seed in range(4))


@pytest.mark.parametrize("seed", range(5000, 5040))
def test_a_schedule_makes_the_same_calls(seed: int) -> None:
    assert cases.same_steps(seed)


def test_a_schedule_without_its_repeat_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(self: Schedule, step: int) -> str:
        return real(Schedule(self.wait, self.warmup, self.active, 0, self.skip_first), step)

    real = Schedule.action
    monkeypatch.setattr(Schedule, "action", endless)
    assert not all(cases.same_steps(seed) for seed in range(40))


def test_times_nest_and_add_up() -> None:
    ticks = count(1000, 1000)
    tracer = Tracer(clock=lambda: next(ticks))
    tracer.begin("outer", 0, -1)
    tracer.begin("inner", 7, 3)
    tracer.end()
    tracer.end()
    outer, inner = reading.tree(tracer.chrome())
    assert inner.parent is outer
    assert (outer.total, outer.own, inner.own) == (3, 2, 1)
    assert [event["cat"] for event in tracer.chrome()["traceEvents"]] == [
        "cpu_op",
        "user_annotation",
    ]


def test_lines_that_overlap_in_part_are_not_nested() -> None:
    file = {
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": t, "dur": 10}
            for n, t in (("a", 0), ("b", 5))
        ]
    }
    assert [node.parent for node in reading.tree(file)] == [None, None]


def test_kernels_are_put_to_the_operator_that_launched_them() -> None:
    events = private.device_events(raw(LINE))
    times = {event.name: event.device_time_total for event in events}
    assert times["aten::mm"] == times["gemm"] == 300
    assert times["aten::relu"] == 20
    assert events.key_averages().total_average() is not None


def test_the_last_step_hands_over() -> None:
    steps = Steps(Schedule(0, 1, 2, 1))
    steps.enter()
    for _ in range(3):
        steps.next()
    assert steps.calls == ["prepare", "start", "stop", "ready"]
    assert steps.traces == [[1, 2]]


@pytest.mark.slow
def test_each_trace_hides_its_fault() -> None:
    torch.set_num_threads(1)
    text = cases_traces.counts(cases_traces.trace("text"), "Backward0")
    assert text[0] < text[1] < text[2]
    assert cases_traces.counts(cases_traces.trace("images"), "aten::clone") == [1, 1, 1]
    assert cases_traces.counts(cases_traces.trace("scoring"), "bernoulli_") == [1, 1, 1]
    assert cases_traces.names(cases_traces.trace("masked"), 1)["_to_copy"] == 3
