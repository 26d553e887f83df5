"""Downloaded chapters run from top to bottom where only their own first cell installs things.

They are walked as the landing page says. Two that the commit draws are executed, and those that
changed; with ``--weekly``, all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nbformat
import pytest
from built_site import CHAPTERS, ROOT, SITE
from nbclient import NotebookClient
from published import (
    Wheel,
    brought,
    changed,
    chosen,
    code_of,
    git,
    imports,
    strangers,
    takes,
    unresolved,
)

from insidetorch.book.address import Address

on_the_site = pytest.mark.usefixtures("site")

KERNEL = "elsewhere"
COMMIT = "".join(git(ROOT, "rev-parse", "HEAD"))
CHOSEN = chosen(CHAPTERS, COMMIT, changed(ROOT), ROOT)


@pytest.fixture(scope="module")
def wheel(site: Path) -> Wheel:
    (file,) = (site / "_static").glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        return {
            name: archive.read(name).decode() if name.endswith((".py", "/METADATA")) else ""
            for name in archive.namelist()
        }


@pytest.fixture(scope="module")
def distributions(wheel: Wheel) -> set[str]:
    """Return what the wheel brings along, beside what a kernel has."""
    about = next(text for name, text in wheel.items() if name.endswith("/METADATA"))
    needs = [line[15:] for line in about.splitlines() if line.startswith("Requires-Dist: ")]
    assert needs
    return brought([*needs, "ipykernel"])


@pytest.mark.site
@on_the_site
@pytest.mark.parametrize("doc", CHAPTERS)
def test_what_it_imports_comes_with_the_wheel(
    doc: str, wheel: Wheel, distributions: set[str]
) -> None:
    text = (SITE / "_sources" / f"{doc}.ipynb").read_text(encoding="utf-8")
    code = code_of(nbformat.v4.reads(text).cells)
    assert "insidetorch" in {module for module, _ in imports(code)}
    assert unresolved(code, wheel) == []
    assert strangers(code, {"insidetorch", "miniatures"}, distributions) == []


@pytest.mark.site
@on_the_site
def test_the_modules_of_the_wheel_find_each_other(wheel: Wheel) -> None:
    lacking = {name: unresolved(text, wheel) for name, text in wheel.items() if name[-3:] == ".py"}
    assert len(lacking) > 50
    assert {name: what for name, what in lacking.items() if what} == {}


def test_an_import_that_does_not_resolve_is_told() -> None:
    small = {
        "a/__init__.py": "from a.b import one",
        "a/b.py": "def one(): pass\nTWO = 2",
        "a/c": "",
    }
    assert unresolved("import a, a.b\nfrom a import one, b\nfrom a.b import TWO", small) == []
    code = "import os, a.d\nfrom a import two\nfrom a.b import three\nfrom a.e import x"
    assert unresolved(code, small) == ["a.d", "a.two", "a.b.three", "a.e"]
    asked = {"a/__init__.py": "def __getattr__(name): return 1"}
    assert unresolved("from a import anything", asked) == []
    assert code_of([{"cell_type": "code", "source": "%pip install x\n1\n%%time"}]).strip() == "1"
    code = "import os, torch, pytest\ntry:\n    import triton\nexcept ImportError: pass"
    assert strangers(code, {"a"}, brought(["torch"])) == ["pytest"]


def test_what_changed_is_chosen_and_two_more(tmp_path: Path) -> None:
    docs = [f"notebooks/{name}" for name in "abcdefgh"]
    for doc in docs:
        path = tmp_path / f"{doc}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("from miniatures.small import one\n" if doc[-1] in "ab" else "text\n")
    drawn = chosen(docs, "0f", [], tmp_path)
    assert len(drawn) == 2 and drawn == chosen(docs, "0f", [], tmp_path)
    assert any(chosen(docs, commit, [], tmp_path) != drawn for commit in "abcd")
    more = ["notebooks/c.md", "miniatures/small.py", "insidetorch/cli.py"]
    assert chosen(docs, "0f", more, tmp_path) == drawn | {f"notebooks/{n}" for n in "abc"}
    assert takes("from miniatures import small, other", "miniatures/small.py")
    assert takes("import miniatures.x.small as s", "miniatures/x/small.py")
    assert not takes("from miniatures.smaller import one", "miniatures/small.py")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a Python that has a kernel and nothing else."""
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", "ipykernel"], check=True)
    command = [python, "-m", "ipykernel", "install", "--prefix", folder, "--name", KERNEL]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def each(docs: list[str]) -> list[object]:
    weekly = pytest.mark.weekly
    return [doc if doc in CHOSEN else pytest.param(doc, marks=weekly) for doc in docs]


@pytest.mark.site
@pytest.mark.slow
@on_the_site
@pytest.mark.parametrize("doc", each(CHAPTERS))
def test_it_runs(
    doc: str, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(elsewhere / "share" / "jupyter"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in [name for name in os.environ if name.startswith("INSIDETORCH_")]:
        monkeypatch.delenv(name)
    with zipfile.ZipFile(SITE / "_sources" / f"{doc}.zip") as archive:
        archive.extractall(tmp_path)
    (path,) = tmp_path.glob("*/*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent)


@pytest.mark.site
@pytest.mark.slow
@on_the_site
def test_a_notebook_alone_fetches_the_toolkit_from_the_site(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chapter's start, on a site that has an address and is below a path."""
    monkeypatch.setenv("JUPYTER_PATH", str(elsewhere / "share" / "jupyter"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    notebook = nbformat.read(SITE / "_sources" / f"{CHAPTERS[0]}.ipynb", as_version=4)
    install = next(cell for cell in notebook.cells if cell.id == "install")
    with served(SITE.parent) as address:
        known = Address(site=f"{address}/{SITE.name}")
        (wheel,) = (SITE / "_static").glob("*.whl")
        beside, fetched = (one.wheel(wheel.name) for one in (Address(), known))
        assert beside in install.source or known.site in install.source
        install.source = install.source.replace(beside, fetched)
        notebook.cells = [*notebook.cells[:8], nbformat.v4.new_code_cell("import insidetorch")]
        run(notebook, tmp_path)
    said = "".join(output.get("text", "") for output in install.outputs)
    assert said.endswith(f"{wheel.name.split('-')[1]} are here.\n")


def run(notebook: Any, folder: Path) -> None:
    """Execute all cells in the environment elsewhere."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    client = NotebookClient(
        notebook, timeout=600, kernel_name=KERNEL, resources={"metadata": {"path": folder}}
    )
    client.execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder; give its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
