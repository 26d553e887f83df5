"""Random calls of PyTorch's functions, right and wrong, and what PyTorch makes of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import torch

from insidetorch.watch.modes import each_call
from miniatures.one_call.arguments import Signature, choose

_CANDIDATES = [
    "add", "sub", "mul", "div", "pow", "clamp", "sum", "mean", "cumsum", "gather", "addmm", "bmm",
    "eq", "lt", "remainder", "fmod", "lerp", "addcmul", "any", "all", "prod", "argmax", "unsqueeze",
    "transpose", "masked_fill", "flip", "atan2", "bucketize", "nansum", "logsumexp",
]  # fmt: skip


def _takes_names(function: str) -> bool:
    """Tell whether an overload takes names of dimensions; torch 2.11 has such, 2.13 does not."""
    return any("name" in one.lower() for one in getattr(torch.ops.aten, function).overloads())


FUNCTIONS = [name for name in _CANDIDATES if not _takes_names(name)]
"""Functions whose overloads all reach the dispatcher under their own name."""

POOL: dict[str, Sequence[Callable[[], Any]]] = {
    "Tensor": [lambda: torch.ones(2, 3), lambda: torch.tensor(1.5), lambda: torch.tensor(1)],
    "Scalar": [lambda: 2, lambda: 0.5, lambda: 1j, lambda: torch.tensor(1.5), lambda: True],
    "double": [lambda: 0.5, lambda: 1],
    "int64_t": [lambda: 0, lambda: 1, lambda: torch.tensor(0)],
    "bool": [lambda: True, lambda: False],
    "ScalarType": [lambda: torch.float64, lambda: float],
    "IntArrayRef": [lambda: [0], lambda: (0, 1), lambda: 0, lambda: [], lambda: [1.5]],
    "c10::string_view": [lambda: "floor", lambda: "trunc"],
}
ODD: Sequence[Callable[[], Any]] = [
    lambda: None, lambda: "x", lambda: torch.tensor(True), lambda: torch.tensor([2]),
    lambda: torch.tensor(1.5, requires_grad=True),
    *(make for makers in POOL.values() for make in makers),
]  # fmt: skip


def overloads(code: str) -> dict[Signature, list[str]]:
    """Read generated `THPVariable_…` code: each signature, and the overloads that it leads to.

    A signature with ``out`` leads to two, without it and with it. A deprecated one leads where
    the first of the others does.
    """
    texts = re.findall(r'"(\w+\(.*?)",\n', code)
    cases = re.split(r"case \d+: \{", code)[1:] or [code]
    found = {
        Signature(text): re.findall(r"// aten::([\w.]+)\(", case)
        for text, case in zip(texts, cases, strict=True)
    }
    current = next(names for one, names in found.items() if not one.deprecated)
    return {one: current if one.deprecated else names for one, names in found.items()}


def random_call(signatures: Sequence[Signature], seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for one of the signatures, with an odd one, or a name, here and there."""
    rng = Random(seed)
    one, odd = rng.choice(signatures), rng.choice([0.0, 0.0, 0.15])
    args, kwargs = list[Any](), dict[str, Any]()
    by_place = rng.randint(0, one.by_place)
    for place, parameter in enumerate(one.parameters):
        if place >= by_place and parameter.optional and rng.random() < 0.7:
            continue
        if rng.random() < odd / 3:
            break
        value = rng.choice(ODD if rng.random() < odd else POOL[parameter.kind])()
        if place < by_place:
            args.append(value)
        else:
            name = {"dim": "axis", "other": "x2"}.get(parameter.name, parameter.name)
            kwargs[rng.choice([parameter.name, name])] = value
    if rng.random() < odd:
        kwargs[rng.choice(["input", "dim", "wrong"])] = rng.choice(ODD)()
    return args, kwargs


def mine(table: Mapping[Signature, list[str]], args: Sequence[Any], kwargs: Any) -> str:
    """Return the overload that the miniature chooses, or its error."""
    try:
        one, bound = choose(list(table), args, kwargs)
    except TypeError as problem:
        return str(problem)
    return table[one][bound.get("out") is not None]


def theirs(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the overload that PyTorch calls first, or its TypeError up to what was given."""
    with torch.no_grad(), warnings.catch_warnings(), each_call(_stop):
        warnings.simplefilter("ignore")
        try:
            getattr(torch, name)(*args, **kwargs)
        except _Reached as reached:
            return str(reached)
        except TypeError as problem:
            return str(problem).partition(" - got")[0]
    raise AssertionError(f"torch.{name} reached no operator")


def verdicts_of(
    signatures: Sequence[Signature], calls: Mapping[str, tuple[Sequence[Any], Mapping[str, Any]]]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Return what each signature says to each call, the first that is tried first, in few words.

    The second text is a colour of the book: green for what fits, orange for what does not.
    """
    tried = sorted(signatures, key=lambda one: one.deprecated)
    said: dict[tuple[int, int], tuple[str, str]] = {}
    for row, (args, kwargs) in enumerate(calls.values()):
        for column, one in enumerate(tried):
            try:
                one.bind(args, kwargs)
            except TypeError as problem:
                said[row, column] = (_short(str(problem)), "b")
            else:
                said[row, column] = ("fits", "c")
                break
        else:
            continue
    return said


def _short(problem: str) -> str:
    for pattern, words in (
        (r"argument '(\w+)'.* must be (\w+)", r"\1 is no \2"),
        (r"positional arguments? but (\d)", r"\1 are too many"),
        (r"takes .* but (\d) were", r"\1 are too many"),
        (r'missing .*: "(\w+)', r"\1 is missing"),
        (r"unexpected keyword argument '(\w+)'", r"knows no \1"),
    ):
        found = re.search(pattern, problem)
        if found:
            return found.expand(words)
    return problem


def promoted(*operands: Any) -> torch.dtype:
    """Return the type of a sum by the rule of priorities and categories.

    Priorities: tensors with dimensions, tensors without, numbers. The highest one decides, unless
    a lower one brings a higher category. A floating type that becomes complex keeps its size.
    """
    default = torch.get_default_dtype()
    of_number = {bool: torch.bool, int: torch.int64, float: default, complex: default.to_complex()}
    met: list[torch.dtype | None] = [None, None, None]
    for one in operands:
        is_tensor = isinstance(one, torch.Tensor)
        place = (0 if one.dim() else 1) if is_tensor else 2
        dtype, before = one.dtype if is_tensor else of_number[type(one)], met[place]
        met[place] = dtype if before is None else torch.promote_types(before, dtype)
    result: torch.dtype | None = None
    for found in met:
        if found is None or (result is not None and _category(found) <= _category(result)):
            continue
        keeps = result is not None and result.is_floating_point and found.is_complex
        result = result.to_complex() if keeps and result is not None else found
    assert result is not None
    return result


def _category(dtype: torch.dtype) -> int:
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype != torch.bool)


class _Reached(Exception):
    """An operator was reached; its name is the text."""


def _stop(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Stop at the first operator, but for the one that reads a number out of a tensor."""
    if func.__name__.startswith("_local_scalar_dense"):
        return func(*args, **kwargs)
    raise _Reached(func.__name__.removesuffix(".default"))
