"""The tensor iterator: what its plan for two operands is; operators for lists of tensors."""

from __future__ import annotations

from typing import Any

from insidetorch.private.name import Name

_BINARY = Name("torch._tensor_iterator.binary_op")
_FOREACH = {
    "add": Name("torch._foreach_add"),
    "mul": Name("torch._foreach_mul"),
    "div": Name("torch._foreach_div"),
    "maximum": Name("torch._foreach_maximum"),
}


def has_iterator() -> bool:
    """Tell whether the running torch shows its iterator to Python.

    `torch._tensor_iterator`, which 2.11 does not have.
    """
    return _BINARY.here()


def binary_iterator(one: Any, other: Any) -> tuple[tuple[int, ...], list[tuple[int, ...]], Any]:
    """Return the plan for an operator such as `add` with a new result.

    `torch._tensor_iterator.binary_op(None, one, other)`.

    :return: the sizes of the loops, the innermost first; for the result and the operands the
        strides in elements, loop by loop; the type in which the numbers are computed.
    """
    made = _BINARY.get()(None, one, other)
    steps = [tuple(made.element_strides(at)) for at in range(3)]
    return tuple(made.shape), steps, made.common_dtype


def foreach(name: str) -> Any:
    """Return the function that runs an operator for the tensors of a list.

    `torch._foreach_add`, `torch._foreach_mul`, `torch._foreach_div` or `torch._foreach_maximum`.

    :param name: of the operator, such as `"add"`.
    """
    return _FOREACH[name].get()
