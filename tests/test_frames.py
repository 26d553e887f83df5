"""C++ names become short and true, and every frame lands in its layer."""

import pytest

from insidetorch.watch.frames import (
    Frame,
    fold_text,
    groups,
    interleave,
    native_frame,
    sections,
    shorten,
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("THPEngine_run_backward(_object*, _object*, _object*)", "THPEngine_run_backward"),
        (
            "torch::autograd::VariableType::(anonymous namespace)::mul_Tensor(c10::DispatchKeySet)",
            "torch::autograd::VariableType::mul_Tensor",
        ),
        (
            "torch::autograd::Node::operator()(std::vector<at::T, std::allocator<at::T> >&&)",
            "torch::autograd::Node::operator()",
        ),
        (
            "at::Tensor torch::autograd::generated::details::mul_tensor_backward<at::Tensor>"
            "(at::Tensor const&, at::Tensor, c10::ScalarType)",
            "torch::autograd::generated::details::mul_tensor_backward",
        ),
        (
            "torch::detail::(anonymous namespace)::V::dispatch(c10::OperatorHandle const&) const",
            "torch::detail::V::dispatch",
        ),
        (
            "at::native::mul_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const",
            "at::native::mul_kernel::{lambda}::operator()",
        ),
        ("std::ostream& c10::operator<<(std::ostream&, c10::Device)", "c10::operator<<"),
        ("c10::Scalar::operator bool() const", "c10::Scalar::operator bool"),
        ("c10::intrusive_ptr<at::T>::operator->() const", "c10::intrusive_ptr::operator->"),
        ("f(int (*)(int), void (*)()) [clone .cold]", "f"),
        ("bool at::less<(at::Kind)3, (1>2)>(int)", "at::less"),
        ("??", "??"),
    ],
)
def test_short_names(name, short):
    assert shorten(name) == short


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("THPEngine_run_backward(_object*)", "Python binding"),
        ("torch::autograd::THPVariable_mul(_object*)", "Python binding"),
        ("torch::autograd::python::PythonEngine::execute(int)", "autograd engine"),
        ("torch::autograd::Engine::thread_main(int)", "autograd engine"),
        ("torch::autograd::generated::MulBackward0::apply(int)", "autograd node"),
        ("torch::autograd::PyFunctionPreHook::operator()(int)", "autograd hook"),
        ("torch::autograd::call_tensor_pre_hooks(int)", "autograd hook"),
        ("torch::autograd::VariableType::(anonymous namespace)::mul(int)", "autograd kernel"),
        ("at::_ops::mul_Tensor::call(at::Tensor const&)", "dispatcher"),
        ("at::native::add_kernel(at::TensorIteratorBase&)", "ATen kernel"),
        ("frobnicate(int)", "libthing"),
    ],
)
def test_layers(name, layer):
    assert native_frame(name, "/somewhere/libthing.so.3").layer == layer


@pytest.mark.parametrize(
    ("name", "library", "kind"),
    [
        ("torch::autograd::Engine::execute(int)", "/x/libtorch_cpu.so", "shown"),
        ("_PyEval_EvalFrameDefault", "/x/libpython3.12.so.1.0", "interpreter"),
        ("anything at all", "/usr/bin/python3.12", "interpreter"),
        ("_PyObject_VectorcallTstate", "/x/libtorch_python.so", "interpreter"),
        ("PyObject_Call", "/x/libtorch_python.so", "interpreter"),
        ("__libc_start_main_impl", "/lib/libc.so.6", "interpreter"),
        ("std::function<void ()>::operator()() const", "/x/libtorch_cpu.so", "plumbing"),
        ("pybind11::cpp_function::dispatcher(_object*)", "/x/libtorch_python.so", "plumbing"),
        ("at::_ops::mul_Tensor::call@plt", "/x/libtorch_cpu.so", "plumbing"),
        ("void c10::BoxedKernel::make_boxed_function<&f>(int)", "/x/libtorch_cpu.so", "plumbing"),
        ("(anonymous namespace)::pythonFallback(int)", "/x/libtorch_cpu.so", "probe"),
    ],
)
def test_what_is_folded_away(name, library, kind):
    assert native_frame(name, library).kind == kind


INTERPRETER = native_frame("_PyEval_EvalFrameDefault", "python")
ENGINE = native_frame("torch::autograd::Engine::execute(int)", "libtorch_cpu.so")
KERNEL = native_frame("at::native::add(int)", "libtorch_cpu.so")
CALL = Frame("call", "script:1", "Python")
HOOK = Frame("hook", "script:2", "Python")


def test_python_frames_come_before_the_interpreter_that_runs_them():
    native = [INTERPRETER, INTERPRETER, ENGINE, INTERPRETER, KERNEL]
    assert sections(native) == 2
    assert interleave(native, [[CALL], [HOOK]]) == (CALL, ENGINE, HOOK, INTERPRETER, KERNEL)


def test_folded_frames_are_counted_by_kind():
    probe = Frame("", "", "Python", "probe", count=15)
    runs = list(groups([CALL, INTERPRETER, INTERPRETER, probe, KERNEL]))
    assert [shown for shown, _ in runs] == [True, False, True]
    assert fold_text(runs[1][1]) == "⋯ 2 interpreter + 15 probe frames"
    assert fold_text([INTERPRETER]) == "⋯ 1 interpreter frame"
