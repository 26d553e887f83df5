"""C++ stacks: names for code addresses."""

from __future__ import annotations

from collections.abc import Sequence

from insidetorch.private.name import Name

_SYMBOLIZE = Name("torch._C._profiler.symbolize_addresses")


def symbolize(addresses: Sequence[int]) -> list[tuple[str, int, str]]:
    """Return (source file, line, function) of each code address of this process.

    `torch._C._profiler.symbolize_addresses` (torch/csrc/profiler/unwind) runs the system's
    ``addr2line`` over the libraries the addresses lie in. Release wheels have symbols but no line
    table: the line is 0, and the file is a base name or ``??``.
    """
    named: list[tuple[str, int, str]] = _SYMBOLIZE.get()(list(addresses), "addr2line")
    return named
