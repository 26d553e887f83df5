"""`source` on the torch that is installed here."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.locate import lookup
from insidetorch.show import excerpts
from insidetorch.show.excerpts import source

SITE = lookup.site()
CPP = [
    ("torch::autograd::GraphTask", "graph_task.h"),
    ("torch::autograd::GraphTask::dependencies_", "graph_task.h"),
    ("torch::autograd::Node", "torch/csrc/autograd/"),
    ("torch::autograd::Node::operator()", "torch/csrc/autograd/"),
    ("torch::autograd::Node::next_edge", "torch/csrc/autograd/"),
    ("torch::autograd::Engine", "engine.h"),
    ("torch::autograd::Engine::execute", "engine.h"),
    ("torch::autograd::ReadyQueue", "engine.h"),
    ("torch::autograd::NodeTask", "engine.h"),
    ("torch::autograd::InputBuffer", "input_buffer.h"),
    ("torch::autograd::AccumulateGrad::accumulateGrad", "accumulate_grad.h"),
    ("torch::autograd::SavedVariable", "saved_variable.h"),
    ("torch::autograd::Edge", "edge.h"),
    ("torch::autograd::AutogradMeta", "variable.h"),
    ("torch::autograd::generated::MulBackward0", "generated/Functions.h"),
    ("c10::TensorImpl", "TensorImpl.h"),
    ("c10::TensorImpl::numel", "TensorImpl.h"),
    ("c10::StorageImpl", "StorageImpl.h"),
    ("c10::intrusive_ptr", "intrusive_ptr.h"),
    ("c10::DispatchKeySet", "DispatchKeySet.h"),
    ("c10::DispatchKey", "DispatchKey.h"),
    ("c10::Dispatcher", "Dispatcher.h"),
    ("c10::Dispatcher::call", "Dispatcher.h"),
    ("c10::KernelFunction::call", "KernelFunction_impl.h"),
    ("c10::impl::LocalDispatchKeySet", "LocalDispatchKeySet.h"),
    ("c10d::Reducer", "reducer.hpp"),
    ("at::Tensor", "TensorBody.h"),
    ("at::TensorIteratorBase", "TensorIterator.h"),
    ("at::native::cpu_kernel", "Loops.h"),
    ("at::native::gpu_kernel", "Loops.cuh"),
    ("at::parallel_for", "Parallel"),
    ("at::autocast::cached_cast", "autocast_mode.h"),
    ("at::_ops::mul_Tensor::call", "ops/mul_ops.h"),
    ("TORCH_LIBRARY", "library.h"),
    ("TORCH_CHECK", "Exception.h"),
    ("engine.h:ReadyQueue", "torch/csrc/autograd/engine.h"),
    ("ATen/cpu/vec/vec512/vec512_float.h:at::vec::Vectorized<float>", "vec512_float.h"),
]
PYTHON = [
    ("torch.autograd.backward", "def backward("),
    ("torch.autograd.grad", "def grad("),
    ("torch.Tensor.backward", "def backward("),
    ("torch.nn.Linear.forward", "def forward("),
    ("torch.nn.Module", "class Module"),
    ("torch.optim.SGD.step", "def step("),
    ("torch.no_grad", "class no_grad"),
    ("torch.compile", "def compile("),
    ("torch.autograd.graph:saved_tensors_hooks", "class saved_tensors_hooks"),
    ("torch/autograd/function.py:FunctionCtx.save_for_backward", "def save_for_backward("),
    ("torchgen.model:NativeFunction", "class NativeFunction"),
    ("miniatures.autograd_engine.engine:Engine.run", "def run("),
]


def shown(text: str) -> list[str]:
    """Return an excerpt's lines without caption and numbers."""
    return [re.sub(r"^ *(\d+|⋯) ? ?", "", line) for line in text.split("\n")[1:]]


def on_disk(file: str, numbers: Sequence[int]) -> str:
    lines = (SITE / file).read_text(encoding="utf-8").split("\n")
    return "\n".join(lines[numbers[0] - 1 : numbers[1]])


@pytest.mark.parametrize(("target", "file"), CPP, ids=[target for target, _ in CPP])
def test_cpp(target: str, file: str) -> None:
    display = source(target)
    record = display.record
    assert record is not None
    assert file in record["file"]
    name = re.split(r"::|:", target)[-1] if "<" not in target else "Vectorized<float>"
    opening = " ".join(shown(display.text)[:8])
    assert re.search(re.escape(name) + r"(?!\w)", opening), opening
    first, last = record["lines"]
    moved = on_disk(record["file"], [1, 1]).startswith("#if !defined(TORCH_STABLE_ONLY)")
    disk = on_disk(record["file"], [first + moved, last + moved])
    assert [line.rstrip() for line in disk.split("\n")] == shown(display.text)


@pytest.mark.parametrize(("target", "head"), PYTHON, ids=[target for target, _ in PYTHON])
def test_python(target: str, head: str) -> None:
    display = source(target)
    assert display.record is not None
    lines = [line for line in shown(display.text) if not line.strip().startswith("@")]
    assert lines[0].strip().startswith(head)
    assert display.record["signature"].startswith(head)


@pytest.mark.parametrize(
    ("target", "upstream"),
    [
        ("native_functions.yaml:mul.Tensor", "aten/src/ATen/native/native_functions.yaml"),
        ("aten::mul.Tensor", "aten/src/ATen/native/native_functions.yaml"),
        ("derivatives.yaml:mul.Tensor", "tools/autograd/derivatives.yaml"),
        ("tools/autograd/derivatives.yaml:mul.Tensor", "tools/autograd/derivatives.yaml"),
    ],
)
def test_yaml(target: str, upstream: str) -> None:
    display = source(target)
    assert display.record is not None
    assert display.record["upstream"] == upstream
    assert re.match(r"- (func|name): mul\.Tensor\(", shown(display.text)[0])


def test_objects_and_their_wrappings_lead_to_the_same_function() -> None:
    import torch

    linear = torch.nn.Linear(1, 1)
    expected = source("torch.nn.Linear.forward").text
    forms = (torch.nn.Linear.forward, linear.forward, functools.partial(linear.forward, 1))
    assert [source(form).text for form in forms] == [expected] * len(forms)
    assert source(torch.optim.SGD.step).text == source("torch.optim.SGD.step").text
    assert source(torch.ops.aten.mul.Tensor).text == source("aten::mul.Tensor").text
    assert source(torch.ops.aten.relu.default).text == source("aten::relu").text


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("torch::autograd::GraphTsk", r"not in the C\+\+ headers.*torch::autograd::GraphTask"),
        ("torch::autograd::Node::next_edg", "did you mean torch::autograd::Node::next_edge"),
        ("torch.autograd.bakward", "torch.autograd has no bakward.*torch.autograd.backward"),
        ("nonexistent_module.f", "there is no module nonexistent_module"),
        ("native_functions.yaml:mull.Tensor", r"did you mean mul\.Tensor"),
        ("native_functions.yaml", "needs an entry"),
        ("engine.h:ReadyQueu", "did you mean torch::autograd::ReadyQueue"),
        ("torch/csrc/autograd/engin.h:Engine", "did you mean torch/csrc/autograd/engine.h"),
        ("torch.autograd:bakward", "bakward is not in torch/autograd/__init__.py; did you mean"),
        ("torch.add", 'is compiled.*"native_functions.yaml:add.Tensor"'),
        ("Node", r"names things in \d headers .*torch::jit::Node.*put the header before it"),
        ("at::vec::Vectorized<float>", "vec512_float.h.*put the header before it"),
        ("", "needs a name"),
        (3, "is an instance of int"),
    ],
)
def test_a_target_that_is_not_there(target: object, message: str) -> None:
    with pytest.raises(BookError, match=message) as caught:
        source(target)
    assert "\n" not in str(caught.value)


def test_the_overload_that_holds_the_text_is_shown() -> None:
    first = source("at::autocast::cached_cast")
    other = source("at::autocast::cached_cast", only=["TensorList"])
    assert first.record is not None
    assert other.record is not None
    assert other.record["defined"] != first.record["defined"]
    assert re.search(r"1 of \d definitions of this name", first.text)


def test_a_text_that_is_gone_names_the_place() -> None:
    with pytest.raises(BookError, match=r"engine\.h \(torch::autograd::ReadyQueue\)"):
        source("torch::autograd::ReadyQueue", start="no such text")


def test_the_hash_does_not_depend_on_what_is_shown() -> None:
    whole = source("torch::autograd::ReadyQueue").record
    part = source("torch::autograd::ReadyQueue", start="CompareNodeTaskTime", end="};").record
    assert whole is not None
    assert part is not None
    assert whole["sha256"] == part["sha256"]
    assert whole["defined"] == part["defined"]
    assert whole["lines"] != part["lines"]


def test_the_permalink_names_the_lines_at_the_commit() -> None:
    facts = torch_facts()
    assert facts is not None
    display = source("torch::autograd::ReadyQueue")
    assert display.record is not None
    first, last = display.record["lines"]
    assert (
        f"https://github.com/pytorch/pytorch/blob/{facts.commit}/torch/csrc/autograd/engine.h"
        f"#L{first}-L{last}"
    ) in display.html
    assert f"view at {facts.commit[:10]}" in display.html


def test_a_generated_file_has_no_permalink() -> None:
    display = source("torch::autograd::generated::MulBackward0")
    assert "github.com" not in display.html
    assert "generated when PyTorch is built" in display.html


def test_html_has_every_line_once_and_nothing_but_the_code_to_copy() -> None:
    display = source("c10::TensorImpl", only=["int64_t numel() const", "Storage storage_;"])
    rows = re.findall(r'data-n="(⋯|\d+)">(.*?)\n</span>', display.html, re.DOTALL)
    plain = [unescape(re.sub(r"<[^>]+>", "", row)) for _, row in rows]
    assert [number for number, _ in rows] == [
        line.split()[0] for line in display.text.split("\n")[1:]
    ]
    assert [row.strip() for row in plain] == [line.strip() for line in shown(display.text)]
    assert "<script" not in display.html


def test_indentation_that_all_lines_share_is_not_shown_on_the_page() -> None:
    display = source("torch.nn.Linear.forward")
    body = re.sub(r"<[^>]+>", "", display.html.split("<pre", 1)[1].split(">", 1)[1])
    assert body.startswith("def forward(")
    assert "\n    return" in body


def test_a_long_excerpt_is_folded_and_a_short_one_is_not() -> None:
    assert "<details>" in source("torch::autograd::Engine").html
    assert "<details>" not in source("torch::autograd::Edge").html


def test_a_long_docstring_is_left_out_unless_asked_for() -> None:
    short, long = source("torch.no_grad"), source("torch.no_grad", docstring=True)
    assert "⋯" in short.text
    assert "⋯" not in long.text
    assert "Example" not in short.text
    assert "Example" in long.text


def test_what_no_wheel_carries_becomes_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTORCH_SRC", raising=False)
    display = source("torch/csrc/autograd/engine.cpp:Engine::execute")
    facts = torch_facts()
    assert facts is not None
    assert "carries no .cpp files" in display.text
    assert f"/blob/{facts.commit}/torch/csrc/autograd/engine.cpp" in display.html
    assert display.record is not None
    assert display.record["lines"] is None
    assert display.record["symbol"] == "Engine::execute"


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, str]:
    file = tmp_path / "torch/csrc/autograd/engine.cpp"
    file.parent.mkdir(parents=True)
    file.write_text(
        "namespace torch::autograd {\n"
        "static int quiet(int a) {\n  return a;\n}\n"
        "auto Engine::execute(int roots) -> int {\n  return quiet(roots);\n}\n"
        "} // namespace torch::autograd\n"
    )
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    return tmp_path, head.stdout.strip()


def test_a_checkout_of_the_commit_shows_the_code(
    checkout: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = checkout
    facts = torch_facts()
    assert facts is not None
    for module in (excerpts, lookup):
        monkeypatch.setattr(module, "torch_facts", lambda: replace(facts, commit=commit))
    monkeypatch.setenv("PYTORCH_SRC", str(folder))
    display = source("torch/csrc/autograd/engine.cpp:Engine::execute")
    assert shown(display.text)[0] == "auto Engine::execute(int roots) -> int {"
    assert display.record is not None
    assert display.record["lines"] == [5, 7]
    assert f"/blob/{commit}/torch/csrc/autograd/engine.cpp#L5-L7" in display.html
    with pytest.raises(BookError, match=r"did you mean torch::autograd::quiet"):
        source("torch/csrc/autograd/engine.cpp:quie")
    with pytest.raises(BookError, match="is not in the checkout"):
        source("torch/csrc/autograd/motor.cpp:Engine::execute")


def test_a_checkout_of_another_commit_is_not_used(
    checkout: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, commit = checkout
    monkeypatch.setenv("PYTORCH_SRC", str(folder))
    text = source("torch/csrc/autograd/engine.cpp:Engine::execute").text
    assert f"PYTORCH_SRC is at {commit[:10]}" in text
    monkeypatch.setenv("PYTORCH_SRC", str(folder / "torch" / "nowhere"))
    assert "is not a git checkout" in source("torch/csrc/autograd/engine.cpp").text


def test_a_warm_excerpt_reads_its_own_file_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = ["c10::StorageImpl", "torch.autograd.backward", "aten::mul.Tensor"]
    for target in targets:
        source(target)
    read: list[Path] = []
    for name in ("read_text", "read_bytes", "open"):
        usual = getattr(Path, name)
        monkeypatch.setattr(
            Path, name, lambda path, *a, f=usual, **k: read.append(path) or f(path, *a, **k)
        )
    for target in targets:
        source(target)
    assert set(read) == {SITE / "torch/autograd/__init__.py"}
