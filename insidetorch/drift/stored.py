"""Reading what drift has written as JSON: of the right shape and schema, or one sentence."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from insidetorch.errors import BookError

_Type = TypeVar("_Type")


def read(data: object, wanted: type[_Type], schema: int, name: str, again: str) -> _Type:
    """Return JSON, as bytes or already parsed, as a record.

    :param schema: the newest that this toolkit reads; what has none is refused.
    :param name: how to call it in the error.
    :param again: the command that writes it.
    :raises BookError: it is no such record, or one of a newer schema.
    """
    try:
        found = msgspec.json.decode(data) if isinstance(data, bytes) else data
        number = msgspec.convert(found, _Schema).schema
        if number <= schema:
            return msgspec.convert(found, wanted, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BookError(
            f"{name} cannot be read ({error}); remove it, and make it again with `{again}`."
        ) from None
    raise BookError(f"{name} has schema {number}, newer than {schema}; update the toolkit.")


class _Schema(msgspec.Struct):
    schema: int
