"""Random operators, registered with PyTorch and with the miniature alike, and calls of both."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor

from insidetorch.private.keys import key_bits, key_set, thread_sets
from insidetorch.private.tables import computed_table, kernel_library
from miniatures.dispatcher.tables import Dispatcher, Kernel, Operator
from miniatures.dispatcher.watch import union

_NUMBERS = count()
_BACKEND = ("CPU", "SparseCPU", "QuantizedCPU", "MkldnnCPU", "Meta", "CUDA", "SparseCsrCPU")
_LAYERS = (
    "AutogradCPU", "AutogradOther", "ADInplaceOrView", "BackendSelect", "AutocastCPU", "Conjugate",
    "Negative", "ZeroTensor", "AutogradMeta", "Functionalize", "FuncTorchBatched", "Tracer", "MTIA",
)  # fmt: skip
_ALIAS = (
    "Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor",
    "FuncTorchBatchedDecomposition",
)  # fmt: skip


@dataclass
class Case:
    """An operator with random kernels, registered in PyTorch and in the miniature alike.

    A kernel writes its label down and hands on to the keys behind its own, or returns.

    :param ran: the labels of the kernels that ran, in order.
    """

    name: str
    small: Operator
    ran: list[str] = field(default_factory=list)
    libraries: list[Any] = field(default_factory=list)

    def table_here(self) -> dict[str, tuple[str, str]]:
        """Return the table that PyTorch computed."""
        return computed_table(self.name)

    def call_here(self, *tensors: Tensor) -> list[str]:
        """Call PyTorch's operator; return the kernels that ran, and how it ended."""
        packet = getattr(torch.ops, self.name.partition("::")[0]).f
        return self._traced(lambda: packet(list(tensors)))

    def call_small(self, *tensors: Tensor) -> list[str]:
        """Call the miniature's operator with the same key sets."""
        small, keys = self.small.dispatcher, union(*tensors)
        small.included, small.excluded = thread_sets()
        return self._traced(lambda: small.call(self.small, keys))

    def _traced(self, call: Callable[[], object]) -> list[str]:
        self.ran.clear()
        try:
            call()
        except RuntimeError as error:  # NotImplementedError is one
            self.ran.append(_end(str(error)))
        return list(self.ran)


def _end(message: str) -> str:
    """Return which key an error is about: ``no kernel: SparseCPU``."""
    if "ambiguous" in message or "Ambiguity" in message:
        return "ambiguous"
    if "with Meta tensors" in message:
        return "no kernel: Meta"
    if "no tensor arguments" in message:
        return "no kernel: Undefined"
    found = re.search(r"from the '(\w+)' backend", message)
    return f"no kernel: {found[1]}" if found else message


def random_case(seed: int, small: Dispatcher) -> Case:
    """Return an operator on a list of tensors, with up to nine kernels at random keys.

    :param small: the miniature that gets the same kernels.
    """
    draw, space = random.Random(seed), f"insidetorch_case{seed}_{next(_NUMBERS)}"
    case = Case(f"{space}::f", Operator(f"{space}::f", small))
    make: Any = torch.library.Library  # which clears torch.ops when it goes
    library = make(space, "DEF")
    library.define("f(Tensor[] xs) -> Tensor")
    case.libraries.append(library)
    for number in range(draw.randrange(1, 10)):
        key = draw.choice(draw.choice((_BACKEND, _BACKEND, _LAYERS, _LAYERS, _ALIAS)))
        _register(case, key, f"{key} {number}", draw)
    return case


def _register(case: Case, key: str, label: str, draw: random.Random) -> None:
    small, here = case.small.dispatcher, kernel_library(case.name.partition("::")[0], label)
    case.libraries.append(here)
    if key not in _ALIAS and draw.random() < 0.2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it replaces an earlier one of this case
            here.impl("f", key, torch.library.fallthrough_kernel, False)
        case.small.register(key, Kernel(f"fallthrough {label}:0"))
        return
    own = small.keys.runtime if key in _ALIAS else (key,)
    hands_on = draw.random() < (0.9 if key in _LAYERS or key == "Autograd" else 0.1)

    def behind(keys: int) -> int:
        top = small.keys.top(keys)
        return keys & small.keys.below(top) if hands_on and top in own else 0

    def run_here(keys: Any, xs: list[Tensor]) -> Any:
        case.ran.append(label)
        left = behind(key_bits(keys))
        op = getattr(torch.ops, case.name.partition("::")[0]).f.default
        return op.redispatch(key_set(left), xs) if left else torch.zeros(1)

    def run_small(op: Operator, keys: int) -> Any:
        case.ran.append(label)
        left = behind(keys)
        return small.redispatch(op, left) if left else None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it replaces an earlier one of this case
        here.impl("f", key, run_here, True)
    case.small.register(key, Kernel(f"{label}:0", run_small))
