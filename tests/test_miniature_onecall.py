"""The miniature chooses PyTorch's overloads and takes its way; what observes a call is exact."""

from __future__ import annotations

import platform
import random
from collections import Counter
from types import ModuleType
from typing import Any

import pytest
import torch

from insidetorch.errors import BookError
from insidetorch.private.tables import dispatch_dump
from miniatures.one_call import arguments as onecall_args
from miniatures.one_call import call as onecall
from miniatures.one_call import recorded_steps as onecall_recorded
from miniatures.one_call import rules as onecall_rules
from miniatures.one_call import watch_steps as onecall_steps
from miniatures.one_call.arguments import Signature, choose
from miniatures.one_call.cases import FUNCTIONS, mine, overloads, promoted, random_call, theirs
from miniatures.one_call.cases_stepped import CALLS, FORCED, KERNEL, SETUP, WIDE_CALLS
from miniatures.one_call.watch_codegen import function, generated, registered, show
from miniatures.one_call.watch_steps import (
    PARTS,
    Step,
    arithmetic,
    first,
    lock_given_back,
    part,
    spans,
    steps,
)
from miniatures.one_call.watch_wide import steps_or_why

SIGNATURES = {
    "add": [
        "add(Tensor input, Scalar alpha, Tensor other, *, Tensor out=None)|deprecated",
        "add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)",
    ],
    "sum": [
        "sum(Tensor input, *, ScalarType? dtype=None)",
        "sum(Tensor input, IntArrayRef[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
        "Tensor out=None)",
    ],
    "atan2": ["atan2(Tensor input, Tensor other, *, Tensor out=None)"],
    "argmax": ["argmax(Tensor input, int64_t? dim=None, bool keepdim=False, *, Tensor out=None)"],
}
X, Y = torch.ones(2, 3), torch.ones(2, 3)


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return generated(*FUNCTIONS)


def message(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(TypeError) as caught:
        call(*args, **kwargs)
    return str(caught.value).partition(" - got")[0]


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("add", (X,), {}),
        ("add", (X, "x"), {}),
        ("add", (X, Y, 1, 2), {}),
        ("add", (X, Y), {"dims": 0}),
        ("add", (X, Y), {"other": Y}),
        ("add", (X, Y), {"alpha": torch.tensor(1.0, requires_grad=True)}),
        ("sum", (X,), {"dims": 0}),
        ("sum", (X, torch.float64), {}),
        ("sum", (X, 0, 1), {}),
        ("sum", (), {}),
        ("atan2", (), {}),
        ("atan2", (X,), {}),
        ("atan2", (X, Y, 1), {}),
        ("atan2", (X, 1.0), {}),
        ("argmax", (X, True), {}),
        ("argmax", (X, torch.tensor(1.0)), {}),
    ],
)
def test_errors_have_pytorchs_words(name: str, args: Any, kwargs: Any) -> None:
    signatures = [Signature(text) for text in SIGNATURES[name]]
    assert message(choose, signatures, args, kwargs) == message(
        getattr(torch, name), *args, **kwargs
    )


def test_deprecated_signatures_come_last() -> None:
    signatures = [Signature(text) for text in SIGNATURES["add"]]
    assert not choose(signatures, (X, torch.tensor(2.0)), {})[0].deprecated
    assert choose(signatures, (X, 2, Y), {})[0].deprecated


@pytest.mark.slow
def test_the_same_overload_or_error_on_random_calls(files: dict[str, str]) -> None:
    """On two calls of each function: the chapter compares nine hundred."""
    tables = {
        name: overloads(function(files, f"THPVariable_{name}", "python_torch")[1])
        for name in FUNCTIONS
    }
    assert sum(map(len, tables.values())) >= 50
    seen: Counter[str] = Counter()
    for seed in range(5000, 5000 + 2 * len(FUNCTIONS)):
        name = FUNCTIONS[seed % len(FUNCTIONS)]
        args, kwargs = random_call(list(tables[name]), seed)
        small = mine(tables[name], args, kwargs)
        assert small == theirs(name, args, kwargs), (name, seed)
        seen["error" if "(" in small else small] += 1
    assert seen["error"] > 5
    assert len(seen) > 10, seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        (onecall_args, "TAKES_NUMBERS", set[str]()),
        (onecall_args, "ALIASES", dict[str, list[str]]()),
        (onecall_rules, "is_number", lambda value, *types: isinstance(value, types)),
    ],
    ids=["no numbers for tensors", "no names of NumPy", "no tensors for numbers"],
)
def test_a_rule_left_out_shows(
    broken: tuple[ModuleType, str, Any], files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*broken)
    differ = 0
    for seed in range(600):
        name = FUNCTIONS[seed % len(FUNCTIONS)]
        table = overloads(function(files, f"THPVariable_{name}", "python_torch")[1])
        args, kwargs = random_call(list(table), seed)
        differ += mine(table, args, kwargs) != theirs(name, args, kwargs)
    assert differ > 0


def test_the_same_results_as_torch_add() -> None:
    shapes = [((2, 3), (2, 3)), ((2, 3), (3,)), ((4, 1), (1, 5)), ((17,), (17,)), ((), (2,))]
    dtypes = [torch.int32, torch.int64, torch.float32, torch.float64, torch.uint8]
    for seed in range(250):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        a, b = (torch.randint(0, 50, s).to(rng.choice(dtypes)) for s in rng.choice(shapes))
        alpha = rng.choice([1, 2, 3])
        ours, real = onecall.add(a, b, alpha=alpha), torch.add(a, b, alpha=alpha)
        assert ours.dtype == real.dtype
        assert torch.equal(ours, real)


def test_what_is_recorded_and_what_is_skipped() -> None:
    leaf = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        onecall.add(leaf, leaf)
        assert "VariableType::add_Tensor" in onecall.path
        assert "AddBackward0" not in onecall.path
    with torch.inference_mode():
        onecall.add(torch.ones(2), torch.ones(2))
        assert "VariableType::add_Tensor" not in onecall.path
    assert onecall.path.count("redispatch") == 0


def test_the_loop_takes_pairs_of_vectors_first() -> None:
    for count in range(70):
        chunks = list(onecall.loop_of(8)(list(range(count))))
        assert [place for chunk in chunks for place in chunk] == list(range(count))
        assert [len(chunk) for chunk in chunks] == [8] * (count // 16 * 2) + [1] * (count % 16)


@pytest.mark.slow
def test_generated_files_are_those_of_the_build(files: dict[str, str]) -> None:
    rows = registered(dispatch_dump("aten::add.Tensor"), files)
    assert {row[0] for row in rows} >= {"CPU", "Autograd[alias]"}
    for key, _, _, line in rows:
        assert line == f"TORCH_LIBRARY_IMPL(aten, {key.partition('[')[0]}, m) {{"
    shown = show(files, "add_Tensor", "VariableType", end="set_history")
    assert "NDEBUG" not in shown.text
    with pytest.raises(BookError, match="No generated file"):
        show(files, "wrapper_CPU_no_such_operator", "RegisterCPU")
    with pytest.raises(BookError, match="has no line"):
        show(files, "THPVariable_add", "python_torch", start="no such text")


linux = pytest.mark.skipif(platform.system() != "Linux", reason="single steps take Linux")


@pytest.mark.slow
@pytest.mark.needs("addr2line", "objdump")
@linux
def test_every_instruction_of_a_call() -> None:
    call, nothing, freed = steps(
        "r = torch.add(a, b)",
        "pass",
        "r = a; del r",
        setup="a, b = torch.ones(16), torch.ones(16)",
        decode="callback_fn|add_kernel",
    )
    assert nothing == freed == []
    assert first(call, "THPVariable_add") == 0
    assert sum(length for name in PARTS for _, length in spans(call, name)) == len(call)
    assert {part(step) for step in call} == set(PARTS)
    assert 0 < len(arithmetic(call)) <= 8
    with pytest.raises(BookError, match="no instruction of no_such_function"):
        first(call, "no_such_function")
    with pytest.raises(BookError, match="NameError"):
        steps("no_such_name")


def test_without_ptrace_a_recording_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(onecall_recorded, "_release", lambda: "2.13.0")
    traces = steps(*CALLS.values(), setup=SETUP, decode=KERNEL)
    assert "A recording instead: torch 2.13.0" in capsys.readouterr().out
    assert len(traces) == len(CALLS)
    assert first(traces[0], "THPVariable_add") == 0
    wide = {"ATEN_CPU_CAPABILITY": "avx512"}
    forced = steps(*WIDE_CALLS.values(), setup=SETUP + FORCED, decode=KERNEL, environment=wide)
    assert len(forced) == len(WIDE_CALLS)
    with pytest.raises(BookError, match="there is no recording"):
        steps("pass")
    monkeypatch.setattr(onecall_recorded, "_release", lambda: "0.0")
    with pytest.raises(BookError, match="with torch 0"):
        steps(*CALLS.values(), setup=SETUP, decode=KERNEL)


def test_a_processor_without_the_widest_set_shows_a_recording(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(onecall_recorded, "_release", lambda: "2.13.0")
    wide = {"ATEN_CPU_CAPABILITY": "avx512"}
    steps(*WIDE_CALLS.values(), setup=SETUP + FORCED, decode=KERNEL, environment=wide)
    assert "this processor has no AVX-512" in capsys.readouterr().out


def test_what_was_neither_run_nor_recorded_is_said_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A statement that fails is never passed over."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(onecall_recorded, "_release", lambda: "2.99.0")
    monkeypatch.setattr(torch, "__version__", "2.99.0+cpu")
    wide = {"ATEN_CPU_CAPABILITY": "avx512"}
    asked: Any = {"setup": SETUP + FORCED, "decode": KERNEL, "environment": wide}
    assert steps_or_why(*WIDE_CALLS.values(), **asked) == []
    assert capsys.readouterr().out == (
        "Not shown here: the calls were not run (this processor has no AVX-512), and there is no "
        "recording of them with torch 2.99.0.\n"
    )
    with pytest.raises(BookError, match=r"recording of them with torch 2\.99\.0: use Linux"):
        steps(*WIDE_CALLS.values(), **asked)
    monkeypatch.setattr(onecall_recorded, "_release", lambda: "2.13.0")
    assert len(steps_or_why(*WIDE_CALLS.values(), **asked)) == len(WIDE_CALLS)
    assert "A recording instead: torch 2.13.0" in capsys.readouterr().out

    def fail(*_: object) -> None:
        raise BookError("NameError")

    monkeypatch.setattr(onecall_steps, "stepped", fail)
    with pytest.raises(BookError, match="NameError"):
        steps_or_why(*WIDE_CALLS.values(), **asked)


def test_a_type_that_is_not_known_is_named() -> None:
    with pytest.raises(BookError, match="TensorList tensors"):
        Signature("cat(TensorList tensors, int64_t dim=0, *, Tensor out=None)")


def test_the_rule_of_types_is_that_of_torch() -> None:
    half, scalar = torch.ones(1).half(), torch.tensor(1.0).double()
    for one, other in ((half, scalar), (half, 1), (half, scalar.reshape(1)), (X, True), (1, 0.5)):
        assert promoted(one, other) == torch.result_type(one, other)


def test_the_lock_is_free_between_save_and_restore() -> None:
    names = ["f", "PyEval_SaveThread", "drop_gil", "g", "PyEval_AcquireThread", "take_gil", "h",
             "PyEval_SaveThread", "i", "PyEval_RestoreThread"]  # fmt: skip
    assert lock_given_back([Step("", name) for name in names]) == [(1, 4), (7, 9)]


def test_a_note_stands_at_its_line() -> None:
    files = {"RegisterX.cpp": "int f() {\n  return a<b>(c);\n}"}
    shown = show(files, "f", "RegisterX", notes={"return a<b>": "decides"})
    assert 'data-note="1"' in shown.html.partition("return")[2]
    assert "<li>decides</li>" in shown.html
    assert shown.text.endswith("1. decides")
    with pytest.raises(BookError, match="No shown line"):
        show(files, "f", "RegisterX", notes={"nowhere": "x"})
