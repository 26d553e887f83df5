"""The small Dynamo makes PyTorch's graphs, and as many, on named functions and random programs."""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from miniatures.dynamo.bytecode import Op, live, ops_of
from miniatures.dynamo.cases import random_program
from miniatures.dynamo.cases_breaks import CASES
from miniatures.dynamo.frames import Dynamo, Skip
from miniatures.dynamo.values import Recorder
from miniatures.dynamo.watch import (
    bytecode,
    compiled,
    entries,
    graph_lines,
    guard_failure,
    holds,
    hook_is_own,
    tidy,
)
from miniatures.dynamo.watch_trace import traced

ONES = torch.ones(3)
PROGRAMS = 200


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    torch.compiler.reset()


def small(function: Callable[..., Any], calls: Sequence[Sequence[Any]], **options: Any) -> Any:
    world = Dynamo(**options)
    run, counts, results = world.hooked(function), [], []
    for args in calls:
        results.append(run(*args))
        counts.append(len(world.graphs))
    return counts, [graph_lines(graph) for graph in world.graphs], str(results)


def theirs(function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Any:
    seen = compiled(function, calls)
    return seen.counts, [graph_lines(graph) for graph in seen.graphs], str(seen.results)


def branch(x: Any, k: float) -> Any:
    y = x.sin()
    if y.sum() > k:
        y = y * 2
    return y + 1


def speaks(x: Any) -> Any:
    x = x + 1
    print(end="")
    return x * 2


def outer(x: Any) -> Any:
    return speaks(x.sin()).cos()


def in_loop(x: Any) -> Any:
    for _ in range(3):
        x = x + 1
        print(end="")
    return x


def plus(x: Any, n: Any) -> Any:
    return x + n


def lists(x: Any, kept: list[Any]) -> Any:
    kept.append(x * 2)
    kept.extend([x, x - 1])
    return [kept[0], len(kept)]


def alias(x: Any, y: Any) -> Any:
    return x * 2 if x is y else x + y


def loops(x: Any, n: int) -> Any:
    for i in range(n):
        x = x * n + i
    return x


def pieces(x: Any) -> Any:
    low, high = torch.chunk(x, 2, dim=0)
    return low @ high.t(), [x.shape[0], x[1:], -high], x.max(dim=1)[1]


def item(x: Any) -> Any:
    return x * x.sum().item()


def optional(x: Any, scale: Any) -> Any:
    if scale is None:
        return x
    return torch.maximum(x, other=scale["by"])


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.factor = torch.nn.Linear(4, 4), 3

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.relu(self.layer(x)) * self.factor


NET, SQUARE = Net(), torch.arange(16.0).reshape(4, 4)
CALLS: list[tuple[Any, list[Any]]] = [
    (branch, [(ONES, 0.5), (-ONES, 0.5), (-ONES, 1.5), (ONES, 2.5)]),
    (outer, [(ONES,), (ONES,), (torch.ones(5),)]),
    (in_loop, [(ONES,), (ONES,)]),
    (plus, [(torch.ones(n), 2) for n in (3, 4, 5, 1, 0, 7)]),
    (plus, [(ONES, n) for n in (3, 5, 7, 1, 0)]),
    (plus, [(ONES, n) for n in (0.5, 1.5, 2.5)]),
    (plus, [(ONES, 1), (ONES.double(), 1), (ONES.clone().requires_grad_(), 1)]),
    (plus, [(SQUARE, 1), (SQUARE.t(), 1), (SQUARE[:2], 1), (SQUARE[0], 1)]),
    (alias, [(ONES, ONES), (ONES, -ONES), (ONES, ONES)]),
    (loops, [(ONES, n) for n in (2, 2, 3, 4)]),
    (pieces, [(SQUARE,)]),
    (item, [(ONES,), (ONES * 2,), (ONES * 3,)]),
    (optional, [(SQUARE, {"by": SQUARE * 2}), (SQUARE, None)]),
    (Net.forward, [(NET, SQUARE), (Net(), SQUARE)]),
]


@pytest.mark.parametrize(("function", "calls"), CALLS)
def test_it_makes_the_same_graphs_at_the_same_calls(function: Any, calls: Any) -> None:
    assert small(function, calls) == theirs(function, calls)


def test_lists_change_as_they_do_in_python() -> None:
    mine: list[Any] = []
    world = Dynamo()
    run = world.hooked(lists)
    results = [run(ONES, mine), run(ONES, mine)]
    plain: list[Any] = []
    assert str(results) == str([lists(ONES, plain), lists(ONES, plain)])
    assert str(mine) == str(plain)


@pytest.mark.parametrize(
    "seeds",
    [range(1000, 1008), pytest.param(range(PROGRAMS), marks=pytest.mark.weekly)],
    ids=["some", "many"],
)
def test_random_programs_agree_and_have_all_traits(seeds: range) -> None:
    seen, graphs = Counter[str](), 0
    for seed in seeds:
        program = random_program(seed, size=3)
        seen.update(program.traits)
        mine, other = ([way() for way in program.calls] for _ in "12")
        expected = theirs(program.function, other)
        assert small(program.function, mine) == expected, program.text
        assert str(mine) == str(other), program.text  # what was appended to lists
        graphs += expected[0][-1]
    assert graphs > len(seeds)
    if len(seeds) == PROGRAMS:
        assert min(seen.values()) >= 15 and len(seen) == 7
        assert graphs > 2 * PROGRAMS


@pytest.mark.parametrize("kind", ["dtype", "sizes", "numbers", "restart"], ids="without {}".format)
def test_the_comparison_notices_what_is_left_out(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "dtype":
        guard = Recorder.guard
        monkeypatch.setattr(Recorder, "tensor", lambda self, value, name: guard(self, name, type))
        calls: list[Any] = [(ONES, 1), (ONES.double(), 1)]
    elif kind == "sizes":
        monkeypatch.setattr(Recorder, "changing", lambda self, name, now: False)
        calls = [(torch.ones(n), 2) for n in (3, 4, 5)]
    elif kind == "numbers":
        monkeypatch.setattr("miniatures.dynamo.values.exactly", type)
        calls = [(ONES, 0.5), (ONES, 1.5)]
    else:
        monkeypatch.setattr("miniatures.dynamo.frames.live", lambda ops, start: set())
        with pytest.raises(KeyError):
            small(branch, [(ONES, 0.5)])
        return
    assert small(plus, calls) != theirs(plus, calls)


def test_the_limit_and_fullgraph() -> None:
    def tagged(x: Any, tag: str) -> Any:
        return x + len(tag)

    calls = [(ONES, "a" * n) for n in range(10)]
    assert small(tagged, calls)[0] == theirs(tagged, calls)[0] == [*range(1, 9), 8, 8]
    assert small(tagged, calls, limit=3)[0][-1] == 3
    world = Dynamo(fullgraph=True)
    with pytest.raises(Skip):
        world.frame(branch, 0).run({"x": ONES, "k": 0.5})


def test_a_split_frame_is_not_run_twice() -> None:
    ran = []

    def late(x: Any) -> Any:
        ran.append(1)
        print(end="")
        for _ in range(2):
            print(end="")
        return x

    with pytest.raises(NotImplementedError):
        Dynamo().hooked(late)(ONES)
    assert len(ran) <= 1


def test_instructions_and_what_is_live() -> None:
    ops = ops_of(branch.__code__)
    names = [op.name for op in ops]
    assert names.count("CALL") == 2 and names.count("BRANCH") == 1 and names[-1] == "RETURN"
    at = names.index("BRANCH")
    assert live(ops, at) == {"y"} and live(ops, 0) == {"x", "k"}
    assert ops[at] == Op("BRANCH", "FALSE", ops[at].target) and ops[at].target > at
    assert not any(
        op.name == "UNKNOWN" for function, _ in CALLS for op in ops_of(function.__code__)
    )

    def unknown() -> Any:
        yield 1

    assert any(op.name == "UNKNOWN" for op in ops_of(unknown.__code__))


def test_what_the_chapter_asks_dynamo() -> None:
    seen = compiled(branch, [(ONES, 0.5)], logs="graph_breaks")
    entry = entries(branch)[0]
    assert hook_is_own() and any("Data-dependent" in line for line in seen.said)
    assert holds(entry, {"x": -ONES, "k": 0.5}) and not holds(entry, {"x": ONES, "k": 1.5})
    assert guard_failure(entry, {"x": ONES, "k": 1.5}) == "L['k'] == 0.5"
    assert guard_failure(entry, {"x": -ONES, "k": 0.5}) == ""
    assert "LOAD_FAST x" in bytecode(branch.__code__, "LOAD_FAST")
    assert len(bytecode(branch.__code__)) < len(list(dis.get_instructions(branch.__code__)))
    assert tidy("at 0x7f12ab in /tmp/ipykernel_12/345.py") == "at 0x… in cell"
    assert tidy("# ipykernel_12/345.py:2 in f") == "# cell:2 in f"


def test_looking_at_a_frame_changes_nothing_of_its_graph() -> None:
    moments = traced(branch, (ONES, 0.5))
    seen = compiled(branch, [(ONES, 0.5)])
    calls = [line for line in moments[-1].graph if not line.endswith("= input")]
    assert len(calls) == sum(node.op.startswith("call") for node in seen.graphs[0].graph.nodes)
    assert [moment.attempt for moment in moments] == [1] * len(moments)
    lazy = [moment for moment in moments if "L['k'], not looked at" in moment.stack]
    assert lazy and not any("'k'" in fact for moment in lazy for fact in moment.guards)


def test_each_break_has_a_remedy_that_is_another_function_or_a_setting() -> None:
    assert all(case.settings or case.mended is not case.broken for case in CASES)
    assert len({case.what for case in CASES}) == len(CASES)
