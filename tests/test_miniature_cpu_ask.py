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
