"""A compiler like Inductor for the CPU, first half: trace a function, lower it to loop nests.

`miniatures.inductor.schedule` fuses the nests, `miniatures.inductor.emit_c` writes them as C.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

POINTWISE = {
    "neg": "-({0})", "abs": "fabsf({0})", "relu": "fmaxf({0}, 0)", "tanh": "tanhf({0})",
    "add": "({0} + {1})", "sub": "({0} - {1})", "maximum": "fmaxf({0}, {1})",
}  # fmt: skip
REDUCTIONS = {"sum": ("0", "acc + {0}"), "amax": ("-INFINITY", "fmaxf(acc, {0})")}
HEAVY, MOST_READS = {"tanh"}, 4  # what is not worth computing twice
Dep = tuple[str, str]  # a buffer, and how it is walked: "full" or "row"


class Value:
    """A number for each element of a matrix ("full") or for each row ("row"), while tracing."""

    def __init__(self, graph: list[Value], op: str, args: Sequence[Value], form: str) -> None:
        self.graph, self.op, self.args, self.form = graph, op, args, form
        graph.append(self)

    def __getattr__(self, op: str) -> Callable[..., Value]:
        if op in REDUCTIONS:
            return lambda dim, keepdim: Value(self.graph, op, [self], "row")
        if op in POINTWISE:  # broadcasting: one full argument makes the result full
            return lambda *rest: Value(
                self.graph, op, [self, *rest], min(v.form for v in (self, *rest))
            )
        raise AttributeError(op)


@dataclass(frozen=True)
class Code:
    """C for one element of a value, the buffers that it loads, the operators in it."""

    text: str
    loads: frozenset[Dep]
    ops: frozenset[str] = frozenset()


@dataclass(eq=False)
class Nest:
    """Loops with statements; `parts` are nests that share only the loop over rows."""

    names: frozenset[str]
    loops: tuple[str, ...]  # ("RC",): all elements; ("R", "C"): rows, columns; ("R",): rows
    reduces: bool
    reads: frozenset[Dep]
    writes: frozenset[Dep]
    above: frozenset[str]  # every buffer that must be complete before
    order: tuple[int, int]
    body: list[tuple[str, Value, Code]]
    parts: list[Nest] = field(default_factory=list)

    @property
    def group(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the loops in two parts: those that are kept, those that are reduced."""
        return (("R",), ("C",)) if self.reduces else (self.loops, ())


def near_use(graph: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
    """Move each operation right before its first use, as Inductor does for inference."""
    end = Value([], "return", outputs, "full")
    order, seen, node = [*graph, end], set[Value](), end
    users = {value: [user for user in order if value in user.args] for value in graph}
    while True:
        seen.add(node)
        for arg in node.args:
            if arg.args and seen.issuperset(users[arg]):
                order.remove(arg)
                order.insert(order.index(node), arg)
        if order[0] is node:
            return order[:-1]
        node = order[order.index(node) - 1]


def lower(graph: list[Value], outputs: Sequence[Value]) -> list[Nest]:
    """Return a nest for each value that goes to memory; the others are inlined where used."""
    users = Counter(arg for value in graph for arg in {*value.args}) + Counter({*outputs})
    code: dict[Value, Code] = {}
    nests: dict[str, Nest] = {}

    def store(value: Value) -> None:
        if not code[value].ops:
            return  # it is in memory already
        name, made, n = f"buf{len(nests)}", code[value], len(nests)
        flat = value.form == "full" and all(form == "full" for _, form in made.loads)
        loops = ("RC",) if flat else ("R", "C") if value.form == "full" else ("R",)
        made_here = {b for b, _ in made.loads if b in nests}
        above = frozenset(made_here).union(*(nests[b].above for b in made_here))
        nests[name] = Nest(
            frozenset({name}), loops, value.op in REDUCTIONS, made.loads,
            frozenset({(name, value.form)}), above, (n, n), [(name, value, made)],
        )  # fmt: skip
        code[value] = Code(f"{name}[{value.form}]", frozenset({(name, value.form)}))

    for value in near_use(graph, outputs):
        if not value.args:
            code[value] = Code(f"{value.op}[{value.form}]", frozenset({(value.op, value.form)}))
            continue
        for arg in value.args:  # a row that every column reads is used many times
            if arg.form != value.form and value.op in POINTWISE and HEAVY & code[arg].ops:
                store(arg)
        parts = [code[arg] for arg in value.args]
        form = POINTWISE.get(value.op) or REDUCTIONS[value.op][1]
        loads = frozenset[Dep]().union(*(part.loads for part in parts))
        ops = frozenset({value.op}).union(*(part.ops for part in parts))
        code[value] = Code(form.format(*(part.text for part in parts)), loads, ops)
        dear = HEAVY & ops or len({buffer for buffer, _ in loads}) > MOST_READS
        if value.op in REDUCTIONS or value in outputs or (users[value] > 1 and dear):
            store(value)
    return list(nests.values())
