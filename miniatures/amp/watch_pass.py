"""A forward pass under autocast, recorded call by call: who was cast, what was kept."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from insidetorch.watch.modes import each_call

SHORT = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


@dataclass
class Place:
    """An argument or a result: its name, the type that came, and the type it was cast to."""

    name: str
    came: str
    cast: str = ""
    kept: bool = False


@dataclass
class Line:
    """One call of the program."""

    code: str
    inputs: list[Place]
    result: Place | None = None


@dataclass
class State:
    """The pass at one moment.

    :param kept: the casts that the region holds, by the name of their source.
    :param says: what has just happened.
    """

    lines: list[Line] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    says: str = ""


class _Calls(TorchFunctionMode):
    """Notes which of the program's calls runs."""

    def __init__(self, begin: Callable[[Any, Sequence[Any], Any], Any]) -> None:
        super().__init__()
        self.begin = begin

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.begin(func, args, kwargs or {})


def recorded(
    codes: Sequence[str], program: Callable[[], object], names: Mapping[str, Tensor]
) -> list[State]:
    """Run `program` under CPU autocast and return its states: each cast, each call.

    :param codes: the program's calls as text, in order, each ``result = …``.
    :param names: the tensors that it starts from.
    """
    known = {id(tensor): name for name, tensor in names.items()}
    holds: list[Tensor] = list(names.values())
    now, states = State(), list[State]()
    casts: dict[int, int] = {}

    def note(says: str) -> None:
        states.append(copy.deepcopy(State(now.lines, now.kept, says)))

    def backend(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if func is torch.ops.aten._to_copy.default and now.lines:
            source = args[0]
            holds.extend([source, result])
            casts[id(result)] = id(source)
            name = known.get(id(source), "?")
            place = next(p for p in now.lines[-1].inputs if p.name == name)
            place.cast = SHORT[result.dtype]
            says = f"`{name}` is {place.came}: it is cast to {place.cast}."
            if source.is_leaf and source.requires_grad:
                now.kept.append(f"{name} in {place.cast}")
                says += " It is a weight, so the region keeps this cast."
            note(says)
        return result

    def call(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if (
            len(now.lines) == len(codes)
            or not tensors
            or getattr(func, "__name__", "") == "__get__"
        ):
            return func(*args, **kwargs)
        code = codes[len(now.lines)]
        line = Line(code, [Place(known[id(t)], SHORT[t.dtype]) for t in tensors])
        now.lines.append(line)
        with each_call(backend):
            result = func(*args, **kwargs)
        for place in line.inputs:
            if not place.cast and any(kept.startswith(f"{place.name} ") for kept in now.kept):
                place.cast, place.kept = SHORT[torch.bfloat16], True
        name = code.partition(" = ")[0]
        known[id(result)] = name
        holds.append(result)
        line.result = Place(name, SHORT[result.dtype])
        used = [place.name for place in line.inputs if place.kept]
        says = f"`{code}` runs, and gives {line.result.came}."
        if used:
            says += f" The cast of `{used[0]}` was there already."
        elif not any(place.cast for place in line.inputs):
            says += " It is on no list: nothing was cast."
        note(says)
        return result

    with _Calls(call), torch.autocast("cpu"):
        program()
    return states
