"""States of a run, recorded for a replay: who owns a tensor, and what its counter says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from insidetorch.display import Display
from miniatures.tensor.draw_rows import Cell, draw_rows
from miniatures.tensor.reader import Record, counts_of, impl_of, version_of, word


def python_count(address: int) -> int:
    """Return the count in the head of a Python object, without holding the object."""
    return word(address, 4)


@dataclass
class Owners:
    """The counts of one tensor, read from memory while others let go of it."""

    address: int
    impl: Record
    states: list[tuple[Display, str]] = field(default_factory=list)

    @classmethod
    def of(cls, tensor: Tensor) -> Owners:
        return cls(id(tensor), impl_of(tensor))

    def note(self, says: str, names: int, nodes: list[str]) -> tuple[int, int]:
        """Draw the state now, and return the strong references and Python's count.

        :param names: how many names of the program stand for the tensor.
        :param nodes: the nodes of the graph that hold it.
        """
        strong, python = counts_of(self.impl)[0], python_count(self.address)
        holders: list[Cell] = [("a name", "a", 1)] * names
        holders += [("the TensorImpl", "c", 1)] * (python > names)
        owners: list[Cell] = [("the Python object", "b", 1)]
        owners += [(node, "d", 1) for node in nodes]
        many = f"{strong} owner{'s' * (strong != 1)}"
        rows = {f"the Python object: count {python}, held by": holders,
                f"the TensorImpl: {many}": owners}  # fmt: skip
        self.states.append((draw_rows(rows, places=3), says))
        return strong, python


@dataclass
class Versions:
    """What tensors over one memory read, and what their counters say, step by step."""

    tensors: Mapping[str, Tensor]
    states: list[tuple[Display, str]] = field(default_factory=list)
    last: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Versions:
        return cls(tensors)

    def note(self, says: str) -> dict[str, int | None]:
        """Draw the state now; what changed since the last one is marked."""
        counters: dict[int, str] = {}
        rows: dict[str, list[Cell]] = {}
        now: dict[str, int | None] = {}
        for name, tensor in self.tensors.items():
            impl = impl_of(tensor)
            letter = counters.setdefault(impl["version_counter_"], "ABCDEF"[len(counters)])
            now[name] = version_of(impl)
            changed = bool(self.last) and self.last[name] != now[name]
            values = ", ".join(f"{value:g}" for value in tensor.tolist())
            rows[name] = [
                (f"reads {values}", "", 3),
                (f"counter {letter}: {now[name]}", "b" if changed else "a", 2),
            ]
        self.last = now
        legend = {"a": "unchanged", "b": "has gone up"}
        self.states.append((draw_rows(rows, legend=legend), says))
        return now
