"""The citations of the dispatch dump hold: each named line is the registration it is said to be."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from insidetorch.errors import BookError
from insidetorch.private.tables import operator_names
from miniatures.how_to_see_inside import cite as module
from miniatures.how_to_see_inside.cite import (
    DERIVATIVES,
    NATIVE,
    PACKAGED,
    cite,
    entries,
    holds,
    in_tree,
    is_generated,
    lines_of,
    regenerate,
)

SEEDS = range(5)
PER_SEED = 50
NO_ENTRY = {"aten::get_gradients"}  # registered by the distributed library, declared in no table


def operators(seed: int) -> list[str]:
    names = [name for name in operator_names() if name.startswith("aten::")]
    return random.Random(seed).sample([name for name in names if name not in NO_ENTRY], PER_SEED)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return regenerate(tmp_path_factory.mktemp("autograd"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_citation_that_can_be_checked_holds(seed: int, written: dict[str, list[str]]) -> None:
    answers: Counter[bool | None] = Counter()
    for operator in operators(seed):
        for citation in cite(operator):
            answer = holds(citation, written)
            assert answer is not False, citation
            answers[answer] += 1
    assert answers[True] > PER_SEED


@pytest.mark.parametrize("seed", SEEDS)
def test_links_lead_to_the_operators_entry(seed: int) -> None:
    for operator in operators(seed):
        name = operator.partition("::")[2]
        for citation in cite(operator):
            number = int(citation.link.rpartition("#L")[2])
            if not citation.origin:
                assert f"{citation.file}#L{citation.line}" in citation.link
                continue
            line = lines_of(PACKAGED / citation.origin)[number - 1]
            assert f" {name}(" in line or ("autogen:" in line and name in line), citation


@pytest.mark.slow
def test_another_line_or_another_operator_does_not_hold(written: dict[str, list[str]]) -> None:
    (citation,) = [c for c in cite("aten::mul.Tensor") if c.key == "Autograd"]
    assert holds(citation, written)
    assert not holds(replace(citation, line=citation.line + 1), written)
    assert not holds(replace(citation, operator="aten::mul.Tensors"), written)
    assert not holds(replace(citation, operator="aten::mul"), written)


def test_python_registrations_are_read_from_the_installation() -> None:
    found = [c for c in cite("aten::relu") if c.file.endswith(".py")]
    assert found
    assert all(holds(c, {}) for c in found)
    assert not any(holds(replace(c, line=1), {}) for c in found)


def test_hand_written_files_are_checked_where_a_checkout_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (citation,) = [c for c in cite("aten::relu") if c.key == "FuncTorchBatched"]
    assert holds(citation, {}) is None
    module.lines_of.cache_clear()
    copy = tmp_path / citation.file
    copy.parent.mkdir(parents=True)
    copy.write_text("\n" * (citation.line - 1) + "TORCH_LIBRARY_IMPL(aten, FuncTorchBatched, m) {")
    monkeypatch.setenv("PYTORCH_SRC", str(tmp_path))
    assert holds(citation, {}) is True
    assert holds(replace(citation, line=1), {}) is False


def test_paths_are_found_below_any_root() -> None:
    assert in_tree("/__w/pytorch/pytorch/build/aten/src/ATen/RegisterCPU_0.cpp") == (
        "build/aten/src/ATen/RegisterCPU_0.cpp"
    )
    assert in_tree("/home/pytorch/torch/csrc/Module.cpp") == "torch/csrc/Module.cpp"
    assert in_tree("/opt/lib/site-packages/torch/library.py") == "torch/library.py"
    with pytest.raises(BookError, match="no folder of PyTorch"):
        in_tree("/dev/null")


def test_generated_files_are_told_from_written_ones() -> None:
    assert is_generated("build/aten/src/ATen/RegisterSchema.cpp")
    assert is_generated("torch/csrc/autograd/generated/VariableType_0.cpp")
    assert not is_generated("torch/csrc/autograd/VariableTypeManual.cpp")


def test_tables_know_the_operators_they_declare() -> None:
    assert len(entries(NATIVE)) > 3000
    assert "mul.Tensor" in entries(DERIVATIVES)
    assert "add.Scalar_out" in entries(NATIVE)  # listed by another entry
    with pytest.raises(BookError, match="has no entry"):
        module.table_entry("aten::no_such_operator")


@pytest.mark.slow
def test_registrations_for_backends_are_where_the_dump_says(tmp_path: Path) -> None:
    for folder in ("core", "ops"):
        (tmp_path / folder).mkdir()
    command = [sys.executable, "-m", "torchgen.gen", "-s", str(PACKAGED / "ATen"), "-d"]
    command += [str(tmp_path), "--generate", "sources", "--per-operator-headers"]
    command += ["--aoti-install-dir", str(tmp_path / "aoti")]
    command += ["--headeronly-install-dir", str(tmp_path / "headeronly")]
    subprocess.run(command, check=True, capture_output=True)
    files = {file.name: lines_of(file) for file in tmp_path.glob("Register*.cpp")}
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        for operator in operators(seed):
            for citation in cite(operator):
                if Path(citation.file).name in files:
                    assert holds(citation, files), citation
                    seen[citation.key] += 1
    assert seen["debug"] == PER_SEED * len(SEEDS)
    assert seen["CPU"] > 20
