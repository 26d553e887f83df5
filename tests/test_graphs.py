"""The graph drawn is the graph PyTorch built."""

import re

import pytest
import torch

from insidetorch import graph
from insidetorch.errors import BookError
from insidetorch.private.engine import execution_order
from insidetorch.show import graphs

needs_dot = pytest.mark.needs("dot")


@pytest.fixture
def diamond():
    x = torch.ones(3, 4, requires_grad=True)
    w = torch.ones(4, requires_grad=True)
    h = x * w
    y = (h.exp() + h).sum()
    return x, w, h, y


def by_name(found):
    return {node.name: node for node in found.nodes}


def test_nodes_edges_and_shapes(diamond):
    *_, y = diamond
    found = graphs.read(y)
    assert [node.name for node in found.nodes] == [
        "SumBackward0",
        "AddBackward0",
        "ExpBackward0",
        "MulBackward0",
        "AccumulateGrad",
        "AccumulateGrad",
    ]
    assert found.roots == (0,)
    edges = {(i, target) for i, node in enumerate(found.nodes) for target, _ in node.edges}
    assert edges == {(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (3, 5)}
    assert by_name(found)["ExpBackward0"].shapes == ((3, 4),)
    assert [node.shapes for node in found.nodes if node.leaf] == [((3, 4),), ((4,),)]


def test_sequence_numbers_grow_in_the_order_of_the_forward_pass(diamond):
    *_, y = diamond
    numbers = by_name(graphs.read(y))
    made = [numbers[name].sequence for name in ("MulBackward0", "ExpBackward0", "AddBackward0")]
    assert made == sorted(made)
    assert numbers["AccumulateGrad"].sequence is None


def test_names_of_leaves_and_of_what_was_computed(diamond):
    x, w, h, y = diamond
    found = graphs.read(y, names={"x": x, "w": w, "h": h, "far": torch.ones(1)})
    assert [node.tensors for node in found.nodes] == [(), (), (), ("h",), ("x",), ("w",)]


def test_the_order_of_a_real_backward_pass(diamond):
    *_, y = diamond
    order = []
    y.register_hook(lambda _: order.extend(execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        y.backward(retain_graph=True)
    found = graphs.read(y, order=order)
    assert [node.order for node in found.nodes] == [1, 2, 3, 4, 5, 6]
    assert "① SumBackward0" in graphs.as_text(found)


def test_a_node_of_another_graph_is_refused(diamond):
    *_, y = diamond
    other = torch.ones(1, requires_grad=True).sin()
    with pytest.raises(
        BookError, match=r"Node 1 of the order \(SinBackward0\) is not in the graph"
    ):
        graphs.read(y, order=[other.grad_fn])


def test_saved_tensors_and_freed_ones(diamond):
    *_, y = diamond
    nodes = by_name(graphs.read(y, saved=True))
    assert nodes["ExpBackward0"].saved == ("result [3, 4]",)
    assert set(nodes["MulBackward0"].saved) == {"self [3, 4]", "other [4]"}
    y.backward()
    assert by_name(graphs.read(y, saved=True))["ExpBackward0"].saved == ("freed",)


def test_the_text_marks_a_node_met_again(diamond):
    *_, y = diamond
    tree = graphs.as_text(graphs.read(y))
    assert tree.count("MulBackward0") == 2
    assert "MulBackward0 [1]" in tree
    assert "└─ MulBackward0  ↑[1]" in tree
    assert tree.count("AccumulateGrad") == 2


def test_a_leaf_used_twice_by_one_node_is_one_node():
    x = torch.ones(2, requires_grad=True)
    found = graphs.read(x * x)
    assert len(found.nodes) == 2
    assert found.nodes[0].edges == ((1, 0), (1, 0))


def test_which_output_of_a_node_an_edge_feeds():
    a, b = torch.ones(4, requires_grad=True).split(2)
    found = graphs.read([a * b, b.exp()])
    assert found.nodes[0].edges == ((1, 0), (1, 1))
    assert found.nodes[1].shapes == ((2,), (2,))
    assert len(found.roots) == 2


def test_a_function_written_in_python_is_a_node():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.variable = 3
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    found = graphs.read(Twice.apply(torch.ones(2, requires_grad=True)), saved=True)
    assert [(node.name, node.leaf) for node in found.nodes] == [
        ("TwiceBackward", False),
        ("AccumulateGrad", True),
    ]


def test_what_cannot_be_drawn_is_told_in_one_sentence():
    with pytest.raises(BookError, match="has no autograd graph"):
        graphs.autograd_graph(torch.ones(2))
    with pytest.raises(BookError, match="takes a tensor or a sequence of tensors"):
        graphs.autograd_graph([])
    x = torch.ones(1, requires_grad=True)
    for _ in range(graphs.LIMIT):
        x = x.exp()
    with pytest.raises(BookError, match="more than 120 nodes"):
        graphs.autograd_graph(x)


def test_the_dot_source_escapes_names():
    x = torch.ones(1, requires_grad=True)
    dot = graphs.as_dot(graphs.read(x.exp(), names={"a<b>&c": x}))
    assert "a&lt;b&gt;&amp;c" in dot
    assert "0 -> 1" in dot


@needs_dot
def test_the_picture_has_every_node_and_a_description(diamond):
    *_, y = diamond
    shown = graphs.autograd_graph(y)
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", shown.html)
    assert {"SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0"} <= set(labels)
    assert "SumBackward0 to AddBackward0" in re.search(r'aria-label="([^"]+)"', shown.html)[1]
    assert shown.text == graphs.as_text(graphs.read(y))


def test_without_graphviz_there_is_still_the_tree(diamond, monkeypatch, tmp_path):
    *_, y = diamond
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("INSIDETORCH_BUILD", raising=False)
    shown = graphs.autograd_graph(y)
    assert "SumBackward0" in shown.html
    assert shown.text.endswith("install Graphviz, which brings the command dot.")
    monkeypatch.setenv("INSIDETORCH_BUILD", "1")
    with pytest.raises(BookError, match="Graphviz is not installed"):
        graphs.autograd_graph(y)


@pytest.mark.parametrize(
    ("number", "text"), [(1, "①"), (20, "⑳"), (21, "㉑"), (50, "㊿"), (51, "(51)")]
)
def test_circled_numbers(number, text):
    assert graphs.circled(number) == text


@needs_dot
@pytest.mark.parametrize(("where", "role"), [("", "img"), ('[URL="page.html"]', "group")])
def test_links_in_a_graph_are_reached(where, role):
    assert f'role="{role}"' in graph(f"digraph {{ a {where} }}", alt="One node.").html
