"""A program as a list of nodes: what a node is, how it gets its name, and how the list is run."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
from dataclasses import dataclass, field
from typing import Any

from torch.utils._pytree import tree_map

TAKEN = {*keyword.kwlist, *vars(builtins), "torch", "device", "inf", "nan"}


@dataclass(eq=False)
class Node:
    """One line of the list.

    :param op: placeholder, get_attr, call_function, call_method, call_module or output.
    """

    op: str
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class Names:
    """Gives each node a name that no other has, and that hides no word or function of Python."""

    used: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def new(self, wish: str) -> str:
        """Return the wish, or the wish with a number behind it."""
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", re.sub("(?<=[a-z])([A-Z])", r"_\1", wish).lower())
        name = "_" * name[0].isdigit() + name
        found = re.fullmatch(r"(.\w*?)(?:_(\d+))?", name)
        assert found is not None
        base, count = found[1], int(found[2] or 0)
        if found[2] is None or name in self.used:
            count = self.counts.get(base, 0)
            if name in TAKEN:
                name, count = f"{base}_{count + 1}", count + 1
        while name in self.used:
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        self.counts[base] = count
        return name


def run(nodes: list[Node], root: Any, *given: Any) -> Any:
    """Run the list: each node in turn, with the results of those before it."""
    made: dict[Node, Any] = {}
    values = iter(given)
    for node in nodes:
        args, kwargs = tree_map(
            lambda one: made[one] if isinstance(one, Node) else one, (node.args, node.kwargs)
        )
        match node.op:
            case "placeholder":
                made[node] = next(values, *args)
            case "get_attr":
                made[node] = operator.attrgetter(node.target)(root)
            case "call_function":
                made[node] = node.target(*args, **kwargs)
            case "call_method":
                made[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
            case "call_module":
                made[node] = root.get_submodule(node.target)(*args, **kwargs)
            case "output":
                made[node] = args[0]
    return made[nodes[-1]]
