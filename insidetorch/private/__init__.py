"""Every private PyTorch name the book uses, each behind one small accessor, by subject.

PyTorch promises nothing about these names. They are written down here once, so that a rename
upstream is found by `missing` and mended in one place. To add one: a `Name` beside the accessor
that uses it, in the module of its subject or in a new one, and a docstring that says what it is
and where it lives. ``private.version`` finds an accessor whatever module it is in.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


@cache
def _subjects() -> tuple[ModuleType, ...]:
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}") for name in names if name != "name")


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for subject in _subjects():
            if hasattr(subject, name):
                return getattr(subject, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def missing() -> list[str]:
    """Return the private names that the running torch does not have, by subject."""
    return [name.path for name in _declared() if not name.here()]


def names() -> list[str]:
    """Return every private name the book uses, by subject."""
    return [name.path for name in _declared()]


def _declared() -> list[Any]:
    from insidetorch.private.name import NAMES

    _subjects()
    return NAMES
