"""The miniature records PyTorch's graph: same nodes, edges and saved values, same gradients."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial
from typing import Any

import pytest
import torch

from insidetorch.errors import BookError
from miniatures.autograd_engine.engine import Engine
from miniatures.autograd_engine.watch import ran
from miniatures.autograd_graph import tape as module
from miniatures.autograd_graph.cases import Tape, by_miniature, by_pytorch, difference, random_tape
from miniatures.autograd_graph.derivatives import Rule, in_python, rules
from miniatures.autograd_graph.draw import draw_grid, draw_growth, draw_holds, draw_steps
from miniatures.autograd_graph.tape import AccumulateGrad, Node, Value, record
from miniatures.autograd_graph.watch import (
    WRITES,
    came_back,
    curvature,
    grow,
    holds,
    kept_of,
    written,
)
from miniatures.autograd_graph.watch_packed import packings
from miniatures.dispatcher.watch_codegen import (
    node_struct,
    recording_function,
    shipped_header,
    show,
)
from miniatures.tensor.watch_heap import bytes_each

SEEDS = range(250)


def compare(tape: Tape) -> tuple[str, dict[Any, Any], list[Value], list[torch.Tensor]]:
    """Return the first difference of the graphs, the pairs of nodes, and both lists of values."""
    mine, theirs = by_miniature(tape), by_pytorch(tape)
    pairs: dict[Any, Any] = {}
    found = [difference(mine[i], theirs[i], pairs) for i in tape.roots]
    return next(filter(None, found), ""), pairs, mine, theirs


def test_graphs_orders_and_gradients_equal_pytorch() -> None:
    """On a few programs: the chapter compares two hundred."""
    for seed in range(5000, 5010):
        tape = random_tape(seed)
        told, pairs, mine, theirs = compare(tape)
        assert told == "", f"seed {seed}"
        engine, roots = Engine(), [theirs[i] for i in tape.roots]
        engine.backward(*(mine[i] for i in tape.roots), grads=tape.grads)  # type: ignore[arg-type]
        order = ran(partial(torch.autograd.backward, roots, tape.grads), *roots)
        assert [pairs[node] for node in engine.order] == order, f"seed {seed}"
        for value, leaf in zip(mine, theirs, strict=True):
            if leaf.is_leaf and leaf.grad is not None:
                assert torch.equal(engine.grads[value.data], leaf.grad), f"seed {seed}"


@pytest.mark.slow
def test_the_programs_have_what_the_comparison_is_about() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        tape = random_tape(seed)
        _, pairs, mine, _ = compare(tape)
        for node in pairs:
            seen[node.name()] += 1
            edges = node.next_functions
            seen["an edge to nothing"] += any(after is None for after, _ in edges)
            seen["a second output"] += any(slot > 0 for _, slot in edges)
            if isinstance(node, Node):
                unsaved = [n for n in ("self", "other") if node.rule.users(n)]
                seen["left out"] += any(n not in node.saved for n in unsaved)
        kinds = {value.data.dtype for value in mine}
        seen["wide"] += torch.float64 in kinds
        seen["integers"] += torch.int64 in kinds
        seen["not recorded"] += any(not step.recorded for step in tape.steps)
    wanted = {
        "an edge to nothing", "a second output", "left out", "wide", "integers", "not recorded",
        "MulBackward0", "UnbindBackward0", "MaxBackward0", "WhereBackward0", "LerpBackward1",
        "SumBackward1", "MaximumBackward0", "torch::autograd::AccumulateGrad",
    }  # fmt: skip
    assert wanted <= {name for name, times in seen.items() if times}


def save_always(self: Node, name: str, value: Any) -> None:
    if self.rule.users(name):
        self.saved[name] = value


def save_never(self: Node, name: str, value: Any) -> None:
    return None


def new_leaf_each_time(value: Value) -> Any:
    if value.grad_fn is not None or not value.requires_grad:
        return value.grad_fn, value.output_nr
    return AccumulateGrad(value.data), 0


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Node, "save_input", save_always),
        (Node, "save_input", save_never),
        (module, "gradient_edge", new_leaf_each_time),
    ],
    ids=["saves in vain", "saves nothing", "two nodes for a leaf"],
)
def test_another_way_to_record_is_told_apart(
    owner: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert any(compare(random_tape(seed))[0] for seed in SEEDS[:60])


def test_a_saved_output_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        seen = {}
        for whole in (False, True):
            before = sum(type(o) is Node for o in gc.get_objects())
            value = record("exp", Value(torch.ones(2), requires_grad=True))
            assert value.grad_fn is not None
            if whole:
                value.grad_fn.saved["result"] = value
            del value
            seen[whole] = sum(type(o) is Node for o in gc.get_objects()) - before
        assert seen == {False: 0, True: 1}
    finally:
        gc.enable()
        gc.collect()


def test_the_leafs_node_lives_as_long_as_a_graph_needs_it() -> None:
    leaf = Value(torch.ones(2), requires_grad=True)
    first = record("sin", leaf)
    node = leaf.accumulator()
    assert node is not None
    assert record("cos", leaf).grad_fn.next_functions[0][0] is node
    del first, node
    gc.collect()
    assert leaf.accumulator() is None


def test_a_leaf_can_be_a_root() -> None:
    leaf = Value(torch.ones(2), requires_grad=True)
    engine = Engine()
    engine.backward(leaf, grads=[torch.full((2,), 3.0)])  # type: ignore[arg-type]
    assert engine.grads[leaf.data].tolist() == [3.0, 3.0]


def test_every_name_of_a_node_is_one_pytorch_has() -> None:
    declared = shipped_header()
    missing = [
        rule.node for rule in rules().values() if f"struct TORCH_API {rule.node} " not in declared
    ]
    assert missing == []
    assert len(rules()) > 400


def test_formulas_become_python() -> None:
    assert in_python("grad.expand_symint(self.sym_sizes())") == "grad.expand(self_sym_sizes)"
    assert in_python("at::where(a, grad, 0)") == "where(a, grad, 0)"
    rule = Rule("MulBackward0", {"self": "grad * other", "other": "grad * self"})
    assert (rule.users("self"), rule.users("grad"), rule.users("alpha")) == (
        ["other"],
        ["self", "other"],
        [],
    )


def test_an_operator_without_a_rule_is_not_recorded() -> None:
    mask = record("gt.Scalar", Value(torch.ones(2), requires_grad=True), 0.0)
    assert (mask.requires_grad, mask.grad_fn) == (False, None)


@pytest.mark.slow
def test_the_generator_writes_what_the_wheel_holds() -> None:
    header = shipped_header()
    assert [name for name in rules() if node_struct(name) not in header] == []


@pytest.mark.slow
def test_the_recording_function_is_shown_without_debug_checks() -> None:
    code = recording_function("mul.Tensor")
    assert "NDEBUG" not in code
    assert code.index("set_next_edges") < code.index("redispatch") < code.index("set_history")
    shown = show(code, "mul", end="set_history").text.splitlines()
    assert len(shown) < 40 and max(map(len, shown[1:])) <= 80
    assert "".join(shown[1:3]).split() == code.splitlines()[0].split()
    with pytest.raises(BookError, match="no line with 'nonsense'"):
        show(code, "mul", start="nonsense")
    with pytest.raises(BookError, match=r"no entry for 'no\.such'"):
        recording_function("no.such")


def test_the_bytes_of_a_tensor_are_counted_on_the_heap() -> None:
    assert abs(bytes_each(lambda: torch.empty(100_000), 1_000) - 400_000) < 5_000


def test_a_program_is_read_line_by_line() -> None:
    values = {"x": torch.ones(4, 8), "w": torch.ones(8, 8, requires_grad=True)}
    lines = ["h = x @ w", "h = h.relu()", "loss = h.sum()", "loss.backward()", "del loss, h"]
    stages = grow(lines, values)
    assert [stage.bytes for stage in stages] == [128, 256, 256, 0, 0]
    first = stages[0].rows[0]
    assert (first.to, [(k.name, k.owner) for k in first.keeps]) == (("w",), [("self", "name")])
    assert [row.freed for row in stages[3].rows] == [True, True, False]
    assert stages[4].rows == ()
    drawn = draw_growth(stages)
    assert len(drawn) == len(lines)
    assert "keeps self, 128 bytes" in drawn[0][0].text and "frees" in drawn[3][1]


def test_who_keeps_whom_alive_is_seen_both_ways() -> None:
    found = holds(torch.ones(2, requires_grad=True))
    assert found["result", "node"] and not found["node", "result"]
    assert found["leaf's node", "leaf"] and not found["leaf", "leaf's node"]
    assert "node does not keep result alive" in draw_holds(found).text


def test_a_write_is_counted_or_the_gradient_is_wrong() -> None:
    for text, write in WRITES.items():
        seen = written(write)
        assert bool(seen.error) == (seen.after > seen.before), text
        assert seen.error or seen.grad == [0, 0], text
    assert written(lambda result: result.data_ptr()).grad == [1, 1]


def test_what_comes_back_through_a_call() -> None:
    leaf = torch.tensor([1.5], requires_grad=True)
    assert came_back(torch.sin, leaf) == ("SinBackw.0", "a gradient", "c")
    assert came_back(torch.round, leaf)[1:] == ("zeros", "e")
    assert came_back(torch.Tensor.detach, leaf)[0] == "–"
    assert came_back(lambda t: t // 2, leaf)[1] == "raises"


def test_kept_bytes_are_told_apart() -> None:
    a = torch.rand(16, 16, requires_grad=True) * 1
    assert kept_of(a * a, a) == {"an input": 1, "the result": 0, "something else": 0}
    assert kept_of(a.exp(), a) == {"an input": 0, "the result": 1, "something else": 0}


def test_packing_keeps_less() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
    found = packings(net, torch.rand(64, 8))
    assert found["bfloat16"].bytes * 2 == found["as they are"].bytes
    assert found["in files"].bytes == found["in files"].error == 0
    assert found["8 bits"].error > 0


def test_a_second_derivative() -> None:
    assert curvature(lambda t: t**2, 1.0) == 8


def test_pictures_say_what_they_show() -> None:
    steps = draw_steps([("ask", "f()", True), ("note", "g()", False)])
    assert "2. note, g(), only if recorded" in steps.text
    grid = draw_grid(["seen"], {"a": [("yes", "c")]}, legend={"c": "fine"})
    assert "a: seen yes" in grid.text
