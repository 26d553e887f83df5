"""What of Python Dynamo traces: small programs, and the release that traces each."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import json
import math
import operator
import os
import pickle
import re
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

ALWAYS, NEVER = (0, 0), (9, 9)


@dataclass
class Plain:
    """A dataclass with a tensor and a number."""

    a: Tensor
    n: int = 2


@dataclass(frozen=True)
class Frozen:
    """A dataclass whose fields cannot be set again."""

    n: int


class Pair(NamedTuple):
    """A named tuple."""

    a: Tensor
    n: int


class Made(collections.namedtuple("Made", ["val"])):
    """A named tuple with a `__new__` of its own."""

    def __new__(cls, val: int) -> Made:
        """Do what the base class does."""
        return super().__new__(cls, val)


class Color(enum.Enum):
    """Two members."""

    RED = 1
    BLUE = 2


class Own(dict[str, Tensor]):
    """A dict of your own."""


class Thing:
    """Attributes set through `__dict__`, a property, a missing attribute, a call, a `with`."""

    def __init__(self) -> None:
        self.__dict__["size"] = 3

    def __getattr__(self, name: str) -> int:
        return 5

    def __enter__(self) -> Thing:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    @property
    def double(self) -> int:
        """A number."""
        return 6

    def scale(self, x: Tensor) -> Tensor:
        """Double."""
        return x * 2


class Child(Thing):
    """Calls its base class."""

    def scale(self, x: Tensor) -> Tensor:
        """Double, and add."""
        return super().scale(x) + 1


counter, thing, linear, recurrent = 0, Thing(), nn.Linear(3, 3), nn.LSTM(3, 3)


@functools.lru_cache
def cached(n: int) -> int:
    """Add one, once for each number."""
    return n + 1


@contextlib.contextmanager
def counting() -> Iterator[None]:
    """Count while open."""
    global counter
    counter += 1
    try:
        yield
    finally:
        counter -= 1


def closes_over(x: Tensor) -> Tensor:
    """Set a variable of the function around."""
    n = 0

    def count() -> None:
        nonlocal n
        n += 1

    count()
    return x * n


def recursive(x: Tensor) -> Tensor:
    """Call itself, three deep."""

    def halve(n: int) -> Tensor:
        return x if n == 0 else halve(n - 1) / 2

    return halve(3)


def annotated(x: Tensor) -> Tensor:
    """Annotate a variable and an inner function."""
    y: Tensor = x * 2

    def inner(v: Tensor, n: int | None = 2) -> Tensor:
        return v * (n or 1)

    return inner(y)


def matches(x: Tensor) -> Tensor:
    """Take apart by a `match`."""
    match Plain(x):
        case Plain(a=a):
            return a * 2
    return x


def looks_up(x: Tensor) -> Tensor:
    """Catch what Python raises."""
    empty: dict[str, Tensor] = {}
    try:
        return empty["a"]
    except KeyError:
        return x * 2


def within(x: Tensor) -> Tensor:
    """Use a context manager made by a decorator, a class, and `suppress`."""
    with counting(), Thing(), contextlib.suppress(KeyError):
        x = x + counter
    return x


def grows(x: Tensor) -> Tensor:
    """Append to a list while going through it."""
    found = [x]
    for item in found:
        if len(found) < 3:
            found.append(item + 1)
    return torch.stack(found)


def sends(x: Tensor) -> Any:
    """Send a value into a generator."""

    def echo() -> Any:
        got = yield x
        yield got * 2

    running = echo()
    next(running)
    return running.send(x)


def queues(x: Tensor) -> Tensor:
    """Use containers of `collections`."""
    lists: dict[str, list[Tensor]] = defaultdict(list)
    lists["a"].append(x)
    pair, ordered = deque([x], maxlen=2), OrderedDict(a=x)
    pair.append(x * 2)
    ordered.move_to_end("a")
    return lists["a"][0] + pair.popleft() + ordered["a"] + Own(a=x)["a"]


def iterates(x: Tensor) -> Tensor:
    """Use `itertools` and `functools`."""
    pairs = sum(a * b for a, b in itertools.product([1, 2], [3]))
    groups = [key for key, _ in itertools.groupby([1, 1, 2])]
    return functools.reduce(operator.add, [x, x]) * pairs * len(groups)


def makes_class(x: Tensor) -> Tensor:
    """Define a class inside."""

    class Inner:
        n = 2

    return x * Inner().n


def stacks(x: Tensor) -> Tensor:
    """Enter a mode through an `ExitStack`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        return x * 2


def sets_data(x: Tensor) -> Tensor:
    """Give a tensor other data."""
    y = x.clone()
    y.data = x * 2
    return y + 1


def sets_attribute(x: Tensor) -> Any:
    """Set an attribute of a module and one of the argument."""
    linear.seen = x * 2
    x.mark = 3  # type: ignore[attr-defined]
    return linear.seen.sum() + x


def imports(x: Tensor) -> Tensor:
    """Import inside."""
    import colorsys  # noqa: F401 - the import is the program

    return x * math.sqrt(4)


PROGRAMS: dict[str, tuple[tuple[int, int], Callable[[Tensor], Any]]] = {
    "a dataclass made inside, or returned": (ALWAYS, lambda x: Plain(Plain(x).a * 2)),
    "a frozen dataclass": (ALWAYS, lambda x: x * Frozen(3).n),
    "`dataclasses.replace`, `fields`, `is_dataclass`": (ALWAYS, lambda x: (
        x * dataclasses.replace(Plain(x), n=3).n * len(dataclasses.fields(Frozen(1)))
        * (not dataclasses.is_dataclass(x)))),
    "a NamedTuple, made, read, returned": (ALWAYS, lambda x: (
        Pair(Pair(x * 2, 2)._replace(n=3).a, 3))),
    "a namedtuple with `__new__`": (ALWAYS, lambda x: x * Made(3).val),
    "a member of an Enum": (ALWAYS, lambda x: x * Color.RED.value * (Color(1) is Color.RED)),
    "`defaultdict`, `deque`, `OrderedDict`, a dict of your own": (ALWAYS, queues),
    "`self.__dict__[…] =`, `__getattr__`, a property": (
        ALWAYS, lambda x: x * Thing().size * thing.other * thing.double),
    "`super()`": (ALWAYS, lambda x: Child().scale(x)),
    "`isinstance`, `hasattr`, `type(x) is`, `callable`": (ALWAYS, lambda x: (
        x * isinstance(x, Tensor) * hasattr(x, "shape") * (type(x) is Tensor)
        * callable(thing.scale))),
    "`nonlocal`, closures": (ALWAYS, closes_over),
    "recursion, a few levels": (ALWAYS, recursive),
    "type annotations": (ALWAYS, annotated),
    "`match`": (ALWAYS, matches),
    "`except KeyError`": (ALWAYS, looks_up),
    "`@contextmanager`, a class with `__enter__`, `suppress`": (ALWAYS, within),
    "a list that grows while you go through it": (ALWAYS, grows),
    "a generator that is used inside, with `send`": (ALWAYS, sends),
    "`itertools`, `functools.reduce`": (ALWAYS, iterates),
    "`sorted`, `map`, `filter`": ((2, 13), lambda x: x * sum(
        sorted(map(abs, filter(None, [3, 1, 0])), reverse=True))),
    "f-strings, `re.match`": ((2, 13), lambda x: (
        x * len(f"{x.shape[0]:>5}") if re.match("a", "a") else x)),
    "`inspect.signature`": (ALWAYS, lambda x: x * len(inspect.signature(Thing.scale).parameters)),
    "`weakref.ref`": (ALWAYS, lambda x: x * 2 if weakref.ref(thing)() is thing else x),
    "an import, `math` on numbers, `os.environ`": (
        ALWAYS, lambda x: imports(x) * (os.environ.get("NO_SUCH") is None)),
    "`x.to(…)`, `torch.tensor([…])`, a list as index, `out=`": (
        ALWAYS, lambda x: torch.mul(x.to("cpu")[[0, 1]], torch.tensor([1, 2]), out=torch.empty(2))),
    "`torch.rand`": (ALWAYS, lambda x: x * torch.rand(3)),
    "`torch.vmap`, `torch.func.jacrev`": (ALWAYS, lambda x: (
        torch.func.jacrev(torch.vmap(torch.sin))(x))),
    "`torch.cond`": (ALWAYS, lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))),
    "an attribute set on a tensor or a module": (
        ALWAYS, sets_attribute),
    "`copy.deepcopy` of numbers": ((2, 13), lambda x: x * copy.deepcopy({"a": 2})["a"]),
    "`locals()`": ((2, 13), lambda x: x * len(locals())),
    "`types.SimpleNamespace`": ((2, 14), lambda x: types.SimpleNamespace(a=x).a * 2),
    "a class defined inside": (NEVER, makes_class),
    "`copy.copy`": (NEVER, lambda x: copy.copy({"a": x})["a"] * 2),
    "`json.dumps`": (NEVER, lambda x: x * len(json.dumps({"a": 1}))),
    "`globals()`": (NEVER, lambda x: x * ("thing" in globals())),
    "`contextlib.ExitStack`": (NEVER, stacks),
    "`x.data = …`": (NEVER, sets_data),
    "`x.resize_(…)`": (NEVER, lambda x: x.clone().resize_(2) * 2),
    "`pickle.dumps`": (NEVER, lambda x: x * len(pickle.dumps(1))),
    "`nn.LSTM`": (NEVER, lambda x: recurrent(linear(x).view(1, 1, 3))[0] * 2),
    "a layer made inside": (NEVER, lambda x: nn.Linear(3, 3)(x)),
    "a sparse tensor": (NEVER, lambda x: x.to_sparse().to_dense() * 2),
}  # fmt: skip
