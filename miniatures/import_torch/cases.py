"""Class statements at random over a base class in C, and what Python makes of them."""

from __future__ import annotations

import enum
import random
import types
from collections.abc import Mapping, Sized
from typing import Any, TypeAlias

import torch

World: TypeAlias = Mapping[str, type]
Outcome: TypeAlias = tuple[Any, ...]


class Plain:
    """A class of Python."""


class Slots:
    """A class of Python whose objects have a field of their own in memory."""

    __slots__ = ("field",)


def others() -> dict[str, type]:
    """Return the classes that both worlds share, by name."""
    builtins = {kind.__name__: kind for kind in (int, list, dict, object, Exception)}
    return {"Plain": Plain, "Slots": Slots, "Abstract": Sized, "Enum": enum.Enum, **builtins}


def world(result: type) -> World:
    """Return the classes of one world by what they are there for.

    :param result: the Python class that C gives its results, such as `torch.Tensor`.
    """
    base = result.__base__
    assert base is not None
    meta = type("SpecialMeta", (type(base),), {})
    special = meta("Special", (result,), {})
    return {"base": base, "result": result, "special": special, **others()}


def torch_world() -> World:
    """Return PyTorch's classes: `TensorBase`, `Tensor`, and a subclass with its own metaclass."""
    return world(torch.Tensor)


def random_bases(seed: int) -> tuple[str, ...]:
    """Return the bases of a class statement: one to three names, one of them from C or below."""
    rng = random.Random(seed)
    names = [rng.choice(["base", "result", "special"])]
    names += rng.choices(["base", "result", "special", *others()], k=rng.randrange(3))
    rng.shuffle(names)
    return tuple(names)


def outcome(of: World, bases: tuple[str, ...]) -> Outcome:
    """Make the class and say what came of it.

    :return: the order in which attributes are looked up, whether the class has the special
        metaclass, and how much larger its objects are than the base's and whether they have a
        dictionary; or the kind of the error and its first words.
    """
    known = {kind: role for role, kind in of.items()}
    try:
        made = types.new_class("Made", tuple(of[role] for role in bases))
    except (TypeError, RuntimeError) as error:
        return type(error).__name__, " ".join(str(error).split()[:2])
    order = [known.get(kind, kind.__name__) for kind in made.__mro__[1:]]
    return (
        order,
        type(made) is type(of["special"]),
        made.__basicsize__ - of["base"].__basicsize__,
        made.__dictoffset__ != 0,
    )
