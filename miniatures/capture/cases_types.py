"""Types that scripting knows and does not know: enums need a file, as their source is read."""

# mypy: disable-error-code="empty-body"

from enum import Enum

import torch
from torch import nn


class Color(Enum):
    """An enum of numbers."""

    RED = 1
    BLUE = 2


class Word(str, Enum):  # noqa: UP042  (what people write, and scripting refuses)
    """An enum of strings."""

    RED = "red"


def by_color(c: Color, x: torch.Tensor) -> torch.Tensor:
    """Branch on a member."""
    return x * 2 if c == Color.RED else x


class OfWords(nn.Module):
    """A module with a member of the enum of strings."""

    def __init__(self) -> None:
        super().__init__()
        self.word = Word.RED

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Branch on it."""
        return x * 2 if self.word == Word.RED else x


class Helper:
    """A class of yours: as a global object it is refused, made in a function it is compiled."""

    def __init__(self) -> None:
        self.by = 3

    def scale(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by the number that is kept."""
        return x * self.by

    def __len__(self) -> int:
        return self.by


@torch.jit.interface
class Layer(nn.Module):
    """What several modules have in common, for an index that is not a literal."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass  # the compiler wants nothing else here


@torch.jit.interface
class Op:
    """What several classes have in common, for an argument."""

    def run(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Twice:
    """One of those classes; it has no base class."""

    def run(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by two."""
        return x * 2


class Thrice:
    """Another one."""

    def run(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by three."""
        return x * 3
