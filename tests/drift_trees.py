"""A small copy of the installed torch, anchors over it, and seeded mutations of it."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from insidetorch.drift.anchors import DIGITS, Anchor, api
from insidetorch.drift.definitions import OPERATORS, definitions, names
from insidetorch.drift.trees import Tree, open_folder
from insidetorch.facts import torch_facts
from insidetorch.locate.headers import without_guard
from insidetorch.locate.yamls import FILES

_CSRC = "torch/include/torch/csrc/autograd"
PYTHON = (
    "torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/autograd/function.py",
    "torch/autograd/grad_mode.py", "torch/_tensor.py", "torch/nn/modules/linear.py",
    "torch/optim/sgd.py", "torch/utils/checkpoint.py",
)  # fmt: skip
HEADERS = (
    f"{_CSRC}/engine.h", f"{_CSRC}/graph_task.h", f"{_CSRC}/saved_variable.h",
    f"{_CSRC}/functions/accumulate_grad.h", f"{_CSRC}/node.h",
    "torch/include/c10/core/StorageImpl.h", "torch/include/c10/core/Storage.h",
    "torch/include/c10/core/DispatchKeySet.h", "torch/include/ATen/core/dispatch/Dispatcher.h",
)  # fmt: skip
YAML = (OPERATORS, FILES["derivatives.yaml"])
_PACKAGES = (
    "torch/version.py", "torch/__init__.py", "torch/nn/__init__.py", "torch/nn/modules/__init__.py",
    "torch/optim/__init__.py", "torch/utils/__init__.py", "torch/functional.py",
    "torch/_C/__init__.pyi", "torch/_C/_VariableFunctions.pyi",
)  # fmt: skip
_APIS = (
    "torch.autograd.backward", "torch.autograd.grad", "torch.Tensor.backward", "torch.Tensor.sum",
    "torch.nn.Linear", "torch.optim.SGD", "torch.utils.checkpoint.checkpoint", "torch.mul",
    "torch.autograd.graph.saved_tensors_hooks", "torch.matmul", "torch.no_grad", "torch.tensor",
)  # fmt: skip
DOC = "notebooks/sample"


def copy(folder: Path) -> Tree:
    """Copy the sample's files of the installed torch into `folder` and return them as a tree."""
    facts = torch_facts()
    assert facts is not None
    for name in (*PYTHON, *HEADERS, *YAML, *_PACKAGES):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(facts.root.parent / name, target)
    return open_folder(folder)


def anchors(tree: Tree) -> list[Anchor]:
    """Return anchors over the sample: definitions unique in their files, and some APIs."""
    found: list[Anchor] = []
    for file in (*PYTHON, *HEADERS):
        found += [a for name in names(tree, file) if (a := _excerpt(tree, file, name))]
    for file in YAML:
        found += [a for name in entries(tree, file) if (a := _excerpt(tree, file, name))]
    found += [a for name in _APIS if (a := api(DOC, name, (1,), tree))]
    return found


def entries(tree: Tree, file: str) -> list[str]:
    """Return the entries of a YAML file that have anchors: some of its thousands."""
    return random.Random(file).sample(names(tree, file), 80)


def _excerpt(tree: Tree, file: str, name: str) -> Anchor | None:
    there = [one for one in definitions(tree, file, name) if one.body]
    if len(there) != 1:
        return None
    what = there[0].definition
    lines = (what.first, what.last)
    sha256 = there[0].sha256[:DIGITS]
    return Anchor(DOC, "excerpt", f"{file}:{name}", (1,), file, name, lines, (lines,), sha256,
                  what.signature)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """One change of one file.

    :param kind: what was done.
    :param file: where.
    :param symbol: the definition it was done to.
    :param touched: first and last line, in the unchanged file, of what was changed.
    :param text: the file after it, as PyTorch's tree has it.
    :param neutral: whether the meaning is as before.
    :param also: another file that changed with it, its text, and the lines touched there.
    :param swapped: a line that was swapped with the first touched one; a definition of that one
        line has moved, and is not changed.
    """

    kind: str
    file: str
    symbol: str
    touched: tuple[int, int]
    text: str
    neutral: bool = False
    also: tuple[str, str, tuple[int, int]] | None = None
    swapped: int = 0


def apply(mutation: Mutation, source: Path, target: Path) -> Tree:
    """Return the sample with one mutation, linked from `source` except for what changed."""
    shutil.copytree(source, target, copy_function=lambda a, b: Path(b).hardlink_to(a))
    changed = [(mutation.file, mutation.text)]
    changed += [mutation.also[:2]] if mutation.also else []
    for file, text in changed:
        path = target / file
        old = path.read_bytes()
        bare = without_guard(old)
        start = old.index(bare)
        path.unlink()
        path.write_bytes(old[:start] + text.encode() + old[start + len(bare) :])
    return open_folder(target)


def touches(mutation: Mutation, anchor: Anchor) -> bool:
    """Tell, from lines alone, whether a mutation changes what an anchor stands for."""
    if mutation.neutral:
        return False
    places = [(mutation.file, mutation.touched)]
    places += [(mutation.also[0], mutation.also[2])] if mutation.also else []
    if anchor.kind == "api" and anchor.file == OPERATORS:
        same = mutation.symbol.split(".")[0] == anchor.symbol
        return mutation.file in YAML and same
    if anchor.file == OPERATORS and mutation.file == FILES["derivatives.yaml"]:
        return mutation.symbol == anchor.symbol  # the derivative of what the excerpt shows
    if mutation.swapped:
        places.append((mutation.file, (mutation.swapped, mutation.swapped)))
        if anchor.lines[0] == anchor.lines[1]:
            return False
    return any(
        file == anchor.file and first <= anchor.lines[1] and anchor.lines[0] <= last
        for file, (first, last) in places
    )
