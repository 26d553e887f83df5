"""Each CUDA cell's body runs on a layer of `torch.cuda`, without a GPU: names, arguments, order."""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import jupytext
import pytest
import torch

from insidetorch.gpu import cell as cell_code
from insidetorch.processes import environment

ROOT = Path(__file__).parent.parent
CHAPTERS = ["gpu-performance"]
"""Chapters whose cells are driven so; others may be added as their cells pass."""
WITH_CELLS = [path for path in sorted((ROOT / "notebooks").glob("*.md"))
              if "\n%%cuda " in path.read_text(encoding="utf-8")]  # fmt: skip


def drive(chapter: str) -> list[str]:
    """Run the bodies of a chapter's CUDA cells on the layer, with what they need of other cells.

    :return: the names of the cells.
    """
    import cuda_layer

    import insidetorch.display  # noqa: F401

    sources = [
        cell.source
        for cell in jupytext.read(ROOT / "notebooks" / f"{chapter}.md").cells
        if cell.cell_type == "code"
    ]
    parsed = [cell_code.split(source) for source in sources]
    trees = [
        cell_code.parse(parts[1] if parts else source)
        for parts, source in zip(parsed, sources, strict=True)
    ]
    needed: set[str] = set()
    for at, parts in enumerate(parsed):
        if parts:
            pool = [part for tree in trees[:at] if tree for part in tree.body]
            found = cell_code._needed(cell_code._used(trees[at]), pool)
            needed |= {ast.unparse(part) for part in found}
    mode, names, ran = cuda_layer.install(), {"__name__": "__main__", "display": print}, []
    for at, (parts, tree) in enumerate(zip(parsed, trees, strict=True)):
        assert tree is not None
        body = [tree] if parts else [
            ast.Module([part], [])
            for whole in tree.body for part, _ in cell_code._bindings(whole)
            if ast.unparse(part) in needed
        ]  # fmt: skip
        with mode if parts else nullcontext():
            for part in body:
                code = compile(ast.fix_missing_locations(part), f"<cell {at + 1}>", "exec")
                # A statement that binds a name which the cell means otherwise may fail.
                with nullcontext() if parts else suppress(Exception):
                    exec(code, names)
        if parts:
            ran.append(cell_code.label(parts[0]).name)
    return ran


def named(node: ast.AST) -> str:
    """Return ``torch.cuda.stream`` for such a chain of names, and an empty text for the rest."""
    if isinstance(node, ast.Attribute) and (owner := named(node.value)):
        return f"{owner}.{node.attr}"
    return node.id if isinstance(node, ast.Name) and node.id == "torch" else ""


def faults(body: str, known: set[str]) -> list[str]:
    """Return what a GPU would stumble over in a CUDA cell, as far as names alone can tell.

    :param known: the names that earlier cells of the chapter bind.
    """
    tree, found = cell_code.parse(body), []
    assert tree is not None
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | cell_code._bound(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in known | own | set(dir(builtins)):
            found.append(f"no name {node.id}")
        call = isinstance(node, ast.Call)
        name = named(node.func if call else node)
        try:
            meant = eval(name, {"torch": torch}) if name else None
        except AttributeError as error:
            found.append(f"{name}: {error}")
            continue
        if call and name.startswith("torch.") and not any(
            isinstance(arg, ast.Starred) for arg in node.args
        ) and all(keyword.arg for keyword in node.keywords):  # fmt: skip
            with suppress(ValueError):  # a function of C++ tells no signature
                signature = inspect.signature(meant)
                try:
                    signature.bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
                except TypeError as error:
                    found.append(f"{name}: {error}")
    return list(dict.fromkeys(found))


def bodies(chapter: Path) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the name, the body, and the names bound before it, of a chapter's CUDA cells."""
    known = {"display", "get_ipython", "__name__"}
    for cell in jupytext.read(chapter).cells:
        if cell.cell_type == "code":
            parts = cell_code.split(cell.source)
            tree = cell_code.parse(parts[1] if parts else cell.source)
            assert tree is not None
            if parts:
                yield cell_code.label(parts[0]).name, parts[1], set(known)
            known |= {name for part in tree.body for _, bound in cell_code._bindings(part)
                      for name in bound}  # fmt: skip


@pytest.mark.parametrize("chapter", WITH_CELLS, ids=lambda path: path.stem)
def test_the_names_in_cuda_cells_exist_and_take_what_they_are_given(chapter: Path) -> None:
    seen = list(bodies(chapter))
    assert seen
    for name, body, known in seen:
        assert not faults(body, known), name


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("torch.cuda.memory_allocatd()", "memory_allocatd"),
        ("torch.cuda.synchronize(0, 1)", "too many positional"),
        ("with torch.cuda.graph(torch.cuda.CUDAGraph(), pol=1):\n    pass", "pol"),
        ("x = y", "no name y"),
    ],
)
def test_a_wrong_name_or_argument_is_found(body: str, said: str) -> None:
    (fault,) = faults(body, {"torch"})
    assert said in fault


def run(chapter: str) -> subprocess.CompletedProcess[str]:
    code = f"import test_cuda_bodies as t; print('RAN', *t.drive({chapter!r}))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
        env=environment(ROOT, ROOT / "tests", OMP_NUM_THREADS="1"),
    )  # fmt: skip


@pytest.mark.weekly
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_bodies_of_cuda_cells_run_on_the_layer(chapter: str) -> None:
    done = run(chapter)
    assert done.returncode == 0, done.stderr[-3000:]
    text = (ROOT / "notebooks" / f"{chapter}.md").read_text(encoding="utf-8")
    count = sum(line.startswith("%%cuda ") for line in text.splitlines())
    assert len(done.stdout.splitlines()[-1].split()) == 1 + count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("torch.cuda.memory_allocatd()", "memory_allocatd"),
        ("torch.cuda.synchronize(0, 1)", "too many positional"),
        ("torch.cuda.get_device_properties(0).memory", "memory"),
        ("torch.cuda.Event().elapsed_time(torch.cuda.Event())", "enable_timing"),
        ("torch.ones(2, device='cuda') + torch.ones(2)", "device"),
        ("g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g):\n    torch.ones(1, device='cuda')"
         ".item()", "capturing"),
        ("torch.compile(len, mod='x')", "mod"),
    ],
)  # fmt: skip
def test_the_layer_catches_what_a_gpu_would_refuse(body: str, said: str) -> None:
    code = f"import cuda_layer, torch\nwith cuda_layer.install():\n    exec({body!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
        env=environment(ROOT, ROOT / "tests", OMP_NUM_THREADS="1"),
    )  # fmt: skip
    assert done.returncode and said in done.stderr.splitlines()[-1], done.stderr
