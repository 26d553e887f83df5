"""A base class in C with a subclass in Python behaves as TensorBase and Tensor do."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from types import ModuleType

import pytest
import torch

from insidetorch.errors import BookError
from miniatures.import_torch.base_class import build, package
from miniatures.import_torch.cases import World, outcome, random_bases, torch_world, world

pytestmark = pytest.mark.needs("cc", "Python.h")


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    return build()


@pytest.fixture(scope="module")
def tiny(extension: ModuleType) -> ModuleType:
    return package(extension)


@pytest.fixture(scope="module")
def tiny_world(tiny: ModuleType) -> World:
    return world(tiny.Number)


def test_class_statements_come_out_as_with_tensors(tiny_world: World) -> None:
    """Twenty of them: the chapter compares three hundred."""
    kinds: Counter[str] = Counter()
    ours, theirs = tiny_world, torch_world()
    for seed in range(5000, 5020):
        bases = random_bases(seed)
        mine = outcome(ours, bases)
        assert mine == outcome(theirs, bases), bases
        kinds[mine[1] if isinstance(mine[0], str) else "made"] += 1
    assert len(kinds) > 2


def test_sums_have_the_bits_of_torch(tiny: ModuleType) -> None:
    rng = random.Random(0)
    for _ in range(300):
        a, b = (rng.uniform(-1, 1) * 10 ** rng.randrange(-20, 20) for _ in range(2))
        expected = torch.add(torch.tensor(a), torch.tensor(b)).item()
        assert tiny.add(tiny.Number(a), tiny.Number(b)).number == expected
        assert tiny.Number(a).add(tiny.Number(b)).number == expected


def test_methods_functions_and_results_are_of_the_same_kinds(
    extension: ModuleType, tiny: ModuleType
) -> None:
    base, torch_base = extension.NumberBase, torch.Tensor.__mro__[1]
    assert type(tiny.add) is type(torch.add)
    assert type(vars(base)["add"]) is type(vars(torch_base)["add"])
    assert type(vars(base)["number"]) is type(vars(torch_base)["shape"])
    assert base.__dictoffset__ == torch_base.__dictoffset__ == 0
    assert type(tiny.add(tiny.Number(1), tiny.Number(2))) is tiny.Number
    assert repr(tiny.Number(1).add(tiny.Number(2))) == "number(3)"


def test_the_base_class_makes_no_objects_and_checks_arguments(
    extension: ModuleType, tiny: ModuleType
) -> None:
    with pytest.raises(RuntimeError, match="Cannot directly construct"):
        extension.NumberBase()
    with pytest.raises(TypeError):
        tiny.add(tiny.Number(1), 2)
    with pytest.raises(RuntimeError, match="Cannot subclass"):
        type("Direct", (extension.NumberBase,), {})


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BookError, match="gcc"):
        build()
