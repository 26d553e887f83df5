"""Quantization in small against PyTorch's: scales, codes, products, on a few more layers."""

from __future__ import annotations

import pytest
import torch

from miniatures.quantization import affine, cases, watch


@pytest.fixture(autouse=True)
def _quietly() -> None:
    watch.quietly()


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_the_miniature_equals_pytorch(seed: int) -> None:
    assert all(cases.compare(seed).values())


@pytest.mark.parametrize(
    ("taken", "noticed"),
    [("symmetric", "scales"), ("quantize", "codes of the weight"), ("sums", "codes of the output")],
)
def test_a_rule_taken_away_is_noticed(
    taken: str, noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if taken == "symmetric":
        for module in (affine, cases):
            monkeypatch.setattr(module, "symmetric", lambda weight: weight.abs().amax(1) / 127)
    elif taken == "quantize":
        monkeypatch.setattr(
            affine,
            "quantize",
            lambda x, scale, zero, low, high: (x / scale + zero).clamp(low, high).long(),
        )
    else:
        monkeypatch.setattr(affine.Linear, "sums", lambda self, x, zero: x @ self.codes.T)
    assert not all(cases.compare(seed)[noticed] for seed in range(20))


def test_a_large_neighbour_matters_to_dynamic_layers_only() -> None:
    layer = affine.Linear.of(torch.randn(4, 8), torch.zeros(4))
    row = torch.randn(1, 8)
    both = torch.cat([row, torch.full((1, 8), 1000.0)])
    assert torch.allclose(layer.weight_only(both)[:1], layer.weight_only(row), atol=1e-5)
    assert not torch.allclose(layer.dynamic(both)[:1], layer.dynamic(row), atol=1e-3)
