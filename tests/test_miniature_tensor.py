"""The tensor read from memory has the fields that PyTorch says it has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from tools import lack

from insidetorch.errors import BookError
from insidetorch.private.memory import storage_address, tensor_address, use_count
from miniatures.tensor import cpp_layout
from miniatures.tensor import reader as module
from miniatures.tensor import watch_heap as heap
from miniatures.tensor.cases import random_case, told
from miniatures.tensor.cpp_layout import layout, size_of
from miniatures.tensor.draw_bytes import (
    draw_conjugates,
    draw_pieces,
    draw_reads,
    draw_types,
    offsets,
)
from miniatures.tensor.draw_memory import memory_map
from miniatures.tensor.reader import (
    Record,
    counts_of,
    impl_of,
    numbers,
    read,
    storage_of,
    version_of,
)
from miniatures.tensor.watch_life import Owners, Versions
from miniatures.tensor.watch_rings import pieces_of, rings, stays

SEEDS = range(300)


def test_every_field_is_what_pytorch_says() -> None:
    """For a few tensors: the chapter compares three hundred."""
    for seed in range(5000, 5010):
        case = random_case(seed)
        expected = told(case.tensor)
        assert read(case.tensor) == expected, f"seed {seed}: {sorted(case.traits)}"


def test_the_cases_are_of_all_kinds() -> None:
    traits, dtypes, values = Counter[str](), set(), Counter[str]()
    for seed in SEEDS:
        case = random_case(seed)
        traits.update(case.traits)
        dtypes.add(case.tensor.dtype)
        fields = read(case.tensor)
        values.update(name for name, value in fields.items() if value)
        values.update(f"not {name}" for name, value in fields.items() if not value)
    assert len(traits) == 12
    assert min(traits.values()) >= 5, traits
    assert len(dtypes) == 13
    for name in ("contiguous", "channels last", "dense without overlap", "autograd data", "offset"):
        assert values[name] >= 5 and values[f"not {name}"] >= 5, name
    assert values["resizable"]


def test_a_wrong_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cpp_layout.layout("TensorImpl")
    slot = replace(real["pyobj_slot_"], offset=real["pyobj_slot_"].offset + 8)
    moved = {**real, "pyobj_slot_": slot}
    wrong = {"TensorImpl": moved}
    monkeypatch.setattr(module, "layout", lambda kind: wrong.get(kind) or layout(kind))
    with pytest.raises(BookError, match="laid out otherwise"):
        impl_of(torch.ones(2))


def test_a_class_that_is_gone_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cpp_layout.HOMES, "NoSuchClass", "c10/core/TensorImpl.h")
    with pytest.raises(BookError, match="defines no class NoSuchClass"):
        cpp_layout.members("NoSuchClass")
    with pytest.raises(BookError, match="does not know the C\\+\\+ type Unheard"):
        size_of("c10::Unheard")


def test_offsets_follow_from_the_order_and_the_alignment() -> None:
    fields = list(layout("TensorImpl").values())
    for field in fields:
        size, align = (1, 1) if field.bits else size_of(field.type)
        assert field.offset % align == 0, field
        assert field.size % size == 0, field
    bits = [f.offset * 8 + f.bit for f in fields]
    ends = [start + (f.bits or f.size * 8) for start, f in zip(bits, fields, strict=True)]
    assert all(end <= after for end, after in zip(ends, bits[1:], strict=False))
    assert size_of("std::optional<c10::Device>") == (3, 1)
    assert size_of("std::atomic<uint32_t>") == (4, 4)
    assert size_of("std::unique_ptr<void, DeleterFnPtr>") == (16, 8)
    assert size_of("VersionCounter") == (24, 8)


def test_counts() -> None:
    tensor = torch.ones(2)
    impl = impl_of(tensor)
    assert impl.address == tensor_address(tensor)
    assert counts_of(impl) == (1, 0, True)
    leaf = tensor.requires_grad_()
    kept = leaf.exp() * leaf
    assert counts_of(impl)[0] == use_count(leaf) > 1
    del kept

    storage = tensor.untyped_storage()
    record = storage_of(impl)
    assert record is not None
    assert record.address == storage_address(storage)
    assert counts_of(record) == (2, 0, True)
    reference = storage._weak_ref()
    assert counts_of(record) == (2, 1, True)
    storage._free_weak_ref(reference)
    assert counts_of(record) == (2, 0, True)


def test_what_a_tensor_may_lack() -> None:
    sparse = torch.eye(2).to_sparse()
    assert storage_of(impl_of(sparse)) is None
    with pytest.raises(BookError, match="no storage"):
        read(sparse)
    with torch.inference_mode():
        inference = torch.ones(2)
    assert version_of(impl_of(inference)) is None
    written = torch.ones(2).zero_()
    assert version_of(impl_of(written)) == 1


@pytest.mark.parametrize("dims", range(9))
def test_sizes_and_strides_inside_and_outside(dims: int) -> None:
    tensor = torch.empty(tuple(range(1, dims + 1)))
    assert numbers(impl_of(tensor)) == (tuple(tensor.shape), tensor.stride())


def test_a_sparse_tensor_has_more_fields_behind_the_common_ones() -> None:
    sparse = torch.eye(3).to_sparse()
    record = Record("SparseTensorImpl", tensor_address(sparse))
    common = size_of("TensorImpl")[0]
    fields = layout("SparseTensorImpl")
    assert all(f.offset >= common for name, f in fields.items() if name != "TensorImpl")
    assert (record["sparse_dim_"], record["dense_dim_"], record["coalesced_"]) == (2, 0, 1)
    for name, tensor in (("indices_", sparse.indices()), ("values_", sparse.values())):
        inner = Record("TensorImpl", record[name])
        assert inner["storage_"] == storage_address(tensor.untyped_storage())


def test_places_follow_from_sizes_strides_and_offset() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert offsets(x) == [0, 1, 2, 3, 4, 5]
    assert offsets(x.t()) == [0, 3, 1, 4, 2, 5]
    assert offsets(x[1:, 1]) == [4]
    assert offsets(x[0].expand(2, 3)) == [0, 1, 2] * 2
    assert offsets(torch.empty(0, 3)) == []
    assert offsets(torch.tensor(1.0)) == [0]


def test_the_pictures_say_what_they_show() -> None:
    x, z = torch.arange(6.0).reshape(2, 3), torch.tensor([1 + 2j, 3 - 1j])
    assert "x.t(): [3, 2], strides [1, 3], offset 0: 1, 3, 5, 2, 4, 6" in draw_reads(
        {"x": x, "x.t()": x.t()}
    ).text  # fmt: skip
    assert "torch.int32: 1065353216" in draw_types(torch.ones(1), [torch.int32]).text
    said = draw_conjugates({"z": z, "its imaginary part": z.conj().imag}).text
    assert "bit Negative: –, -2, –, 1" in said and "read as it lies: 1 + 2j, 3 − 1j" in said
    assert "the elements 24" in draw_pieces({"x": x}).text


def test_counters_are_told_apart_and_owners_counted() -> None:
    x = torch.zeros(2)
    run = Versions.of({"x": x, "view": x[:1], "data": x.data})
    assert run.note("before") == {"x": 0, "view": 0, "data": 0}
    x.add_(1)
    assert run.note("after") == {"x": 1, "view": 1, "data": 0}
    assert "counter A: 1, " not in run.states[0][0].text
    assert "has gone up: counter A: 1." in run.states[1][0].text

    leaf = torch.ones(2, requires_grad=True)
    watched = Owners.of(leaf)
    assert watched.note("alone", 1, []) == (1, 1)
    kept = leaf.sin()
    assert watched.note("saved", 1, ["sine", "leaf"]) == (3, 2)
    del leaf
    assert watched.note("no name", 0, ["sine", "leaf"]) == (3, 1)
    del kept


def test_which_rings_stay_and_which_pieces_are_missing() -> None:
    assert stays(lambda: torch.ones(1)) is False
    ring = torch.ones(1, requires_grad=True)
    ring.kept = ring * 2  # type: ignore[attr-defined]
    assert stays(lambda: ring)
    del ring.kept  # type: ignore[attr-defined]
    assert list(rings().values()) == [False] * 4 + [True] * 4
    missing = {
        name for name, there in pieces_of(torch.empty(2, device="meta")).items() if not there
    }
    assert missing == {"bytes", "notes of autograd"}
    assert not pieces_of(torch.eye(2).to_sparse())["storage"]


@pytest.mark.slow
def test_the_map_shows_a_shared_object_once() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    drawn = memory_map({"x": x, "row": x[1]})
    assert drawn.html.count("StorageImpl</text>") == 1
    assert drawn.html.count("TensorImpl</text>") == 2
    assert "row has a TensorImpl with strides [1] and offset 3; all point to one" in drawn.text


def test_the_heap_is_counted() -> None:
    try:
        heap.in_use()
    except BookError:
        lack("a C library that counts its heap")
    assert 4000 <= heap.bytes_each(lambda: torch.empty(1000), 200) - heap.bytes_each(
        lambda: torch.empty(0), 200
    ) < 4300  # fmt: skip
