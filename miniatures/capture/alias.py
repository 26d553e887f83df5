"""TorchScript's alias analysis in small: which values may share memory, and which are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

ANYWHERE = "anywhere"
KEEPS_NOTHING = {"aten::cat", "aten::stack"}


@dataclass
class Aliases:
    """What an analysis of a graph found.

    :param places: for each value the pieces of memory that it may be.
    :param behind: for a piece of memory that was put where all can reach it: `ANYWHERE`.
    :param written: the pieces that some node writes.
    """

    places: dict[str, set[str]] = field(default_factory=dict)
    behind: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def of(self, value: Any) -> set[str]:
        """Return the memory that a value may be."""
        return {self.behind.get(place, place) for place in self.places[value.debugName()]}

    def may_alias(self, first: Any, second: Any) -> bool:
        return bool(self.of(first) & self.of(second))

    def has_writers(self, value: Any) -> bool:
        written = {self.behind.get(place, place) for place in self.written}
        return bool(self.of(value) & written)

    def graph(self, graph: Any) -> Aliases:
        """Analyse a graph: its inputs come from anywhere."""
        for value in graph.inputs():
            self.places[value.debugName()] = {ANYWHERE}
        self.nodes(graph.nodes())
        return self

    def nodes(self, nodes: Any) -> None:
        for node in nodes:
            outputs, inputs = list(node.outputs()), list(node.inputs())
            for value in outputs:  # new memory, if nothing else is said
                self.places[value.debugName()] = {value.debugName()}
            if node.kind() == "prim::If":
                for block in node.blocks():
                    self.nodes(block.nodes())
                for at, value in enumerate(outputs):
                    ends = [list(block.outputs())[at] for block in node.blocks()]
                    self.places[value.debugName()] = set[str]().union(*map(self.of, ends))
            elif node.kind() == "prim::ListConstruct":
                users = [use.user.kind() for use in outputs[0].uses()]
                if len(users) != 1 or users[0] not in KEEPS_NOTHING:
                    self.release(*inputs)  # from now on some list may hold it
            elif node.kind() == "prim::ListUnpack":
                for value in outputs:
                    self.places[value.debugName()] = {ANYWHERE}
            elif "(no schema)" not in node.schema():
                self.call(node.schema(), inputs, outputs)

    def call(self, schema: str, inputs: list[Any], outputs: list[Any]) -> None:
        """Follow the letters in an operator's schema: `Tensor(a!) self`, `-> Tensor(a)`."""
        takes, gives = schema.split("(", 1)[1].rsplit(" -> ", 1)
        sets: dict[str, set[str]] = {"*": {ANYWHERE}}
        arguments = [text for text in takes.split(", ") if text != "*"]
        for text, value in zip(arguments, inputs, strict=False):
            if found := re.match(r"[\w\[\]]*\((\w)(!?)( -> \*)?\)", text):
                letter, write, out = found.groups()
                sets[letter] = self.of(value)
                self.written |= self.of(value) if write else set()
                if out:
                    self.release(value)
        for text, value in zip(gives.strip("()").split(", "), outputs, strict=False):
            if found := re.match(r"\w*(?:\[\])?\(([\w*])!?", text):
                self.places[value.debugName()] = sets[found[1]]

    def release(self, *values: Any) -> None:
        """Put values where everybody can reach them."""
        for value in values:
            self.behind.update(dict.fromkeys(self.of(value), ANYWHERE))
