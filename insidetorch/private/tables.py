"""The dispatcher's tables: who registered what, and what became of it."""

from __future__ import annotations

import re
from typing import Any

from insidetorch.private.name import Name

_REGISTRATIONS = Name("torch._C._dispatch_get_registrations_for_dispatch_key")
_DISPATCH_DUMP = Name("torch._C._dispatch_dump")
_DISPATCH_TABLE = Name("torch._C._dispatch_dump_table")
_OPERATOR_NAMES = Name("torch._C._dispatch_get_all_op_names")
_CHECK_TABLE = Name("torch._C._dispatch_check_invariants")
_FIND_SCHEMA = Name("torch._C._dispatch_find_schema_or_throw")
_KERNEL_LIBRARY = Name("torch._C._dispatch_library")
_KERNEL_REGISTERED = Name("torch._C._dispatch_has_kernel_for_dispatch_key")
_KERNEL_COMPUTED = Name("torch._C._dispatch_has_computed_kernel_for_dispatch_key")


def registered_for(key: str) -> list[str]:
    """Return the operators that have a kernel for a dispatch key: ``aten::mm``, with overloads.

    `torch._C._dispatch_get_registrations_for_dispatch_key`.
    """
    return sorted(_REGISTRATIONS.get()(key))


def dispatch_dump(operator: str) -> str:
    """Return what was registered for an operator such as ``aten::mul.Tensor``, and where.

    `torch._C._dispatch_dump`.
    """
    return str(_DISPATCH_DUMP.get()(operator))


def dispatch_table(operator: str) -> dict[str, str]:
    """Return the kernel that each dispatch key gets for an operator, as text, by key.

    `torch._C._dispatch_dump_table`.
    """
    lines = str(_DISPATCH_TABLE.get()(operator)).splitlines()
    return {key: entry for key, _, entry in (line.partition(": ") for line in lines)}


def operator_names() -> list[str]:
    """Return the names of all registered operators, with overloads: ``aten::add.Tensor``.

    `torch._C._dispatch_get_all_op_names`, sorted.
    """
    return sorted(_OPERATOR_NAMES.get()())


def registrations(operator: str) -> list[tuple[str, str, str]]:
    """Return (key, place, how it can be called) of each kernel of an operator, newest first.

    `torch._C._dispatch_dump`, without the operator's own lines. The place is a file and a line;
    how is ``boxed``, ``boxed unboxed`` or ``fallthrough boxed``.
    """
    line = r"^(\w+)(?:\[alias\])?(?: \(inactive\))?: (.*?) :: .*\[ ([\w ]+?) *\]$"
    rows = re.findall(line, dispatch_dump(operator), re.MULTILINE)
    return [(key, _file_of(place), how) for key, place, how in rows]


def computed_table(operator: str) -> dict[str, tuple[str, str]]:
    """Return the place and the rule of each kernel in an operator's table, by runtime key.

    `torch._C._dispatch_dump_table`; a place that falls through starts with ``fallthrough``. Keys
    without a kernel are left out.
    """
    found = {}
    for key, entry in dispatch_table(operator).items():
        place, _, rule = entry.rpartition(" [")
        found[key] = _file_of(place), rule.rstrip("]")
    return found


def table_is_current(operator: str) -> bool:
    """Tell whether the table that calls use is the one that `computed_table` recomputes.

    `torch._C._dispatch_check_invariants`, which raises where they differ.
    """
    try:
        _CHECK_TABLE.get()(operator)
    except RuntimeError:
        return False
    return True


def has_kernel(operator: str, key: str) -> bool:
    """Tell whether an operator such as ``aten::sin`` has a kernel of its own for exactly this key.

    `torch._C._dispatch_has_kernel_for_dispatch_key`; `key` may be an alias key.
    """
    return bool(_KERNEL_REGISTERED.get()(operator, key))


def has_computed_kernel(operator: str, key: str) -> bool:
    """Tell whether the place of a runtime key in an operator's table is filled, by any rule.

    `torch._C._dispatch_has_computed_kernel_for_dispatch_key`; an alias key has no place and raises.
    """
    return bool(_KERNEL_COMPUTED.get()(operator, key))


def kernel_library(namespace: str, place: str) -> Any:
    """Return a library whose registrations carry `place` as the place where they were made.

    `torch._C._dispatch_library`: ``define(schema, "", ())`` and ``impl(name, key, function,
    with_keyset)``. What it registered goes when it goes.
    """
    return _KERNEL_LIBRARY.get()("FRAGMENT", namespace, "", place, 0)


def _file_of(place: str) -> str:
    falls, _, place = place.rpartition("registered at ")
    return falls + place.rpartition("/")[2]


def find_schema(operator: str) -> Any:
    """Look an operator such as ``aten::mm`` up as C++ does; raise if it has no signature.

    `torch._C._dispatch_find_schema_or_throw`, which is `Dispatcher::findSchemaOrThrow`.
    """
    return _FIND_SCHEMA.get()(operator, "")
