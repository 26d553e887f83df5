"""A live tensor read from memory: header by header, field by field, without asking PyTorch."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from insidetorch.errors import BookError
from miniatures.tensor.cpp_layout import header, layout, size_of

HAS_PYOBJECT = 1 << 63  # the top bit of the counts


def word(address: int, size: int = 8) -> int:
    """Return the unsigned number in `size` bytes at an address of this process."""
    return int.from_bytes(ctypes.string_at(address, size), "little")


@dataclass(frozen=True)
class Record:
    """A C++ object at an address; ``record["name_"]`` is a field's value."""

    kind: str
    address: int

    def __getitem__(self, name: str) -> int:
        field = layout(self.kind)[name]
        value = word(self.address + field.offset, field.size)
        mask = (1 << field.bits) - 1 if field.bits else -1
        return value >> field.bit & mask

    def inside(self, name: str) -> Record:
        """Return a member that is itself a class."""
        field = layout(self.kind)[name]
        kind = field.type.rpartition("::")[2]
        return Record(kind, self.address + field.offset)


def impl_of(tensor: torch.Tensor) -> Record:
    """Return the TensorImpl of a Python tensor: its address follows the head of the object.

    :raises BookError: the TensorImpl does not point back, so it lies in memory in another way.
    """
    impl = Record("TensorImpl", word(id(tensor) + object.__basicsize__))
    if impl.inside("pyobj_slot_")["pyobj_"] != id(tensor):
        raise BookError(
            f"The TensorImpl of torch {torch.__version__} is laid out otherwise than its headers "
            "say to miniatures/tensor/cpp_layout.py; teach it the types that are new there."
        )
    return impl


def counts_of(record: Record) -> tuple[int, int, bool]:
    """Return strong references, weak ones, and if there is a Python object."""
    both = record.inside("intrusive_ptr_target")["combined_refcount_"]
    weak = (both & ~HAS_PYOBJECT) >> 32  # all strong ones together count as one
    return both & 0xFFFFFFFF, weak - 1, bool(both & HAS_PYOBJECT)


def storage_of(impl: Record) -> Record | None:
    """Return the StorageImpl that a TensorImpl points to; None if it has none."""
    address = impl["storage_"]
    return Record("StorageImpl", address) if address else None


def version_of(impl: Record) -> int | None:
    """Return what the version counter says; None if there is no counter."""
    address = impl["version_counter_"]
    return Record("VersionCounter", address)["version_"] if address else None


def numbers(impl: Record) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and strides; six or more lie outside the TensorImpl."""
    both = impl.inside("sizes_and_strides_")
    room = layout("SizesAndStrides")["inlineStorage_"]
    place, step = both.address + room.offset, room.size // 16
    dims = both["size_"]
    if dims > step:
        place, step = word(place), dims
    values = [word(place + 8 * i) for i in range(step + dims)]
    return tuple(values[:dims]), tuple(values[step:])


@cache
def enumerators(path: str, pattern: str) -> dict[int, str]:
    """Return the names that a header gives to numbers."""
    return {int(number): name for name, number in re.findall(pattern, header(path), re.M)}


def dtype_of(impl: Record) -> torch.dtype:
    """Return the dtype that the number in a TensorImpl stands for."""
    short = {"byte": "uint8", "char": "int8", "complexhalf": "complex32",
             "complexfloat": "complex64", "complexdouble": "complex128"}  # fmt: skip
    known = enumerators("torch/headeronly/core/ScalarType.h", r"^  _\(.+, (\w+)\) /\* (\d+) \*/")
    name = known[impl.inside("data_type_")["index_"]].lower()
    dtype: torch.dtype = getattr(torch, short.get(name, name))
    return dtype


def device_of(record: Record, name: str = "device_opt_") -> str:
    """Return the type of the device that a TensorImpl or a DataPtr names."""
    field, known = layout(record.kind)[name], enumerators(
        "torch/headeronly/core/DeviceType.h", r"^  (\w+) = (\d+),"
    )  # fmt: skip
    return known[word(record.address + field.offset, size_of("DeviceType")[0])].lower()


def read(tensor: torch.Tensor) -> dict[str, Any]:
    """Return the fields of a strided tensor by name, as its memory has them.

    :raises BookError: the tensor has no storage.
    """
    impl = impl_of(tensor)
    storage = storage_of(impl)
    if storage is None:
        raise BookError(f"A tensor of layout {tensor.layout} has no storage; read a strided one.")
    sizes, strides = numbers(impl)
    dtype, data = dtype_of(impl), storage.inside("data_ptr_").inside("ptr_")["data_"]
    return {
        "sizes": sizes,
        "strides": strides,
        "offset": impl["storage_offset_"],
        "elements": impl["numel_"],
        "dtype": dtype,
        "device": device_of(impl),
        "dispatch keys": impl.inside("key_set_")["repr_"],
        "contiguous": bool(impl["is_contiguous_"]),
        "channels last": bool(impl["is_channels_last_contiguous_"]),
        "dense without overlap": bool(impl["is_non_overlapping_and_dense_"]),
        "autograd data": bool(impl["autograd_meta_"]),
        "version": version_of(impl),
        "references": counts_of(impl)[0],
        "Python object": impl.inside("pyobj_slot_")["pyobj_"],
        "storage": storage.address,
        "storage's bytes": storage.inside("size_bytes_")["data_"],
        "storage's references": counts_of(storage)[0],
        "storage's memory": data,
        "storage's device": device_of(storage.inside("data_ptr_"), "device_"),
        "resizable": bool(storage["resizable_"]),
        "first element": data + impl["storage_offset_"] * dtype.itemsize if data else 0,
    }
