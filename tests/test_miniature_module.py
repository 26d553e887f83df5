"""The miniature reads the checkpoints that PyTorch writes, with the same bits and strides."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from miniatures.nn_module.cases import random_pair
from miniatures.nn_module.checkpoint import ALLOWED, read
from miniatures.nn_module.draw_call import travelling
from miniatures.nn_module.draw_model import file_map, names_meet
from miniatures.nn_module.watch import records, saved
from miniatures.nn_module.watch_call import STATIONS, recorded
from miniatures.nn_module.watch_kept import HELD, WALKS, flag_readers, reached

TYPES = [kind for kind in ALLOWED.values() if isinstance(kind, torch.dtype)]
TORCH_TYPES = {torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool}


def bits(tensor: Tensor) -> list[int]:
    """Return the bytes of each element, in order, whatever the strides."""
    flat: list[int] = tensor.detach().contiguous().view(-1).view(torch.uint8).tolist()
    return flat


def same(mine: Tensor, theirs: Tensor) -> bool:
    fields = ("dtype", "shape", "requires_grad")
    places = [
        (t.stride(), t.storage_offset(), t.untyped_storage().nbytes()) for t in (mine, theirs)
    ]
    return (
        type(mine) is type(theirs)
        and all(getattr(mine, name) == getattr(theirs, name) for name in fields)
        and places[0] == places[1]
        and bits(mine) == bits(theirs)
    )


def both(content: Any) -> tuple[Any, Any]:
    file = saved(content)
    theirs = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    return read(io.BytesIO(file.getvalue())), theirs


def values(kind: torch.dtype) -> Tensor:
    """Return a tensor of 4 × 6 whose bytes are any, NaNs and infinities among them."""
    noise = torch.Generator().manual_seed(7)
    if kind is torch.bool:
        return torch.randint(0, 2, (4, 6), generator=noise).bool()
    raw = torch.randint(0, 256, (4 * 6 * kind.itemsize,), generator=noise, dtype=torch.uint8)
    filled = raw.view(kind).view(4, 6).clone()
    if kind.is_floating_point:
        filled[0, :3] = torch.tensor([float("nan"), float("inf"), -0.0])
    return filled


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(
    "cut",
    [
        lambda t: t,
        lambda t: t.t(),
        lambda t: t[1:, 2:],
        lambda t: t[:, ::2],
        lambda t: t[2, 3],
        lambda t: t[:0],
        lambda t: t[0].expand(3, 6),
    ],
    ids=["whole", "turned", "a corner", "every second", "one", "none", "widened"],
)
def test_a_tensor_is_read_with_its_bits_strides_and_offset(kind: torch.dtype, cut: Any) -> None:
    mine, theirs = both({"x": cut(values(kind))})
    assert same(mine["x"], theirs["x"])


def test_a_wrong_bit_would_be_noticed() -> None:
    x = values(torch.bfloat16)
    y = x.clone()
    y.view(torch.int16)[3, 5] ^= 1
    assert same(x, x.clone()) and not same(x, y) and not same(x.t().contiguous(), x.t())


def test_all_types_of_the_list_are_tried() -> None:
    assert set(TYPES) == TORCH_TYPES


def test_memory_that_was_shared_is_shared_again() -> None:
    x = torch.arange(6.0)
    mine, theirs = both({"x": x, "tail": x[4:], "other": x.clone()})
    for one in (mine, theirs):
        one["x"][5] = 9.0
        assert one["tail"].tolist() == [4.0, 9.0] and one["other"][5] == 5.0


def test_parameters_stay_parameters() -> None:
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    mine, theirs = both([nn.Parameter(torch.ones(3)), frozen, torch.ones(1, requires_grad=True)])
    assert all(map(same, mine, theirs))


@pytest.mark.parametrize("seed", range(5000, 5006))
def test_a_trained_model_is_read_loaded_and_computes_the_same_bits(seed: int) -> None:
    """A few models: the chapter compares two hundred."""
    pair = random_pair(seed)
    mine, theirs = both(pair.theirs.state_dict())
    assert list(mine) == list(theirs) and all(map(same, mine.values(), theirs.values()))
    assert pair.mine.load_state_dict(mine) == ([], [])
    assert bits(pair.mine(pair.batch)) == bits(pair.theirs(pair.batch))


def test_what_is_not_on_the_list_is_refused() -> None:
    file = io.BytesIO()
    torch.save({"x": Path("x")}, file)
    with pytest.raises(pickle.UnpicklingError, match="not on the list"):
        read(file)


def test_records_begin_where_they_are_said_to() -> None:
    file = saved({"x": torch.arange(3.0)})
    found = {record.name.rpartition("/")[2]: record for record in records(file)}
    begin = found["0"].offset
    assert file.getvalue()[begin : begin + 12] == torch.arange(3.0).numpy().tobytes()
    assert not any(record.compressed for record in found.values())


class Triple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3


def test_a_call_is_recorded_station_by_station() -> None:
    layer = Triple()
    layer.register_forward_hook(lambda module, args, output: output + 1)

    def doubled(module: nn.Module, grads_in: Any, grads_out: Any) -> Any:
        return (grads_in[0] * 2,)

    layer.register_full_backward_hook(doubled)
    stops = recorded(layer, torch.tensor(2.0, requires_grad=True))
    there = [stop.station for stop in stops if not stop.back]
    assert there == [name for name in STATIONS if name != "its own pre-hooks"]
    assert [stop.after for stop in stops if not stop.back][-1] == 7
    assert [(stop.before, stop.after) for stop in stops if stop.back] == [(3, 6)]
    assert len(travelling(stops)) == len(stops)


def test_without_hooks_nothing_but_the_global_ones_is_passed() -> None:
    stops = recorded(Triple(), torch.tensor(2.0, requires_grad=True))
    assert not any(stop.station.startswith("its own") or "mark" in stop.station for stop in stops)


def test_what_is_hidden_is_not_reached() -> None:
    seen = {name: [reached(name, walk) for walk in WALKS] for name in HELD}
    assert seen["parameter"] == [True, True, True, None, True]
    assert seen["list"] == [False, False, False, False, True]
    assert seen["not_saved"] == [False, False, True, None, True]


def test_a_dropout_reads_the_flag_and_a_layer_norm_does_not() -> None:
    assert {"Dropout", "BatchNorm1d", "LSTM"} <= set(flag_readers())
    assert "LayerNorm" not in flag_readers()


def test_pictures_say_what_they_show() -> None:
    meeting = names_meet({"a": (2,), "b": (3,)}, {"a": (2,), "b": (4,), "c": ()})
    assert "a: loaded; b: size mismatch; c: missing" in meeting.text
    assert "archive/data/0" in file_map(records(saved({"x": torch.zeros(3)}))).text
