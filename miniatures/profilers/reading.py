"""Reading a trace: from lines with a start and a length to a tree, self times and a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = ("cpu_op", "user_annotation")


@dataclass
class Node:
    """A line with what lies inside it.

    :param start: microseconds.
    :param end: microseconds.
    """

    name: str
    start: float
    end: float
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Microseconds from its start to its end."""
        return self.end - self.start

    @property
    def own(self) -> float:
        """Microseconds without those of its children: the self time."""
        return self.total - sum(child.total for child in self.children)

    @property
    def depth(self) -> int:
        """How many lines it lies in."""
        return 0 if self.parent is None else self.parent.depth + 1


def tree(trace: Mapping[str, Any]) -> list[Node]:
    """Return the lines of a trace, outermost first: one lies in another if its time does."""
    threads: dict[Any, list[Node]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in KINDS:
            start = float(event["ts"])
            node = Node(event["name"], start, start + float(event["dur"]))
            threads[event["pid"], event["tid"]].append(node)
    found: list[Node] = []
    for nodes in threads.values():
        inside: list[Node] = []
        for node in sorted(nodes, key=by_time):
            while inside and not contains(inside[-1], node):
                inside.pop()
            if inside:
                node.parent = inside[-1]
                inside[-1].children.append(node)
            inside.append(node)
            found.append(node)
    return found


def by_time(node: Node) -> tuple[float, float]:
    """Return the order of lines: by start, and of two that start together the longer first."""
    return node.start, -node.end


def contains(outer: Node, inner: Node) -> bool:
    """Tell whether the time of one line lies within that of another."""
    return inner.start < outer.end and inner.end <= outer.end


def merged(nodes: list[Node]) -> list[Node]:
    """Return the lines without those that are the only child of one with the same name.

    `EventList` does that before it counts, so that a name is not counted twice.
    """
    kept = nodes
    while doubles := [node for node in kept if _doubled(node)]:
        for node in doubles:
            if node.parent is not None and _doubled(node):
                node.parent.children = node.children
                for child in node.children:
                    child.parent = node.parent
        gone = {id(node) for node in doubles}
        kept = [node for node in kept if id(node) not in gone]
    return kept


def _doubled(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.name == node.name and len(parent.children) == 1


def averages(nodes: list[Node]) -> dict[str, tuple[int, float, float]]:
    """Return the table: for each name the calls, the self time and the total, in microseconds."""
    rows: dict[str, tuple[int, float, float]] = {}
    for node in nodes:
        calls, own, total = rows.get(node.name, (0, 0.0, 0.0))
        rows[node.name] = (calls + 1, own + node.own, total + node.total)
    return rows


def outline(nodes: list[Node]) -> Iterator[tuple[int, str]]:
    """Give depth and name of each line, in the order in which they began."""
    for node in nodes:
        yield node.depth, node.name
