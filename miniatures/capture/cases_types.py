"""Types that scripting knows and does not know: enums need a file, as their source is read."""

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
