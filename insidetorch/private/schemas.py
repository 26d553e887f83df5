"""What an operator's schema says of its arguments and results."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_SCHEMA = Name("torch.ops.aten.mul.Tensor._schema")
_PARSE = Name("torch._C.parse_schema")


def operator_arguments(operator: Any) -> dict[str, Any]:
    """Return the arguments of an operator overload by name, in order, with their defaults.

    `OpOverload._schema`; an argument without a default has None.
    """
    return {one.name: one.default_value for one in _SCHEMA.of(operator).arguments}


def operator_results(operator: Any) -> list[str]:
    """Return the names of an operator overload's results; an unnamed one has an empty name.

    `OpOverload._schema`.
    """
    return [one.name for one in _SCHEMA.of(operator).returns]


def operator_writes(operator: Any) -> dict[str, bool]:
    """Return the arguments of an operator overload by name, in order: True for those it writes.

    `OpOverload._schema`, the alias annotations such as ``Tensor(a!)``.
    """
    annotated = [(one.name, one.alias_info) for one in _SCHEMA.of(operator).arguments]
    return {name: alias is not None and bool(alias.is_write) for name, alias in annotated}


def parsed_schema(text: str) -> Any:
    """Return a schema that is written as a text, as the dispatcher's parser reads it.

    `torch._C.parse_schema`.
    """
    return _PARSE.get()(text)
