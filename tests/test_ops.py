"""The operators listed are those that ran, in order, each under the node that called it."""

import pytest
import torch

from insidetorch.watch import ops


def names(recorded):
    return [op.name for op in recorded]


def test_forward_operators_in_order_with_shapes():
    x, w = torch.ones(3, 4), torch.ones(4)
    recorded = ops.record(lambda: (x * w).sum())
    assert names(recorded) == ["aten::mul.Tensor", "aten::sum.default"]
    assert recorded[0].inputs == "f32[3, 4], f32[4]"
    assert recorded[0].outputs == "f32[3, 4]"
    assert recorded[1].outputs == "f32[]"
    assert [op.node for op in recorded] == ["", ""]


def test_backward_operators_name_the_node_that_called_them():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3)
    y = (x * w).sum()
    recorded = ops.record(y.backward)
    assert ("aten::mul.Tensor", "MulBackward0") in [(op.name, op.node) for op in recorded]
    assert next(op for op in recorded if op.name == "aten::expand.default").node == "SumBackward0"
    assert torch.equal(x.grad, w)


def test_python_functions_hold_the_operators_they_run():
    linear = torch.nn.Linear(3, 4)
    recorded = ops.record(lambda: linear(torch.ones(2, 3)), python=True)
    top = next(op for op in recorded if op.name == "torch.nn.functional.linear")
    inside = next(op for op in recorded if op.name == "aten::addmm.default")
    assert (top.depth, inside.depth) == (0, 1)
    assert recorded.index(top) < recorded.index(inside)


def test_a_composite_operator_shows_as_its_parts():
    weight = torch.ones(4, 3)
    recorded = ops.record(lambda: torch.ops.aten.linear(torch.ones(2, 3), weight))
    assert "aten::linear.default" not in names(recorded)
    assert "aten::mm.default" in names(recorded)


def test_nothing_is_recorded_afterwards():
    recorded = ops.record(lambda: torch.ones(1))
    before = len(recorded)
    torch.ones(1)
    assert len(recorded) == before == 1


def test_an_operator_that_raises_leaves_the_modes():
    with pytest.raises(RuntimeError):
        ops.record(lambda: torch.ones(2) @ torch.ones(3), python=True)
    assert names(ops.record(lambda: torch.ones(1))) == ["aten::ones.default"]


def test_what_is_shown_and_kept():
    x = torch.ones(3)
    shown = ops.trace_ops(lambda: x.exp(), python=True)
    lines = shown.text.splitlines()
    assert lines[0] == "2 calls in order"
    assert lines[3].split() == ["1", "torch.Tensor.exp", "(f32[3])", "→", "f32[3]", "–"]
    assert lines[4].startswith("2    aten::exp.default")
    assert shown.record["kind"] == "ops"
    assert [op["name"] for op in shown.record["ops"]] == ["torch.Tensor.exp", "aten::exp.default"]
    assert "aten::exp.default</code>" in shown.html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(2, dtype=torch.float64), "f64[2]"),
        (torch.ones((), dtype=torch.bfloat16), "bf16[]"),
        (torch.ones(1, dtype=torch.bool), "bool[1]"),
        (torch.ones(1, dtype=torch.int64), "i64[1]"),
        (torch.ones(1, dtype=torch.complex64), "c64[1]"),
        (torch.ones(2, device="meta"), "f32[2]@meta"),
        ([torch.ones(1), None], "[f32[1], None]"),
        ((1, 2.5), "(1, 2.5)"),
        (torch.float16, "float16"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, … 9 items]"),
        ({"a": torch.ones(1)}, "{a: f32[1]}"),
        ("x" * 50, "str object"),
    ],
)
def test_values_as_text(value, text):
    assert ops.describe(value) == text
