"""The argument parser in miniature: which signature a call from Python fits, or why none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from insidetorch.errors import BookError

ALIASES = {"dim": ["axis"], "keepdim": ["keepdims"], "input": ["x", "a", "x1"], "other": ["x2"]}
TAKES_NUMBERS = {"add", "sub", "mul", "div"}  # and others: there a Tensor may be a number
NAMES = {"Scalar": "Number", "int64_t": "int", "Int": "int", "double": "float"}
NAMES |= {"ScalarType": "torch.dtype", "IntArrayRef": "tuple of ints", "c10::string_view": "str"}
"""How an error calls the types of a signature, where it does not use the same word."""


def is_index(value: Any) -> bool:
    """Tell whether a size or a dimension may be given so."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and not (value.is_floating_point() or value.is_complex())
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any, *types: type) -> bool:
    """Tell whether a number may be given so; a tensor counts if it has no dimensions."""
    if isinstance(value, Tensor):
        return value.dim() == 0 and not value.requires_grad
    return isinstance(value, types)


def is_int64(value: Any) -> bool:
    """Tell whether an int may be given so. Of tensors, both rules above must hold."""
    return is_index(value) and is_number(value, int) and getattr(value, "dtype", 0) != torch.bool


def is_index_list(value: Any, size: int) -> bool:
    """Tell whether a list may be given so: its first item decides, and one number may do."""
    if isinstance(value, list | tuple):
        return not value or is_index(value[0])
    return size > 0 and is_index(value)


CHECKS: dict[str, Callable[[Any, Parameter], bool]] = {
    "Tensor": lambda v, p: isinstance(v, (Tensor, int, float, complex) if p.number else Tensor),
    "Scalar": lambda v, p: is_number(v, int, float, complex),
    "double": lambda v, p: is_number(v, int, float),
    "int64_t": lambda v, p: is_int64(v),
    "Int": lambda v, p: is_index(v),
    "bool": lambda v, p: isinstance(v, bool),
    "c10::string_view": lambda v, p: isinstance(v, str),
    "ScalarType": lambda v, p: isinstance(v, torch.dtype) or v in (float, int, bool, complex),
    "IntArrayRef": lambda v, p: is_index_list(v, p.size),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a signature, such as ``IntArrayRef[1]? dim=None``."""

    kind: str
    size: int  # a list of this size may be given as one number; 0: it may not
    none: bool  # None is allowed
    name: str
    optional: bool
    number: bool  # a Tensor may be given as a number


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
                raise BookError(f"The signature {text} has a part that is not known: {part}.")
            none, optional = bool(found[3]) or found[5] == "=None", found[5] is not None
            rest = (none, found[4], optional, self.name in TAKES_NUMBERS)
            self.parameters.append(Parameter(kind, int(found[2] or 0), *rest))
        self.least = sum(not one.optional for one in self.parameters)
        self.by_place = len(list(filter(None, before_star.split(", "))))

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter; TypeError says why they do not fit."""
        if len(args) > self.by_place:
            raise self.error(f" takes {self.span()} but {len(args)} were given")
        bound, used = dict[str, Any](), 0
        for place, one in enumerate(self.parameters):
            names = [name for name in (one.name, *ALIASES.get(one.name, ())) if name in kwargs]
            if place < len(args) or names:
                value = args[place] if place < len(args) else kwargs[names[0]]
                used += place >= len(args)
                if CHECKS[one.kind](value, one):
                    bound[one.name] = value
                elif value is not None or not one.none:
                    by_place = place < len(args)
                    where = f"'{one.name}'" + f" (position {place + 1})" * by_place
                    raise self.error(f": argument {where} must be {wrong(one, value, by_place)}")
            elif not one.optional:
                rest = [f'"{p.name}"' for p in self.parameters[place:] if not p.optional]
                count = f"{len(rest)} required positional argument{'s' * (len(rest) == 1)}"
                raise self.error(f" missing {count}: {', '.join(rest)}")  # its plural is PyTorch's
        if used < len(kwargs):
            known = [one.name for one in self.parameters]
            extra = next(k for k in kwargs if k not in known or known.index(k) < len(args))
            what = "multiple values for" if extra in known else "an unexpected keyword"
            raise self.error(f" got {what} argument '{extra}'")
        return bound

    def span(self) -> str:
        """Say how many arguments may be given by position."""
        if self.least != self.by_place:
            return f"from {self.least} to {self.by_place} positional arguments"
        return f"{self.by_place} positional argument{'s' * (self.by_place != 1)}"

    def error(self, text: str) -> TypeError:
        return TypeError(f"{self.name}(){text}")


def wrong(one: Parameter, value: Any, by_place: bool) -> str:
    """Say what a parameter must be and what came."""
    came = f"not {'torch.' * isinstance(value, torch.dtype)}{type(value).__name__}"
    if by_place and one.kind.endswith("ArrayRef") and isinstance(value, list | tuple):
        came = f"but found element of type {type(value[0]).__name__} at pos 0"
    return f"{NAMES.get(one.kind, one.kind)}, {came}"


def choose(
    signatures: Sequence[Signature], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Signature, dict[str, Any]]:
    """Return the first signature that fits, deprecated ones last, and the arguments."""
    errors, given = dict[Signature, TypeError](), len(args) + len(kwargs)
    for one in sorted(signatures, key=lambda one: one.deprecated):
        try:
            return one, one.bind(args, kwargs)
        except TypeError as problem:
            errors[one] = problem
    plausible = [s for s in errors if not s.deprecated and s.least <= given <= len(s.parameters)]
    if 1 in (len(errors), len(plausible)):
        raise errors[(plausible or [*errors])[0]]
    raise one.error(" received an invalid combination of arguments")
