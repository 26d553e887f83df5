"""The argument parser in miniature: which signature a call from Python fits, or why none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from insidetorch.errors import BookError
from miniatures.one_call.rules import CHECKS, Parameter

Kwargs: TypeAlias = Mapping[str, Any]

ALIASES = {"dim": ["axis"], "keepdim": ["keepdims"], "input": ["x", "a", "x1"], "other": ["x2"]}
"""Names that NumPy uses."""

TAKES_NUMBERS = {"add", "sub", "mul", "div"}  # and others: there a Tensor may be a number


class Signature:
    """One line that the generated code gives to its parser: ``add(Tensor input, …)``."""

    def __init__(self, text: str) -> None:
        self.text, _, flag = text.partition("|")
        self.deprecated, self.parameters = flag == "deprecated", list[Parameter]()
        self.name, _, inside = self.text.removesuffix(")").partition("(")
        before_star, _, after_star = re.sub(r"^\*", ", *", inside).partition(", *")
        for part in filter(None, (before_star + after_star).split(", ")):
            found = re.fullmatch(r"([\w:]+)(?:\[(\d*)\])?(\?)?\s+(\w+)(=.*)?", part)
            if found is None or (kind := found[1].removeprefix("Sym")) not in CHECKS:
                raise BookError(
                    f"The signature {text} has a parameter of a type that the miniature does not "
                    f"know ({part}): give one of tensors, numbers, lists of numbers, or text."
                )
            none, optional = bool(found[3]) or found[5] == "=None", found[5] is not None
            rest = (none, found[4], optional, self.name in TAKES_NUMBERS)
            self.parameters.append(Parameter(kind, int(found[2] or 0), *rest))
        self.least = sum(not one.optional for one in self.parameters)
        self.by_place = len(list(filter(None, before_star.split(", "))))

    def could_take(self, count: int) -> bool:
        """Tell whether so many arguments may be given to it."""
        return not self.deprecated and self.least <= count <= len(self.parameters)

    def bind(self, args: Sequence[Any], kwargs: Kwargs) -> dict[str, Any]:
        """Return the arguments by parameter; TypeError says why not."""
        count = len(args)
        if count > self.by_place:
            self.fail(f" takes {self.span()} but {count} were given")
        bound, used = dict[str, Any](), 0
        for place, one in enumerate(self.parameters):
            names = [one.name, *ALIASES.get(one.name, ())]
            given = [kwargs[name] for name in names if name in kwargs]
            if place < count or given:
                value = args[place] if place < count else given[0]
                used += place >= count
                if one.accepts(value):
                    bound[one.name] = value
                elif value is not None or not one.none:
                    self.wrong(one, value, place, count)
            elif not one.optional:
                self.lacks(self.parameters[place:])
        if used < len(kwargs):
            self.extra(kwargs, count)
        return bound

    def span(self) -> str:
        """Say how many arguments may be given by position."""
        if self.least != self.by_place:
            return f"from {self.least} to {self.by_place} positional arguments"
        return f"{self.by_place} positional argument{'s' * (self.by_place != 1)}"

    def wrong(self, one: Parameter, value: Any, place: int, count: int) -> NoReturn:
        """Raise for a value that its parameter does not take."""
        where = f"'{one.name}'" + f" (position {place + 1})" * (place < count)
        self.fail(f": argument {where} {one.complaint(value, place < count)}")

    def lacks(self, parameters: Sequence[Parameter]) -> NoReturn:
        """Raise for what was not given. The plural is the wrong way round, as in PyTorch."""
        rest = [f'"{one.name}"' for one in parameters if not one.optional]
        plural = "s" * (len(rest) == 1)
        self.fail(f" missing {len(rest)} required positional argument{plural}: {', '.join(rest)}")

    def extra(self, kwargs: Kwargs, count: int) -> NoReturn:
        """Raise for the first keyword that is unknown, or was given by position too."""
        known = [one.name for one in self.parameters]
        name = next(key for key in kwargs if key not in known or known.index(key) < count)
        what = "multiple values for" if name in known else "an unexpected keyword"
        self.fail(f" got {what} argument '{name}'")

    def fail(self, text: str) -> NoReturn:
        """Raise the error of this function."""
        raise TypeError(f"{self.name}(){text}")


def choose(
    signatures: Sequence[Signature],
    args: Sequence[Any],
    kwargs: Kwargs,
) -> tuple[Signature, dict[str, Any]]:
    """Return the first that fits, deprecated ones last, and the arguments."""
    errors = dict[Signature, TypeError]()
    for one in sorted(signatures, key=lambda one: one.deprecated):
        try:
            return one, one.bind(args, kwargs)
        except TypeError as problem:
            errors[one] = problem
    given = len(args) + len(kwargs)
    plausible = [one for one in errors if one.could_take(given)]
    if len(errors) == 1 or len(plausible) == 1:
        raise errors[(plausible or list(errors))[0]]
    said = "received an invalid combination of arguments"
    raise TypeError(f"{one.name}() {said}")
