"""Lines that commonly break a graph, and what to write instead: programs of both kinds."""

from __future__ import annotations

import copy
import logging
import random
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

_log = logging.getLogger("breaks")
_lock = threading.Lock()


@dataclass(frozen=True)
class Case:
    """A break.

    :param what: the line, as text.
    :param broken: a function with the line in it, between two operators.
    :param mended: a function that does as much in one graph.
    :param remedy: what was changed, in words.
    :param settings: options of Dynamo under which `mended` is compiled.
    :param wants_grad: whether the argument requires a gradient.
    """

    what: str
    broken: Callable[[Tensor], Any]
    mended: Callable[[Tensor], Any]
    remedy: str
    settings: dict[str, Any] = field(default_factory=dict)
    wants_grad: bool = False

    def x(self) -> Tensor:
        """Return a fresh argument for both."""
        return torch.ones(3, requires_grad=self.wants_grad)


def prints(x: Tensor) -> Tensor:
    """Print between two operators."""
    y = x + 1
    print(end="")
    return y * 2


def logs(x: Tensor) -> Tensor:
    """Log between two operators."""
    y = x + 1
    _log.debug("here")
    return y * 2


def warns_plainly(x: Tensor) -> Tensor:
    """Warn with a text and nothing else, which can be put off."""
    y = x + 1
    warnings.warn("a warning")  # noqa: B028 - keyword arguments are not put off in all releases
    return y * 2


def branches(x: Tensor) -> Tensor:
    """Branch on data."""
    return x * 2 if x.sum() > 0 else x + 1


def chooses(x: Tensor) -> Tensor:
    """Compute both, and choose in the graph."""
    return torch.where(x.sum() > 0, x * 2, x + 1)


def asks(x: Tensor) -> Tensor:
    """Make a Python bool of data, and branch on it."""
    return x * 2 if bool(x.sum() > 0) else x + 1


def loops(x: Tensor) -> Tensor:
    """Repeat until the data says so."""
    while x.sum() < 10:
        x = x * 2
    return x


def one_round(x: Tensor) -> Tensor:
    """Be the body of that loop."""
    return x * 2


def lists(x: Tensor) -> Tensor:
    """Make Python floats of a tensor."""
    found: Tensor = x * sum((x + 1).tolist())
    return found


def sums(x: Tensor) -> Tensor:
    """Leave the sum to the graph."""
    return x * (x + 1).sum()


def times(x: Tensor) -> Tensor:
    """Look at the clock."""
    y = x + 1
    time.time()
    return y * 2


def plain(x: Tensor) -> Tensor:
    """Do without the line: it stands before or behind the call."""
    return (x + 1) * 2


def opens(x: Tensor) -> Tensor:
    """Open a file."""
    y = x + 1
    open("/dev/null").close()  # noqa: PTH123
    return y * 2


def calls_c(x: Tensor) -> Tensor:
    """Call a function that is written in C, and that Dynamo does not know."""
    return (x + 1) * zlib.crc32(b"a")


@torch.library.custom_op("dynamo_breaks::crc", mutates_args=())
def _crc(x: Tensor) -> Tensor:
    """Hide the C function in an operator."""
    return x * zlib.crc32(b"a")


@_crc.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def calls_an_operator(x: Tensor) -> Any:
    """Call the operator that hides the C function."""
    return torch.ops.dynamo_breaks.crc(x + 1)


def locks(x: Tensor) -> Tensor:
    """Hold a lock."""
    with _lock:
        y = x + 1
    return y * 2


def goes_back(x: Tensor) -> Tensor:
    """Run a backward pass inside."""
    y = (x * 2).sum()
    y.backward()  # type: ignore[no-untyped-call]
    return y + 1


def only_forward(x: Tensor) -> Tensor:
    """Return the loss: `backward` is called on the result."""
    return (x * 2).sum() + 1


def yields(x: Tensor) -> Iterator[Tensor]:
    """Be a generator."""
    yield x + 1
    yield x * 2


def consumes(x: Tensor) -> Tensor:
    """Use the generator inside."""
    first, second = yields(x)
    return first + second


def makes_a_parameter(x: Tensor) -> Tensor:
    """Make a parameter inside."""
    return (x + 1) * torch.nn.Parameter(torch.ones(3))


_parameter = torch.nn.Parameter(torch.ones(3))


def uses_a_parameter(x: Tensor) -> Tensor:
    """Use a parameter that was made outside."""
    return (x + 1) * _parameter


def copies(x: Tensor) -> Tensor:
    """Copy a tensor as any object."""
    return copy.deepcopy(x + 1) * 2


def clones(x: Tensor) -> Tensor:
    """Copy a tensor by an operator."""
    return (x + 1).clone() * 2


def seeds(x: Tensor) -> Tensor:
    """Seed the generator of random numbers."""
    torch.manual_seed(0)
    return x + torch.rand(3)


def draws(x: Tensor) -> Tensor:
    """Draw without seeding."""
    return x + torch.rand(3)


def draws_in_python(x: Tensor) -> Tensor:
    """Draw with Python's own generator."""
    return (x + 1) * random.random()


def draws_in_numpy(x: Tensor) -> Tensor:
    """Draw with NumPy's, and make a Python float of it."""
    return (x + 1) * float(np.random.rand())


def draws_in_torch(x: Tensor) -> Tensor:
    """Draw with PyTorch's."""
    return (x + 1) * torch.rand(())


def compares(x: Tensor) -> Tensor:
    """Compare all of two tensors."""
    return x + 1 if torch.equal(x, -x) else x * 2


def compares_in_the_graph(x: Tensor) -> Tensor:
    """Compare all of two tensors, and keep the answer in the graph."""
    return torch.where((x == -x).all(), x + 1, x * 2)


def catches(x: Tensor) -> Tensor:
    """Let an operator fail, and catch it."""
    try:
        return x.expand(2, 5)
    except RuntimeError:
        return x + 1


def asks_before(x: Tensor) -> Tensor:
    """Ask for the size first."""
    return x.expand(2, 5) if x.shape[0] in (1, 5) else x + 1


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _disabled(x: Tensor) -> Tensor:
    return x * 2


def calls_disabled(x: Tensor) -> Tensor:
    """Call a function that is disabled."""
    found: Tensor = _disabled(x + 1) - 1
    return found


CASES = [
    Case("`print(…)`", prints, plain, "print behind the call"),
    Case("`logger.debug(…)`", logs, logs, "`ignore_logger_methods`, or log behind the call",
         {"ignore_logger_methods": {_log.debug}}),
    Case("`warnings.warn(…)`", warns_plainly, warns_plainly, "`reorderable_logging_functions`",
         {"reorderable_logging_functions": {warnings.warn}}),
    Case("`if x.sum() > 0:`", branches, chooses, "`torch.where`, or `torch.cond`"),
    Case("`if bool(…):`", asks, chooses, "`torch.where`, or `torch.cond`"),
    Case("`while x.sum() < 10:`", loops, one_round, "compile the body"),
    Case("`torch.equal(a, b)`", compares, compares_in_the_graph, "`(a == b).all()`"),
    Case("`x.tolist()` of floats", lists, sums, "an operator that does it"),
    Case("`time.time()`", times, plain, "before or behind the call"),
    Case("`open(…)`", opens, plain, "before or behind the call"),
    Case("`random.random()`", draws_in_python, draws_in_torch, "`torch.rand`"),
    Case("`float(np.random.rand())`", draws_in_numpy, draws_in_torch, "`torch.rand`"),
    Case("`torch.manual_seed(…)`", seeds, draws, "before the call"),
    Case("a C function", calls_c, calls_an_operator, "`torch.library.custom_op`"),
    Case("`with lock:`", locks, plain, "hold it around the call"),
    Case("`loss.backward()`", goes_back, only_forward, "behind the call", wants_grad=True),
    Case("`yield`", yields, consumes, "compile who uses the generator"),
    Case("`nn.Parameter(…)`", makes_a_parameter, uses_a_parameter, "make it outside"),
    Case("`copy.deepcopy(tensor)`", copies, clones, "`clone`"),
    Case("`except RuntimeError:`", catches, asks_before, "ask for the size first"),
    Case("a disabled function", calls_disabled, plain, "do without, or without `fullgraph`"),
]  # fmt: skip
