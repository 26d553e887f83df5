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
