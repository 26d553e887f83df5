"""A rendezvous: nodes agree who is in, by changing one value of a store if nobody else has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from miniatures.c10d_and_elastic.store import Client


@dataclass
class State:
    """What all nodes see: the value of one key."""

    round: int = 0
    complete: bool = False
    called: bool = False  # enough nodes have come: the last call runs
    inside: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    spare: list[str] = field(default_factory=list)

    def join(self, node: str, least: int, most: int, call_over: bool) -> bool | None:
        """Take one step towards being inside: what changed is True; None, if the node is in."""
        if node in self.spare:
            if len(self.inside) >= most:
                return False
            self.spare.remove(node)
            return True
        if self.complete:
            if node in self.inside:
                return None
            if node in self.waiting:
                return False
            (self.waiting if len(self.inside) < most else self.spare).append(node)
            return True
        if node not in self.inside:
            self.waiting = [one for one in self.waiting if one != node]
            self.inside.append(node)
            self.called |= len(self.inside) == least
            self.complete = len(self.inside) == most
        elif self.called and call_over and len(self.inside) >= least:
            self.complete = True
        else:
            return False
        return True

    def leave(self, node: str, least: int) -> None:
        """Take a node out, because it goes or because nobody has heard of it."""
        was_inside = node in self.inside
        for nodes in (self.inside, self.waiting, self.spare):
            if node in nodes:
                nodes.remove(node)
        if was_inside and self.complete and not self.inside:
            self.round, self.complete, self.called = self.round + 1, False, False
        elif was_inside and not self.complete and len(self.inside) < least:
            self.called = False


def first_ranks(workers: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return node number and first worker's rank of each node, of how many workers they bring."""
    nodes = sorted(workers)
    return {
        node: (place, sum(workers[before] for before in nodes[:place]))
        for place, node in enumerate(nodes)
    }


def meet(store: Client, node: str, least: int, most: int) -> list[str]:
    """Join at a store, and return the nodes in the order of their numbers."""
    seen = store.compare_set("state", "", json.dumps(asdict(State())))
    while True:
        state = State(**json.loads(seen))
        changed = state.join(node, least, most, call_over=True)
        if changed is None:
            return sorted(state.inside)
        new = json.dumps(asdict(state)) if changed else seen
        seen = store.compare_set("state", seen, new)  # if somebody was faster, look again
