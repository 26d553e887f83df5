"""Streams, events and copies of the miniature, and that its judges notice a missing rule."""

from __future__ import annotations

import pytest

from miniatures.cuda_from_the_host import cases
from miniatures.cuda_from_the_host.order import before, captured, races, surfaces, times
from miniatures.cuda_from_the_host.streams import CPU, Program
from miniatures.cuda_from_the_host.watch import LOOKS, said, waits_in_headers, who_waits


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_three_judges_agree_on_random_programs(seed: int) -> None:
    assert cases.agrees(seed)


def test_a_rule_taken_away_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wait(self: Program, stream: str, event: str) -> None:
        self._call(f"{event}.wait")

    monkeypatch.setattr(Program, "wait", no_wait)
    assert not all(cases.agrees(seed) for seed in range(12))


def test_delays_notice_a_lost_order(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [("kernel", "a", "main", "a", "b"), ("kernel", "b", "main", "a", "b")]
    assert cases.order_by_delay(lines) == {("a", "b")}
    monkeypatch.setattr(Program, "record", lambda self, event, stream="main": None)
    marked = [lines[0], ("record", "main", "e"), ("wait", "side", "e"),
              ("kernel", "c", "side", "a", "b")]  # fmt: skip
    assert cases.order_by_delay(marked) == set()


def test_kernels_of_a_stream_follow_each_other_and_the_cpu_runs_ahead() -> None:
    program = Program(cost=5)
    program.kernel("a", 20)
    program.kernel("b", 3)
    program.host("own", 2)
    when = {step.name: times(program.steps)[step.number] for step in program.steps}
    assert when["a"] == (5, 25) and when["b"] == (25, 28) and when["own"] == (10, 12)


def test_a_device_waits_for_its_own_streams_alone() -> None:
    program = Program()
    program.kernel("here", 50, "main")
    program.kernel("there", 90, "cuda:1/main")
    program.synchronize()
    program.host("next", 1)
    known = before(program.steps)[-1]
    names = {program.steps[number].name for number in known}
    assert "here" in names and "there" not in [program.steps[n].name for n in known
                                               if program.steps[n].lane != CPU]  # fmt: skip


def test_a_copy_between_devices_orders_both_streams() -> None:
    program = Program()
    program.kernel("old", 50, "cuda:1/main", writes="y")
    program.between("copy", 9, "main", "cuda:1/main", reads="x", writes="y")
    program.kernel("use", 9, "cuda:1/main", reads="y")
    assert not races(program.steps)
    assert not any(step.kind == "wait" for step in program.steps)


def test_a_graph_keeps_what_events_order_and_loses_what_the_cpu_did() -> None:
    program = Program()
    program.kernel("a", 9, "main", writes="x")
    program.synchronize(stream="main")
    program.kernel("b", 9, "side", reads="x")
    assert not races(program.steps) and len(races(captured(program.steps))) == 1


def test_an_error_surfaces_at_a_later_call_or_right_behind_the_launch() -> None:
    for blocking, name in ((False, "synchronize"), (True, "wait for bad")):
        program = Program(blocking=blocking)
        program.kernel("bad", 100)
        program.kernel("good", 1)
        program.synchronize()
        found = surfaces(program.steps, "bad")
        assert found is not None and found.name == name


def test_nobody_reports_an_error_that_nobody_waits_for() -> None:
    program = Program()
    program.kernel("bad", 100)
    program.kernel("good", 1)
    assert surfaces(program.steps, "bad") is None


def test_what_the_page_lists_is_there() -> None:
    assert {wait for _, _, wait, _ in waits_in_headers()} == {
        "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaStreamSynchronize",
    }  # fmt: skip
    assert who_waits()["event.synchronize()"] == ["CPU: mark"]
    assert all(said(name, "cpu") and not said(name, "cuda") for name in LOOKS)
