"""The stacks shown are those of the running program, Python and C++ in their true order."""

import stat
import sys

import pytest
import torch

from insidetorch.errors import BookError
from insidetorch.watch import frames
from insidetorch.watch.stacks import cpp_stack

APPLY = "torch::autograd::generated::MulBackward0::apply"
PROGRAM = """\
import torch
x = torch.ones(3, requires_grad=True)
y = (x * torch.ones(3)).sum()
y.backward()
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="stacks are read on Linux")
needs_gdb = pytest.mark.needs("gdb")
needs_addr2line = pytest.mark.needs("addr2line")
pytestmark = [linux, pytest.mark.slow]


@pytest.fixture
def product():
    x = torch.ones(3, requires_grad=True)
    return x, (x * torch.ones(3)).sum()


def in_order(names, wanted):
    places = [names.index(name) for name in wanted]
    return places == sorted(places)


@needs_addr2line
def test_from_backward_down_to_the_operator_a_node_calls(product):
    _, y = product
    found = cpp_stack(lambda: y.backward(), at="aten::mul")
    assert in_order(
        found.functions,
        [
            "Tensor.backward",
            "_engine_run_backward",
            "THPEngine_run_backward",
            "torch::autograd::python::PythonEngine::execute",
            "torch::autograd::Engine::execute",
            "torch::autograd::Engine::thread_main",
            "torch::autograd::Engine::evaluate_function",
            "torch::autograd::Node::operator()",
            APPLY,
            "at::_ops::mul_Tensor::call",
            "torch::autograd::VariableType::mul_Tensor",
            "at::_ops::mul_Tensor::redispatch",
        ],
    )
    assert found.functions[-1] == "at::_ops::mul_Tensor::redispatch"
    assert found.frames[0].code == "y.backward()"
    assert found.frames[-1].kind == "probe"
    where = {frame.function: frame.where for frame in found.frames}
    assert where[APPLY] == "libtorch_cpu.so"
    assert where["THPEngine_run_backward"] == "libtorch_python.so"
    assert where["Tensor.backward"].startswith("torch/_tensor.py:")


@needs_addr2line
def test_nothing_of_the_caller_is_shown(product):
    x, _ = product
    found = cpp_stack(lambda: x * 2)
    python = [frame.function for frame in found.frames if frame.layer == "Python"]
    assert [name.rpartition(".")[2] for name in python if name] == ["<lambda>"]
    assert "torch::autograd::THPVariable_mul" in found.functions


@needs_addr2line
def test_python_in_the_middle_of_the_stack_is_in_its_place():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    y = Twice.apply(torch.ones(2, requires_grad=True))
    found = cpp_stack(lambda: y.backward(torch.ones(2)), at="aten::mul")
    names = [name.rpartition("<locals>.")[2] for name in found.functions]
    assert in_order(
        names,
        [
            "_engine_run_backward",
            "THPEngine_run_backward",
            "torch::autograd::PyNode::apply",
            "BackwardCFunction.apply",
            "Twice.backward",
            "torch::autograd::THPVariable_mul",
        ],
    )
    assert any(frame.code == "gradient * 2" for frame in found.frames)


@needs_addr2line
def test_at_a_node_and_at_a_tensor(product):
    x, y = product
    node = y.grad_fn.next_functions[0][0]
    before = cpp_stack(lambda: y.backward(retain_graph=True), at=node)
    assert "torch::autograd::PyFunctionPreHook::operator()" in before.functions
    assert "the hook before MulBackward0" in before.text
    tensor = cpp_stack(lambda: y.backward(), at=x)
    assert "torch::autograd::PyFunctionTensorPreHook::operator()" in tensor.functions
    x.grad = None


def test_the_hooks_and_the_profile_function_are_gone_afterwards(product):
    x, y = product
    before = sys.getprofile()
    cpp_stack(lambda: y.backward(retain_graph=True), at=x)
    assert sys.getprofile() is before
    with pytest.raises(BookError):
        cpp_stack(lambda: None, at=x)
    x.grad = None
    y.backward()
    assert torch.equal(x.grad, torch.ones(3))


@needs_addr2line
def test_which_call_of_an_operator():
    x = torch.ones(2)

    def first():
        return x * 1

    def second():
        return x * 2

    def both():
        first()
        second()

    one = cpp_stack(both, at="aten::mul.Tensor", hit=1)
    two = cpp_stack(both, at="aten::mul.Tensor", hit=2)
    assert any(name.endswith("first") for name in one.functions)
    assert any(name.endswith("second") for name in two.functions)


@needs_addr2line
def test_an_expression_over_several_lines_is_shown_on_one():
    x = torch.ones(2)
    found = cpp_stack(
        lambda: torch.add(
            x,
            1,
        )
    )
    assert found.frames[0].code == "torch.add( x, 1, )"


@needs_addr2line
def test_a_program_as_text():
    found = cpp_stack(PROGRAM, at="aten::expand")
    assert found.frames[0].code == "y.backward()"
    assert found.frames[0].where == "script:4"
    assert "torch::autograd::generated::SumBackward0::apply" in found.functions


@needs_addr2line
def test_what_is_shown_and_kept(product):
    _, y = product
    found = cpp_stack(lambda: y.backward(), at="aten::mul", python=False)
    assert found.text.startswith("Stack from the call down to aten::mul, outermost call first\n")
    assert "backward()" not in found.text.splitlines()[1]
    assert found.record["kind"] == "stack"
    assert {"layer": "autograd node", "function": APPLY} in found.record["frames"]
    assert "<details><summary>⋯ " in found.html
    assert "torch/csrc/autograd/engine.h#L" in found.html


def test_without_addr2line_the_stack_is_there_with_a_sentence(product, monkeypatch, tmp_path):
    _, y = product
    monkeypatch.setenv("PATH", str(tmp_path))
    found = cpp_stack(lambda: y.backward(), at="aten::mul")
    assert APPLY in found.functions
    assert "??" in found.functions
    assert found.text.splitlines()[-1].endswith("which brings the command addr2line.")


def test_a_point_that_is_not_reached_is_told_in_one_sentence(product):
    x, _ = product
    with pytest.raises(BookError, match=r"never reached aten::sin.*that ran are aten::exp, "):
        cpp_stack(lambda: x.exp(), at="aten::sin")
    with pytest.raises(BookError, match=r"never reached aten::exp, call 2"):
        cpp_stack(lambda: x.exp(), at="aten::exp", hit=2)
    with pytest.raises(BookError, match="is no point to stop at"):
        cpp_stack(lambda: None, at=torch.ones(1))
    with pytest.raises(BookError, match="counts from 1"):
        cpp_stack(lambda: None, hit=0)


def test_a_breakpoint_takes_a_program(product):
    with pytest.raises(BookError, match="give it the program's text"):
        cpp_stack(lambda: None, breakpoint=APPLY)


@needs_gdb
def test_gdb_stops_in_a_function():
    found = cpp_stack(PROGRAM, breakpoint=APPLY)
    assert found.functions[-1] == APPLY
    assert in_order(
        found.functions,
        [
            "backward",
            "_engine_run_backward",
            "THPEngine_run_backward",
            "torch::autograd::Engine::execute",
            "torch::autograd::Engine::evaluate_function",
            "torch::autograd::Node::operator()",
            APPLY,
        ],
    )
    assert found.frames[0].code == "y.backward()"
    assert found.frames[0].where == "script:4"


def test_without_gdb_an_explicit_breakpoint_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BookError, match="install the system package gdb"):
        cpp_stack(PROGRAM, breakpoint=APPLY)


@pytest.fixture
def fake_gdb(monkeypatch, tmp_path):
    def install(body):
        script = tmp_path / "gdb"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return install


REFUSED = 'echo "warning: ptrace: Operation not permitted." >&2'


def test_a_gdb_that_may_not_trace_is_told_in_one_sentence(fake_gdb):
    fake_gdb(REFUSED)
    with pytest.raises(BookError, match=r"ptrace: Operation not permitted\): allow ptrace") as told:
        cpp_stack(PROGRAM, breakpoint=APPLY)
    assert "\n" not in str(told.value)


@needs_addr2line
def test_a_gdb_that_may_not_trace_gives_way_to_the_probe(fake_gdb):
    fake_gdb(REFUSED)
    found = cpp_stack(PROGRAM, breakpoint=APPLY, at="aten::mul", hit=2)
    assert APPLY in found.functions
    note = found.text.splitlines()[-1]
    assert "gdb could not trace the program" in note
    assert note.endswith("Shown instead: aten::mul.")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ('{"exit": 0, "found": true}', "never called torch::f: check"),
        ('{"exit": 0, "found": false}', "No library of the program has a function torch::f"),
        ('{"exit": 1, "found": true}', r"failed \(ValueError: no\): correct it"),
    ],
)
def test_why_gdb_did_not_stop(fake_gdb, told, message):
    fake_gdb(f"echo '{told}' > \"$INSIDETORCH_STACK\"; echo 'ValueError: no' >&2")
    with pytest.raises(BookError, match=message):
        cpp_stack(PROGRAM, breakpoint="torch::f", at="aten::mul")


def test_a_program_that_takes_too_long(fake_gdb):
    fake_gdb("exec sleep 600")
    with pytest.raises(BookError, match=r"did not reach torch::f within 0\.2 s"):
        cpp_stack(PROGRAM, breakpoint="torch::f", timeout=0.2)


@pytest.mark.parametrize(
    ("file", "label"),
    [
        ("/x/lib/python3.11/site-packages/torch/_tensor.py", "torch/_tensor.py"),
        ("/tmp/ipykernel_123/456.py", "cell"),
        ("<script>", "script"),
        ("/home/reader/work.py", "work.py"),
    ],
)
def test_names_of_python_files(file, label):
    assert frames.label(file) == label
