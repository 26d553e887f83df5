"""BatchNorm in small against PyTorch's: random layers, and five kernels under the real function."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from miniatures.batchnorm import cases, sync, watch
from miniatures.batchnorm.norm import BatchNorm
from miniatures.ddp.watch_ranks import Ranks


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_the_miniature_equals_the_layer(seed: int) -> None:
    assert all(cases.compare(seed).values())


@pytest.mark.parametrize("broken", ["memory", "gradients"])
def test_a_rule_taken_away_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "memory":
        real = BatchNorm._remember
        monkeypatch.setattr(
            BatchNorm, "_remember", lambda self, mean, var: real(self, mean, var * 0.9)
        )
    else:
        real_backward = BatchNorm.backward

        def without_the_batch(self: BatchNorm, grad: torch.Tensor) -> Any:
            self.training = False
            return real_backward(self, grad)

        monkeypatch.setattr(BatchNorm, "backward", without_the_batch)
    assert not all(cases.compare(seed)[broken] for seed in range(20))


def test_the_five_kernels_are_there_inside_the_block_only() -> None:
    x = torch.randn(4, 3)
    with sync.on_cpu():
        mean, _ = torch.batch_norm_stats(x, 1e-5)
    assert torch.allclose(mean, x.mean(0))
    with pytest.raises(NotImplementedError, match="batch_norm_stats"):
        torch.batch_norm_stats(x, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("first", [5, 1])
def test_two_ranks_equal_one_process(first: int) -> None:
    with Ranks(2) as ranks:
        (_, (grad_0, _, mean, var)), (_, (grad_1, *_)) = ranks(watch.synchronized, first)
    x, grad = watch.drawn()
    norm = nn.BatchNorm1d(3).double()
    norm(x.requires_grad_()).backward(grad)
    assert torch.allclose(torch.cat([grad_0, grad_1]), x.grad)  # type: ignore[arg-type]
    assert torch.allclose(mean, norm.running_mean)  # type: ignore[arg-type]
    assert torch.allclose(var, norm.running_var)  # type: ignore[arg-type]
