"""Objects of Python that custom operators take whole: classes that are declared opaque."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_BASE = Name("torch._opaque_base.OpaqueBase")
_REGISTER = Name("torch._library.opaque_object.register_opaque_type")


def opaque_base() -> Any:
    """Return the class that an opaque class of the kind ``reference`` inherits from.

    `torch._opaque_base.OpaqueBase`.
    """
    return _BASE.get()


def register_opaque(kind: type, typ: str) -> None:
    """Declare a class opaque, so that a custom operator takes its objects.

    `torch._library.opaque_object.register_opaque_type`; `typ` is ``reference`` or ``value``.
    """
    _REGISTER.get()(kind, typ=typ)
