"""What chapters rest on through the book's own modules, and the options that they set."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from test_drift_meaning import tree

from insidetorch.book.project import open_project
from insidetorch.drift.apis import named_apis
from insidetorch.drift.book import TOOLKIT, Book, anchors_now
from insidetorch.drift.compare import compare
from insidetorch.drift.trees import Tree
from insidetorch.drift.used_by_modules import options, reached

TORCH = {
    "torch/__init__.py": "def one(): ...\ndef two(): ...\ndef three(): ...\n",
    "torch/version.py": "__version__ = '1.0'\n",
    "torch/_inner.py": "def hidden(): return 1\ndef deeper(): ...\ndef quiet(): ...\n",
    "torch/_dynamo/__init__.py": "from . import config\n",
    "torch/_dynamo/config.py": "recompile_limit = 8\nclass cpp:\n    threads = 1\n_private = 2\n",
}
MODULES = {
    "parts/a.py": """
        import torch
        from parts import c
        from torch._inner import hidden
        def helper(): hidden(); torch.two()
    """,
    "parts/b.py": "from torch._inner import quiet\n",
    "parts/c/__init__.py": "from .inner import x\nfrom ..d import y\n",
    "parts/c/inner.py": "import torch._inner\nx = torch._inner.deeper\n",
    "parts/d.py": "y = 1\n",
    "parts/settings.py": """
        import torch._dynamo as dynamo
        settings = dynamo.config.patch
        def setting(name): return getattr(dynamo.config, name)
    """,
    "insidetorch/__init__.py": """
        _HOME = {"shown": "deep.shows"}
        def __getattr__(name): return _HOME[name]
    """,
    "insidetorch/deep/shows.py": "import torch\ndef shown(): torch.three()\n",
    "insidetorch/names.py": 'A = Name("torch._inner.quiet", ())\n',
    "insidetorch/build.py": "import torch\ntorch.one()\n",
}
CELLS = (
    "import torch\ntorch.one()",
    "from parts.a import helper\nfrom insidetorch import shown\n"
    "from parts.settings import settings",
    "with settings(recompile_limit=3, cpp__threads=2, unknown=1): helper()",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fence = "```{code-cell}\n%s\n```\n"
    front = (
        "---\njupytext: {text_representation: {format_name: myst}}\n"
        "kernelspec: {name: python3, display_name: Python 3}\n---\n# A\n"
    )
    files = {
        **MODULES, "_config.yml": "title: A\n", "_toc.yml": "format: jb-book\nroot: a\n",
        "a.md": front + "".join(fence % cell for cell in CELLS),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


@pytest.fixture(scope="module")
def torch() -> Tree:
    return tree(TORCH)


def test_modules_are_followed_through_imports(root: Path) -> None:
    found = {path.relative_to(root).as_posix() for path in reached(CELLS, root)}
    assert found == {
        "parts/a.py", "parts/c/__init__.py", "parts/c/inner.py", "parts/d.py", "parts/settings.py",
        "insidetorch/__init__.py", "insidetorch/deep/shows.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("settings(recompile_limit=3)", {"recompile_limit"}),
        ("with settings(cpp__threads=3): ...", {"cpp.threads"}),
        ("settings(recompile_limit=3, other=2)", {"recompile_limit"}),
        ("from parts.settings import setting as ask\nask('recompile_limit')", {"recompile_limit"}),
        ("import parts.settings as p\np.settings(recompile_limit=3)", {"recompile_limit"}),
        ("other(recompile_limit=3)", set()),
        ("from parts.d import y\ny(recompile_limit=3)", set()),
    ],
)
def test_options_are_known_through_a_helper(
    root: Path, torch: Tree, cell: str, found: set[str]
) -> None:
    cells = ["from parts.settings import settings", cell]
    wanted = {f"torch._dynamo.config.{name}": [2] for name in found}
    assert options(cells, root, torch) == wanted


@pytest.mark.parametrize(
    "cell",
    [
        "torch._dynamo.config.recompile_limit = 3",
        "with torch._dynamo.config.patch(recompile_limit=3): ...",
        "with torch._dynamo.config.patch('recompile_limit', 3): ...",
        "config.patch(recompile_limit=3)",
        "config.patch({'recompile_limit': 3})",
    ],
)
def test_options_that_a_cell_sets_itself_are_known(root: Path, torch: Tree, cell: str) -> None:
    cells = ["import torch, torch._dynamo\nfrom torch._dynamo import config", cell]
    found = {**named_apis(cells, torch), **options(cells, root, torch)}
    assert found["torch._dynamo.config.recompile_limit"] == [2]


def test_what_modules_name_is_anchored_where_it_is_reached(root: Path, torch: Tree) -> None:
    entry: dict[str, Any] = {
        "doc": "a",
        "title": "A",
        "key": "",
        "status": "ok",
        "error": None,
        "records": [],
    }
    ledger = {"torch": torch.release, "chapters": [entry]}
    anchors = anchors_now(Book(open_project(root)), ledger, torch)
    found = {(anchor.chapter, anchor.target): anchor.cells for anchor in anchors}
    assert found == {
        ("a", "torch.one"): (1,), ("a", "torch.two"): (), ("a", "torch._inner"): (),
        ("a", "torch._inner.hidden"): (), ("a", "torch._inner.deeper"): (),
        ("a", "torch._dynamo"): (), ("a", "torch._dynamo.config.recompile_limit"): (3,),
        ("a", "torch._dynamo.config.cpp.threads"): (3,),
        (TOOLKIT, "torch.three"): (), (TOOLKIT, "torch._inner.quiet"): (),
    }  # fmt: skip
    now = {**TORCH, "torch/_dynamo/config.py": TORCH["torch/_dynamo/config.py"].replace("8", "9")}
    now["torch/_inner.py"] = now["torch/_inner.py"].replace("return 1", "return 2")
    listed = [f for f in compare(anchors, torch, tree(now, "2.0")) if f.differs]
    assert {f.anchor.target for f in listed} == {
        "torch._inner.hidden", "torch._dynamo.config.recompile_limit",
    }  # fmt: skip
