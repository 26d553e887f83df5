"""What every locator returns: one definition, its lines and its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["cpp", "python", "yaml"]


@dataclass(frozen=True)
class Definition:
    """A stretch of one file that defines one symbol.

    :param symbol: the full name as found, e.g. ``torch::autograd::Node::operator()``.
    :param file: path below site-packages, e.g. ``torch/include/c10/core/TensorImpl.h``.
    :param language: of the file.
    :param first: number of the first line in the file, from 1; of a C++ header, in the file as it
        is in PyTorch's tree, see `insidetorch.locate.headers.without_guard`.
    :param lines: the text, line by line, without line ends.
    :param signature: what callers see of it, on one line.
    :param docstrings: first and last file line of each Python docstring in it.
    :param siblings: how many definitions in this file carry the same name, this one included.
    """

    symbol: str
    file: str
    language: Language
    first: int
    lines: tuple[str, ...]
    signature: str
    docstrings: tuple[tuple[int, int], ...] = ()
    siblings: int = 1

    @property
    def last(self) -> int:
        """Number of the last line in the file."""
        return self.first + len(self.lines) - 1

    @property
    def text(self) -> str:
        """The definition as one string."""
        return "\n".join(self.lines)
