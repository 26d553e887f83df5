"""The miniature Module loads PyTorch's checkpoints and gives the same bits; so do its names."""

from __future__ import annotations

from pathlib import Path

import torch

from miniatures.nn_module import checkpoint, module
from miniatures.nn_module.watch import (
    records,
    saved,
)

SEEDS = range(240)


def test_records_begin_where_they_are_said_to() -> None:
    file = saved({"x": torch.arange(3.0)})
    found = {record.name.rpartition("/")[2]: record for record in records(file)}
    begin = found["0"].offset
    assert file.getvalue()[begin : begin + 12] == torch.arange(3.0).numpy().tobytes()
    assert not any(record.compressed for record in found.values())


def test_they_stay_miniatures() -> None:
    for part in (module, checkpoint):
        source = part.__file__
        assert source is not None
        assert len(Path(source).read_text(encoding="utf-8").splitlines()) <= 150
