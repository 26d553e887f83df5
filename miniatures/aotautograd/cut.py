"""The partitioner in small: what the forward pass keeps, as a minimum cut through a joint graph."""

from __future__ import annotations

from collections import defaultdict
from math import inf

from miniatures.aotautograd.rules import Joint, banned, fusible, needed


def network(joint: Joint) -> dict[tuple[str, str], float]:
    """Return the pipes: a value is one from its entry to its exit, as wide as keeping it costs."""
    pipes: dict[tuple[str, str], float] = {}
    for node in joint.nodes:
        if node in joint.late:
            pipes[f"{node.name}.in", "backward"] = inf
            continue
        if node in joint.gradients:
            pipes[f"{node.name}.out", "backward"] = inf
        wide: float = inf if node.size is None else int(
            node.size * 1.1 ** max(min(joint.distance[node], 100), 1))  # fmt: skip
        stored = node.op == "primal" or not all(fusible(node, user) for user in node.users)
        pipes[f"{node.name}.in", f"{node.name}.out"] = wide if stored else wide * 2
        for user in node.users:
            pipes[f"{node.name}.out", f"{user.name}.in"] = inf
    return pipes | {("forward", f"{node.name}.in"): inf for node in banned(joint)}


def kept(joint: Joint) -> list[str]:
    """Return the names of the values whose pipes the cheapest cut goes through."""
    pipes = network(joint)
    room: dict[str, dict[str, float]] = defaultdict(dict)
    for (start, end), wide in pipes.items():
        room[start][end] = wide
        room[end].setdefault(start, 0)
    while path := shortest(room):
        step = min(room[a][b] for a, b in path)
        for a, b in path:
            room[a][b] -= step
            room[b][a] += step
    behind = {"backward"}  # what can still send something to backward
    waiting = ["backward"]
    for end in waiting:
        fresh = [a for a in room[end] if room[a][end] > 0 and a not in behind]
        behind.update(fresh)
        waiting += fresh
    through = {a[:-3] for a, b in pipes if a not in behind and b in behind}
    return [node.name for node in joint.nodes if node.name in through]


def shortest(room: dict[str, dict[str, float]]) -> list[tuple[str, str]]:
    """Return a shortest way from forward to backward with room left, pipe by pipe."""
    came: dict[str, str] = {"forward": ""}
    waiting = ["forward"]
    for place in waiting:
        for end, left in room[place].items():
            if left > 0 and end not in came:
                came[end] = place
                waiting.append(end)
    path, place = [], "backward"
    while came.get(place):
        path.append((came[place], place))
        place = came[place]
    return path


def split(joint: Joint, saved: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return what crosses, and the calls of the forward and of the backward graph."""
    cut = [node for node in joint.nodes if node.name in saved]
    reached, waiting = set(), list(joint.gradients)
    for node in waiting:
        if node not in reached:
            reached.add(node)
            waiting += [] if node in cut else node.args
    crossing = [node for node in cut if node in reached]
    forward = needed(joint.nodes, joint.results + crossing)
    parts = (set(crossing), forward, reached.difference(crossing))
    saved, first, second = ([n.name for n in joint.nodes if n in part] for part in parts)
    inputs = {node.name for node in joint.nodes if node.op in ("primal", "tangent")}
    first, second = ([n for n in names if n not in inputs] for names in (first, second))
    return saved, first, second
