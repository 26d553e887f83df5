"""The five questions to a slow line: what is counted, whose kernel runs, what threads keep."""

from __future__ import annotations

import pytest
import torch

from insidetorch.private.convolution import conv_backend
from miniatures.cpu_performance.cases import gelu
from miniatures.cpu_performance.watch import in_process, threads
from miniatures.cpu_performance.watch_kernels import who
from miniatures.cpu_performance.watch_questions import answers, ask


def test_a_formula_and_an_operator_differ_in_the_first_answer() -> None:
    x = torch.rand(1000)
    with threads(1):
        nine, one = ask(lambda: gelu(x)), ask(lambda: torch.tanh(x))
    assert (nine.operators, one.operators) == (9, 1)
    assert "tanh" in answers({"one": one}).text


def test_a_large_new_result_shows_in_the_pages() -> None:
    x = torch.rand(12 * 2**20)
    out = torch.empty_like(x)
    new, reused = ask(lambda: x + 1, times=1), ask(lambda: torch.add(x, 1, out=out), times=1)
    assert new.pages > 10 * reused.pages or new.pages < 100  # large pages


def _grown(rows: int) -> torch.Tensor:
    found = torch.empty(0, 8)
    for _ in range(rows):
        found = torch.cat([found, torch.ones(1, 8)])
    return found


def test_six_other_slow_lines_are_told_by_a_count() -> None:
    """Of what no count tells, the strides and the index, the last box of the picture speaks."""
    weights = [torch.rand(8, 8) for _ in range(40)]
    image, layer = torch.rand(4, 16, 32, 32), torch.nn.Conv2d(16, 32, 3)
    last = [t.to(memory_format=torch.channels_last) for t in (image, layer.weight.detach())]
    single, double, whole = torch.rand(512, 64), torch.rand(512, 64).double(), torch.ones(64, 64)
    with torch.inference_mode(), threads(1):
        loop = ask(lambda: [w.mul(0.9) for w in weights], times=1)
        at_once = ask(lambda: torch._foreach_mul(weights, 0.9), times=1)
        grown, joined = ask(lambda: _grown(40), times=1), ask(lambda: torch.ones(40, 8), times=1)
        plain = ask(lambda: layer(image), times=1)
        packed = ask(lambda: torch.nn.functional.conv2d(*last), times=1)
        mixed = ask(lambda: single * double, times=1)
        alike = ask(lambda: single * single, times=1)
        integers = ask(lambda: whole.long() @ whole.long(), times=1)
        product = ask(lambda: whole @ whole, times=1)
        large = ask(lambda: torch.ones(12 * 2**20), times=1)
        small = ask(lambda: torch.ones(2**10), times=1)
    assert loop.operators == 40 > at_once.operators and grown.operators > 10 * joined.operators
    assert plain.copies > packed.copies and plain.library[0] == packed.library[0]
    assert mixed.copies > alike.copies == 0
    assert integers.library[0] != product.library[0]
    assert large.pages > small.pages


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="a build without MKL")
def test_the_library_is_named() -> None:
    a = torch.rand(64, 64)
    assert who(lambda: a @ a) == ("MKL", "SGEMM")
    assert who(lambda: a.long() @ a.long())[0] == "ATen"


def test_a_convolution_of_doubles_is_unfolded() -> None:
    image, weight = torch.rand(4, 16, 24, 24), torch.rand(8, 16, 3, 3)
    assert conv_backend(image, weight) != conv_backend(image.double(), weight.double())
    assert conv_backend(image.double(), weight.double()) == "Slow2d"


@pytest.mark.slow
def test_an_older_thread_keeps_its_number() -> None:
    found = in_process(
        "from miniatures.cpu_performance.watch_kept import kept\n"
        "answer = {name: seen['threads'] for name, seen in kept().items()}"
    )
    assert found == {
        "this thread": 2, "older thread": 4, "new thread": 2, "DataLoader worker": 1,
    }  # fmt: skip
