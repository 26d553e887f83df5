"""The interpreter of exported programs against PyTorch's, and the C++ loader's source."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from miniatures.export import cases, watch
from miniatures.export.interpreter import Interpreter, Refused


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1000, 1001, 1002, 1003, 1040])
def test_the_interpreter_equals_the_program(seed: int) -> None:
    assert all(cases.compare(seed).values())


class WithoutWriting(Interpreter):
    def write_back(self, results: list[Any], bound: list[Any]) -> Any:
        return super().write_back(results, [value.clone() for value in bound])


class WithoutChecking(Interpreter):
    def check(self, bound: list[Any]) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "noticed"), [(WithoutWriting, "written"), (WithoutChecking, "refusals")]
)
def test_a_rule_taken_away_is_noticed(
    runs: type[Interpreter], noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cases.program
    monkeypatch.setattr(cases, "program", lambda seed: real(seed).run_decompositions({}))
    monkeypatch.setattr(cases, "STEPS", ("in place", "counter"))
    assert not all(cases.compare(seed, runs)[noticed] for seed in range(4))


def test_sizes_that_contradict_are_refused() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    batch = Dim("batch", max=8)
    program = export(
        Both(), (torch.ones(3, 2), torch.zeros(3, 2)), dynamic_shapes=({0: batch}, {0: batch})
    )
    small = Interpreter(program)
    assert torch.equal(small(torch.ones(5, 2), torch.ones(5, 2)), torch.full((5, 2), 2.0))
    for first, second in (((5, 2), (4, 2)), ((9, 2), (9, 2)), ((3, 3), (3, 3)), ((3,), (3,))):
        with pytest.raises(Refused):
            small(torch.ones(first), torch.ones(second))
    with pytest.raises(Refused, match="structure"):
        small(torch.ones(3, 2))


def test_a_module_that_is_missing_is_told_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert watch.optional("json") is not None
    assert watch.optional("no_such_module_here") is None
    assert capsys.readouterr().out.count("\n") == 1
