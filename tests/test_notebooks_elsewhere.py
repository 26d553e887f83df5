"""Published notebooks run from top to bottom where only their own first cell installs things."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from built_site import CHAPTERS, ROOT, SITE
from nbclient import NotebookClient

pytestmark = [pytest.mark.site, pytest.mark.slow, pytest.mark.usefixtures("site")]

KERNEL = "elsewhere"


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


@pytest.mark.parametrize("doc", CHAPTERS)
def test_it_runs(
    doc: str, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(elsewhere / "share" / "jupyter"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in [name for name in os.environ if name.startswith("INSIDETORCH_")]:
        monkeypatch.delenv(name)
    for wheel in (SITE / "_static").glob("*.whl"):
        shutil.copy2(wheel, tmp_path)
    notebook = nbformat.read(SITE / "_sources" / f"{doc}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    client = NotebookClient(
        notebook, timeout=600, kernel_name=KERNEL, resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
