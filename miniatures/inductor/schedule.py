"""Which loop nests Inductor fuses on the CPU: the best pairs first, until nothing more fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from miniatures.inductor.fuser import Nest


def same_loops(a: Nest, b: Nest) -> bool:
    """Tell whether b's statements fit into a's innermost loop."""
    if a.parts or b.parts:
        return False
    (kept_a, reduced_a), (kept_b, reduced_b) = a.group, b.group
    if (kept_a == kept_b + reduced_b and not reduced_a) or a.group == b.group:
        return True
    if reduced_a or reduced_b or {kept_a, kept_b} != {("RC",), ("R", "C")}:
        return False
    return len((a if kept_a == ("RC",) else b).names) == 1  # one alone can be split again


def same_rows(a: Nest, b: Nest) -> bool:
    """Tell whether a and b, which needs a, fit under one loop over rows."""
    if same_loops(a, b) and not a.reduces:
        return False  # they share more than that
    last, first = (a.parts or [a])[-1].group[0], (b.parts or [b])[0].group[0]
    both = bool(a.parts and b.parts)
    return both or (last[0] == first[0] and min(len(last), len(first)) == 1)


@dataclass
class Rank:
    """Orders pairs: much more traffic saved, else the same kind, else more saved, else nearer."""

    same_kind: bool
    saved: int
    far: int

    def __lt__(self, other: Rank) -> bool:
        """Tell whether the other pair goes first."""
        if max(self.saved, other.saved) > 16 * min(self.saved, other.saved):
            return self.saved < other.saved
        mine, theirs = (self.same_kind, self.saved), (other.same_kind, other.saved)
        return (*mine, -self.far) < (*theirs, -other.far)


class Scheduler:
    """Fuses the best pairs, round by round, until nothing more can be fused."""

    def __init__(self, nests: Iterable[Nest], columns: int) -> None:
        self.nests, self.size = list(nests), {"full": columns, "row": 1}
        for _ in range(10):
            before = len(self.nests)
            self.round()
            if len(self.nests) in (1, before):
                break

    def owner(self, name: str) -> Nest:
        """Return the nest that computes a buffer."""
        return next(nest for nest in self.nests if name in nest.names)

    def saved(self, a: Nest, b: Nest) -> int:
        """Return how much traffic a fusion saves: the size of what both touch in one order."""
        both = (a.reads | a.writes) & (b.reads | b.writes)
        return sum(self.size[form] for _, form in both)

    def rank(self, a: Nest, b: Nest) -> Rank:
        """Return what a pair is worth."""
        far = max(abs(a.order[0] - b.order[1]), abs(b.order[0] - a.order[1]))
        return Rank(a.reduces == b.reduces, self.saved(a, b), far)

    def can_fuse(self, a: Nest, b: Nest) -> bool:
        """Tell whether b may join a: traffic is saved, the loops fit, nothing lies between."""
        if a is b or b.names & a.above or not self.saved(a, b):
            return False
        if not a.names & b.above:
            return same_loops(a, b)
        between = {buffer for buffer, _ in b.reads if buffer in b.above} - a.names
        if any(a.names & self.owner(buffer).above for buffer in between):
            return False
        return (same_loops(a, b) and not a.reduces) or same_rows(a, b)

    def makes_cycle(self, a: Nest, b: Nest) -> bool:
        """Tell whether a third nest would come both after and before the pair."""
        pair, seen = a.names | b.names, set[Nest]()
        todo = {self.owner(name) for name in (a.above | b.above) - pair}
        while todo:
            nest = todo.pop()
            seen.add(nest)
            if nest.above & pair:
                return True
            todo |= {self.owner(name) for name in nest.above} - seen
        return False

    def round(self) -> None:
        """Fuse what can be fused now; pairs that share all loops come before the others."""
        buffers = dict.fromkeys(d[0] for n in self.nests for d in sorted(n.reads | n.writes))
        touching = [
            [n for n in self.nests if any(d[0] == buffer for d in n.reads | n.writes)]
            for buffer in buffers
        ]
        pairs = dict.fromkeys(
            pair for near in touching for pair in combinations(near, 2) if self.can_fuse(*pair)
        )
        close = [p for p in pairs if not (p[0].names & p[1].above and same_rows(*p))]
        for a, b in sorted(close or pairs, key=lambda pair: self.rank(*pair), reverse=True):
            a, b = self.owner(min(a.names)), self.owner(min(b.names))
            if self.can_fuse(a, b) and not self.makes_cycle(a, b):
                place = min(self.nests.index(a), self.nests.index(b))
                self.nests = [n for n in self.nests if n not in (a, b)]
                self.nests.insert(place, fuse(a, b))
        done: list[Nest] = []
        for nest in sorted(self.nests, key=lambda nest: nest.order):
            self.after(nest, done)
        self.nests = done

    def after(self, nest: Nest, done: list[Nest]) -> None:
        """Append a nest to `done`, behind those that it needs."""
        for name in sorted(nest.above - nest.names):
            self.after(self.owner(name), done)
        if nest not in done:
            done.append(nest)


def fuse(a: Nest, b: Nest) -> Nest:
    """Return one nest for two."""
    rows = bool(a.names & b.above) and same_rows(a, b)
    names, writes = a.names | b.names, a.writes | b.writes
    return Nest(
        names, max(a.loops, b.loops, key=len), a.reduces or b.reduces,
        (a.reads | b.reads) - writes, writes, (a.above | b.above) - names,
        (min(a.order[0], b.order[0]), max(a.order[1], b.order[1])), a.body + b.body,
        (a.parts or [a]) + (b.parts or [b]) if rows else [],
    )  # fmt: skip
