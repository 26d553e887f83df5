"""What a private name of PyTorch is: where it lives, and one sentence for where it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any

from insidetorch.errors import BookError

NAMES: list[Name] = []
"""Every name that a loaded module of this folder declares, in the order they were declared."""


@dataclass(frozen=True)
class Name:
    """A private name and where it lives.

    :param path: module and attributes, such as ``torch._C._current_graph_task_id``.
    :param example: makes an object of the class before the last dot; for attributes that only
        instances have.
    """

    path: str
    example: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        NAMES.append(self)

    def get(self) -> Any:
        """Return what the name stands for in the running torch, or raise `BookError`."""
        try:
            return _resolve(self.path)
        except AttributeError:
            raise self._absent() from None

    def of(self, owner: object) -> Any:
        """Return the attribute of `owner` that the last part of the path names."""
        try:
            return getattr(owner, self.path.rpartition(".")[2])
        except AttributeError:
            raise self._absent() from None

    def here(self) -> bool:
        """Tell whether the running torch has the name."""
        try:
            _resolve(self.path) if self.example is None else self.of(self.example())
        except (AttributeError, BookError):
            return False
        return True

    def _absent(self) -> BookError:
        import torch

        return BookError(
            f"The private PyTorch name {self.path} is absent from torch {torch.__version__}; "
            "install the release that requirements.txt pins, or mend its accessor in "
            "insidetorch/private."
        )


def _resolve(path: str) -> Any:
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            root = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[cut:], root)
    raise AttributeError(path)


def a_tensor() -> object:
    """Return a tensor: the example of names that only tensors have."""
    import torch

    return torch.zeros(1)


def replace(name: Name, value: object) -> None:
    """Put `value` in the place that a name stands for, in this process.

    :raises BookError: the running torch does not have the name.
    """
    name.get()
    owner, _, attribute = name.path.rpartition(".")
    setattr(import_module(owner), attribute, value)


def members(keys: object) -> list[str]:
    """Return the names in the text of a key set, which offers its members in no other way."""
    return re.findall(r"\w+", str(keys).partition("(")[2])
