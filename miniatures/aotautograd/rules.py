"""The rules in small: which values of a joint graph the backward pass may compute again."""

from __future__ import annotations

from dataclasses import dataclass

VIEWS = {
    "view", "t", "expand", "transpose", "permute", "unsqueeze", "squeeze", "select", "slice",
    "alias",
}  # fmt: skip
CHEAP = VIEWS | {
    "add", "mul", "sub", "div", "neg", "rsub", "pow", "sin", "cos", "exp", "tanh", "sigmoid",
    "relu", "sum", "mean", "amax", "where", "eq", "le", "getitem", "clone", "full", "gt",
    "threshold_backward", "tanh_backward", "sigmoid_backward", "ge", "scalar_tensor",
}  # fmt: skip
"""Operators that may be computed again; a loop can take such a one and its neighbour together."""
RANDOM = {"native_dropout"}
FUSIBLE = CHEAP | RANDOM


@dataclass(eq=False)
class Node:
    """One call of the joint graph; `size` in bytes, none for what is no tensor."""

    name: str
    op: str
    args: list[Node]
    size: int | None

    def __post_init__(self) -> None:
        self.users: list[Node] = []
        for arg in dict.fromkeys(self.args):
            arg.users.append(self)


class Joint:
    """A joint graph, and what belongs to which pass."""

    def __init__(self, nodes: list[Node], results: list[Node], gradients: list[Node]) -> None:
        self.nodes, self.results, self.gradients = nodes, results, gradients
        self.late: set[Node] = set()  # wait for a gradient from outside
        for node in nodes:
            if node.op == "tangent" or self.late.intersection(node.args):
                self.late.add(node)
        self.early = needed(nodes, results) | {n for n in nodes if n.op == "primal"}
        self.order = {n: k for k, n in enumerate(n for n in nodes if n in self.early)}
        self.distance: dict[Node, int] = {}  # of a forward value to the nearest that is not
        for node in reversed(nodes):
            near = [self.distance[user] + 1 for user in node.users]
            self.distance[node] = min([10**9, *near]) if node in self.early else 0


def needed(nodes: list[Node], outputs: list[Node]) -> set[Node]:
    """Return what has to be computed for some outputs; a random call is not left out."""
    found = {*outputs, *(node for node in nodes if node.op in RANDOM)}
    for node in reversed(nodes):
        if node in found:
            found.update(node.args)
    return found


def fusible(a: Node, b: Node) -> bool:
    """Tell whether one loop may compute both, so that the value between them is not stored."""
    return b.op == "cat" or (a.op in FUSIBLE and b.op in FUSIBLE)


def banned(joint: Joint) -> dict[Node, str]:
    """Return the forward values that backward may not compute again, and why."""
    found = {n: "an input" for n in joint.nodes if n.op == "primal"}
    for node in joint.nodes:
        if node in joint.early and node not in found and node.op not in VIEWS | {"getitem"}:
            read = sum(arg.size or 0 for arg in dict.fromkeys(node.args))
            if node.op not in CHEAP:
                found[node] = "dear or random"
            elif stored_late(node, joint):
                found[node] = "backward would have to store it"
            elif (node.size or 0) * 4 < read:
                found[node] = "four times smaller than what it reads"
    for node in joint.order:  # a neighbour of a use, but far behind a call that does not fuse
        uses = [user for user in node.users if user in joint.early]
        if uses:
            wall = first_wall(uses, joint)
            for user in uses:
                if joint.order[user] > wall and fusible(node, user) and user.op not in VIEWS:
                    found.setdefault(user, "used again far behind")
    return found


def stored_late(node: Node, joint: Joint) -> bool:
    """Tell whether a call of backward reads `node`, seen through views, without fusing."""
    waiting = [node]
    for value in waiting:
        for user in value.users:
            if user not in joint.early and not fusible(value, user):
                return True
            if user.op in VIEWS:
                waiting.append(user)
    return False


def first_wall(starts: list[Node], joint: Joint) -> int:
    """Return the place of the first call behind `starts` that does not fuse with what it reads."""
    last = max(joint.order[node] for node in starts)
    waiting = {(joint.order[node], True): node for node in starts}
    while waiting:
        place, fuses = min(waiting)
        node = waiting.pop((place, fuses))
        if not fuses:
            return place
        for user in node.users:
            if user in joint.early and joint.order[user] <= last:
                waiting[joint.order[user], fusible(node, user)] = user
    return last
