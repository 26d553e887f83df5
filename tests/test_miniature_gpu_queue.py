"""The launch queue behaves as a queue, and the questions find the fault of a slow program."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from miniatures.gpu_performance import questions
from miniatures.gpu_performance.cases_slow import CHIP, slow_programs
from miniatures.gpu_performance.cases_traces import traces
from miniatures.gpu_performance.launch_queue import COPY, GPU, Launch, Wait, run, waiting
from miniatures.gpu_performance.questions import ask
from miniatures.gpu_performance.watch_access import attention_turns, strided
from miniatures.gpu_performance.watch_work import counted, spans_of


def test_kernels_run_one_after_the_other_and_none_before_its_launch() -> None:
    spans = run([Launch("a", 20), Launch("b", 2), Wait(), Launch("c", 2)])
    kernels = [(s.name, s.start, s.end) for s in spans if s.lane == GPU]
    assert kernels == [("a", 5, 25), ("b", 25, 27), ("c", 32, 34)]
    assert waiting(spans, 12) == ["b"] and waiting(spans, 26) == []


def test_another_queue_runs_beside_and_an_order_is_kept() -> None:
    spans = run(
        [Launch("copy", 40, queue=COPY), Launch("free", 3), Launch("step", 9, after=("copy",))]
    )
    starts = {s.name: s.start for s in spans if s.kind == "kernel"}
    assert starts["free"] < starts["step"] == 45


@pytest.mark.parametrize("name", slow_programs())
def test_the_questions_find_what_was_planted(name: str) -> None:
    program, work, planted = slow_programs()[name]
    assert ask(run(program), work, CHIP).limit == planted


@pytest.mark.parametrize("name", traces())
def test_the_questions_find_the_fault_in_a_trace(name: str) -> None:
    profile, work, planted = traces()[name]
    assert ask(spans_of(profile), work, CHIP).limit == planted


def test_each_line_between_the_answers_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[str]:
        return [ask(run(p), w, CHIP).limit for p, w, _ in slow_programs().values()]

    right = answers()
    for name, value in (("BUSY", 0.1), ("NEAR", 0.9), ("MUCH", 0.9)):
        with monkeypatch.context() as patch:
            patch.setattr(questions, name, value)
            assert answers() != right, name


def test_work_is_counted_without_numbers() -> None:
    x = torch.empty(64, 64, device="meta")
    assert counted(lambda: x + x.t()).bytes == 3 * x.nbytes
    assert counted(lambda: x + x[0]).bytes == 2 * x.nbytes + 64 * 4
    assert counted(lambda: x[0].expand(64, 64) + x).bytes == 2 * x.nbytes + 64 * 4
    assert counted(lambda: x @ x).flop == 2 * 64**3 and counted(lambda: x.t()).kernels == 0


def test_a_stride_touches_more_sectors_and_attention_sums_right() -> None:
    assert [strided(step).loads.sectors for step in (1, 2, 4, 8)] == [1, 2, 4, 8]
    scores = [0.5, -1.0, 3.0, 2.0, 2.5, 7.0]
    last = attention_turns(scores, 2)[-1]
    assert last.best == 7.0
    assert last.total == pytest.approx(float((torch.tensor(scores) - 7).exp().sum()))
    assert replace(last, best=1.0) != last
