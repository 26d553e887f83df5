"""JupyterLab in which a double click on a chapter opens it as a notebook."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def settings(prefix: Path) -> Path:
    """Write the setting into the environment at `prefix`, nowhere else; return the file."""
    path = prefix / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    viewers = dict.fromkeys(("markdown", "myst"), "Jupytext Notebook")
    plugin = "@jupyterlab/docmanager-extension:plugin"
    path.write_text(json.dumps({plugin: {"defaultViewers": viewers}}, indent=1), encoding="utf-8")
    return path


def start(root: Path, arguments: list[str]) -> None:
    """Replace this process by JupyterLab in the notebooks' folder."""
    settings(Path(sys.prefix))
    os.chdir(root)
    command = [sys.executable, "-m", "jupyterlab", *arguments]
    os.execv(sys.executable, command)
