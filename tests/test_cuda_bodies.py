"""Each CUDA cell's body runs on a layer of `torch.cuda`, without a GPU: names, arguments, order."""

from __future__ import annotations

import ast
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import jupytext
import pytest

from insidetorch.gpu import cell as cell_code
from insidetorch.processes import environment

ROOT = Path(__file__).parent.parent
CHAPTERS = ["gpu-performance"]
"""Chapters whose cells are driven so; others may be added as their cells pass."""


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
