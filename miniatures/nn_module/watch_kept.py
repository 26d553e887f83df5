"""What a module knows of itself: which walk reaches what it holds, and who reads its flag."""

from __future__ import annotations

import copy
import dis
import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Keeper(nn.Module):
    """Holds a tensor in ten ways."""

    def __init__(self) -> None:
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(2))
        self.buffer = nn.Buffer(torch.ones(2))
        self.not_saved = nn.Buffer(torch.ones(2), persistent=False)
        self.plain = torch.ones(2)
        self.child = nn.Linear(2, 2)
        self.module_list = nn.ModuleList([nn.Linear(2, 2)])
        self.list = [nn.Linear(2, 2)]
        self.dict = {"a": nn.Linear(2, 2)}
        self.parameter_list = nn.ParameterList([torch.ones(2)])
        self.parameters_in_list = [nn.Parameter(torch.ones(2))]


HELD = {
    "parameter": "nn.Parameter", "child": "child module", "module_list": "nn.ModuleList",
    "parameter_list": "nn.ParameterList", "buffer": "nn.Buffer",
    "not_saved": "buffer, not saved", "plain": "plain tensor",
    "parameters_in_list": "list of parameters", "list": "list of modules",
    "dict": "dict of modules",
}  # fmt: skip
"""The attributes of `Keeper`, and what each is."""

WALKS: dict[str, Callable[[nn.Module, str], bool | None]] = {
    "trained": lambda net, name: any(p is tensor(net, name) for p in net.parameters()),
    "saved": lambda net, name: any(
        t.data_ptr() == tensor(net, name).data_ptr() for t in net.state_dict().values()
    ),
    "moved": lambda net, name: tensor(net.double(), name).dtype == torch.float64,
    "eval()": lambda net, name: _flag_off(net.eval(), name),
    "deepcopy": lambda net, name: tensor(copy.deepcopy(net), name) is not tensor(net, name),
}
"""For each walk over a module: did it reach what the module holds under a name?"""


def reached(name: str, walk: str) -> bool | None:
    """Tell whether a walk reaches an attribute of a new `Keeper`; None if it has no meaning."""
    return WALKS[walk](Keeper(), name)


def tensor(net: nn.Module, name: str) -> Tensor:
    """Return the tensor that an attribute holds or has inside."""
    held = _first(getattr(net, name))
    found = held.weight if isinstance(held, nn.Linear) else held
    assert isinstance(found, Tensor)
    return found


def _first(held: object) -> object:
    if isinstance(held, dict):
        return next(iter(held.values()))
    if isinstance(held, nn.ModuleList | nn.ParameterList):
        return next(iter(held))
    return held[0] if isinstance(held, list) else held


def _flag_off(net: nn.Module, name: str) -> bool | None:
    inside = _first(getattr(net, name))
    return not inside.training if isinstance(inside, nn.Module) else None


def classes() -> list[type[nn.Module]]:
    """Return the classes of modules that ``torch.nn`` offers."""
    found = [kind for kind in vars(nn).values() if isinstance(kind, type)]
    return [kind for kind in found if issubclass(kind, nn.Module) and kind is not nn.Module]


def flag_readers() -> list[str]:
    """Return the classes of ``torch.nn`` whose code, or a base's, reads ``self.training``."""
    return sorted(
        kind.__name__
        for kind in classes()
        if any(_reads(base) for base in kind.__mro__ if base not in (nn.Module, object))
    )


def _reads(kind: type) -> bool:
    return any(
        instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval == "training"
        for function in vars(kind).values()
        if inspect.isfunction(function)
        for instruction in dis.get_instructions(function)
    )


def flag_takers() -> list[str]:
    """Return the functions of ``torch.nn.functional`` that take ``training=``."""
    found = []
    for name, function in vars(nn.functional).items():
        if name.startswith("_") or name.endswith("_") or not inspect.isfunction(function):
            continue
        if "training" in inspect.signature(inspect.unwrap(function)).parameters:
            found.append(name)
    return sorted(found)
