"""The private names the book uses are there, and an absent one is told in one sentence."""

from collections import Counter
from inspect import isfunction

import pytest
import torch

from insidetorch import private
from insidetorch.errors import BookError
from insidetorch.private.name import NAMES, Name


@pytest.mark.slow
def test_nothing_is_missing_from_the_installed_release():
    assert private.missing() == []
    assert len(private.names()) == len(set(private.names())) > 10


def test_an_absent_name_is_reported_and_raises_one_sentence(monkeypatch):
    monkeypatch.delattr(torch._C, "_current_graph_task_id")
    assert private.missing() == ["torch._C._current_graph_task_id"]
    with pytest.raises(BookError) as raised:
        private.graph_task_id()
    message = str(raised.value)
    assert "torch._C._current_graph_task_id" in message
    assert torch.__version__ in message
    assert "\n" not in message


def test_an_absent_attribute_of_an_object_raises_one_sentence():
    with pytest.raises(BookError, match=r"Node\._sequence_nr is absent from torch"):
        private.sequence_nr(object())


def test_no_two_subjects_have_an_accessor_of_the_same_name():
    homes = Counter(
        name
        for subject in private._subjects()
        for name, value in vars(subject).items()
        if isfunction(value) and value.__module__ == subject.__name__
    )
    assert homes and {name for name, count in homes.items() if count > 1} == set()
    subjects = {subject.__name__.rpartition(".")[2] for subject in private._subjects()}
    assert homes.keys().isdisjoint(subjects), "the module would hide the accessor"


def test_a_module_that_is_gone_counts_as_missing():
    gone = Name("torch.no_such_module.Thing")
    NAMES.remove(gone)
    assert not gone.here()


def test_a_backward_pass_seen_from_inside():
    x = torch.ones(2, requires_grad=True)
    root = x.exp().sum()
    seen = {}

    def look(_):
        seen["task"] = private.graph_task_id()
        seen["node"] = private.current_node().name()
        seen["order"] = [node.name().split("::")[-1] for node in private.execution_order()]
        seen["runs"] = private.will_execute(private.current_node().next_functions[0][0])
        private.queue_callback(lambda: seen.setdefault("grad_at_the_end", x.grad))

    root.register_hook(look)
    with torch.autograd.set_multithreading_enabled(False):
        root.backward()
    assert seen["task"] >= 0
    assert private.graph_task_id() == -1
    assert seen["node"] == "SumBackward0"
    assert seen["runs"]
    assert seen["order"] == ["SumBackward0", "ExpBackward0", "AccumulateGrad"]
    assert torch.equal(seen["grad_at_the_end"], x.grad)


def test_the_backward_of_cpp_sums_a_larger_gradient():
    x = torch.ones(2, requires_grad=True)
    private.cpp_backward(x.sum(), torch.ones(3))
    assert torch.equal(x.grad, torch.full((2,), 3.0))


def test_the_attention_of_the_cpu_returns_a_result_of_the_shape_of_the_query():
    heads = torch.ones(1, 2, 4, 8)
    assert private.cpu_flash_attention(heads, heads, heads, 0.0)[0].shape == heads.shape


def test_what_a_node_tells():
    x = torch.ones(2, 3, requires_grad=True)
    y = x.exp()
    z = y.sin()
    assert private.sequence_nr(z.grad_fn) == private.sequence_nr(y.grad_fn) + 1
    assert private.sequence_nr(y.grad_fn.next_functions[0][0]) is None
    assert torch.equal(private.saved_values(y.grad_fn)["result"], y)
    assert tuple(private.input_metadata(y.grad_fn)[0].shape) == (2, 3)


def test_the_version_of_a_tensor_counts_writes():
    x = torch.zeros(2)
    x.add_(1)
    x.mul_(2)
    assert private.version(x) == 2


def test_the_dispatch_mode_sees_operators():
    seen = []

    class Watch(private.dispatch_mode()):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    with Watch():
        torch.zeros(2).exp()
    assert seen == ["aten::zeros", "aten::exp"]
