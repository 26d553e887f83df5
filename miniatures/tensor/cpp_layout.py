"""Where the members of a C++ class lie in memory, worked out from the installed headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from math import prod

from insidetorch.errors import BookError
from insidetorch.facts import torch_facts

HOMES = {  # where the classes are written, below torch/include
    "intrusive_ptr_target": "c10/util/intrusive_ptr.h",
    "TensorImpl": "c10/core/TensorImpl.h",
    "VariableVersion": "c10/core/TensorImpl.h",
    "VersionCounter": "c10/core/TensorImpl.h",
    "SizesAndStrides": "c10/core/impl/SizesAndStrides.h",
    "PyObjectSlot": "c10/core/impl/PyObjectSlot.h",
    "TypeMeta": "c10/util/typeid.h",
    "DispatchKeySet": "c10/core/DispatchKeySet.h",
    "Storage": "c10/core/Storage.h",
    "StorageImpl": "c10/core/StorageImpl.h",
    "SparseTensorImpl": "ATen/SparseTensorImpl.h",
    "SymInt": "c10/core/SymInt.h",
    "DataPtr": "c10/core/Allocator.h",
    "UniqueVoidPtr": "c10/util/UniqueVoidPtr.h",
    "Device": "c10/core/Device.h",
}
BASIC = {
    "bool": 1, "uint8_t": 1, "DeviceType": 1, "DeviceIndex": 1, "uint16_t": 2, "uint32_t": 4,
    "int64_t": 8, "uint64_t": 8, "size_t": 8, "MaterializeFn": 8, "vtable": 8, "Tensor": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """Where a member lies: byte from the start; for a bit-field, its first bit and how many."""

    name: str
    type: str
    offset: int
    size: int
    bit: int = 0
    bits: int = 0


def header(path: str) -> str:
    """Return the text of a header of the installed torch."""
    facts = torch_facts()
    if facts is None:
        raise BookError("torch is not installed, so there are no headers to read; install it.")
    return (facts.root / "include" / path).read_text(encoding="utf-8")


def members(name: str) -> list[tuple[str, str, str, str]]:
    """Return type, name, bits and array length of each data member of a class, as written."""
    if name not in HOMES:
        raise BookError(f"cpp_layout does not know the C++ type {name}; add it to HOMES or BASIC.")
    text = header(HOMES[name])
    opening = re.search(rf"^( *)(?:struct|class) (?:\w+_API )?{name}\b([^;{{]*)\{{$", text, re.M)
    if opening is None:
        raise BookError(f"{HOMES[name]} of this torch defines no class {name}; mend HOMES.")
    indent, bases = opening.groups()
    body = text[opening.end() : text.index(f"\n{indent}}};", opening.end())]
    body = re.sub(r"^ *union \{.*\n  (.*;)\n *\};", r"\1", body, flags=re.M | re.S)  # largest last
    written = re.findall(
        rf"^{indent}  (?!static|return)(?:mutable )?(\w[\w:<>,* ]*?) (\w+_)(?: : (\d+))?"
        r"(?:\[(.*)\])?(?: =[^;]*|\{.*\})?;",
        body,
        re.M,
    )
    base = re.findall(r": (?:public )?(?:\w+::)*(\w+) *$", bases)
    first = base or (["vtable"] if "  virtual " in body else [])
    return [*((kind, kind, "", "") for kind in first), *written]


def up(value: int, step: int) -> int:
    return -(-value // step) * step


def number(text: str, path: str) -> int:
    """Return the number that a digit or a macro of a header stands for."""
    defined = dict(re.findall(r"#define (\w+) (\d+)$", header(path), re.M))
    return int(defined.get(text, text))


@cache
def size_of(kind: str) -> tuple[int, int]:
    """Return size and alignment of a C++ type on a 64-bit system, in bytes."""
    kind = re.sub(r"\b\w+::", "", kind).strip()
    if kind.endswith("*") or kind.startswith(("unique_ptr<", "intrusive_ptr<")):
        return (16 if "Deleter" in kind else 8), 8  # the deleter is kept, too
    if outer := re.fullmatch(r"(atomic|optional)<(.*)>", kind):
        size, align = size_of(outer[2])
        return up(size + (outer[1] == "optional"), align), align
    if kind in BASIC:
        return BASIC[kind], BASIC[kind]
    fields = layout(kind)
    align = max(size_of(field.type)[1] for field in fields.values())
    end = max(field.offset + field.size for field in fields.values())
    return up(end, align), align


@cache
def layout(name: str) -> dict[str, Field]:
    """Lay out a class as a C++ compiler does: in order, each aligned."""
    fields, end, bit = {}, 0, 0
    for kind, member, bits, array in members(name):
        size, align = size_of(kind)
        if bits:  # goes into the last byte, if it fits there
            if bit % 8 == 0 or bit % 8 + int(bits) > 8:
                end, bit = end + 1, 0
            fields[member] = Field(member, kind, end - 1, 1, bit % 8, int(bits))
            bit += int(bits)
            continue
        end, bit = up(end, align), 0
        if array:
            factors = array.split(" * ")
            size *= prod(number(part, HOMES[name]) for part in factors)
        fields[member] = Field(member, kind, end, size)
        end += size
    return fields
