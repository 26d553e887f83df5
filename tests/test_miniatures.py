"""The folder of a chapter: its mechanism within a stated number of lines, and the rest by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from built_site import ROOT

BUDGET = 150
APART = re.compile(r"__init__|(watch|cases|draw|record)\w*")
_MECHANISM = re.compile(
    r"^Mechanism: ([\w, ]+)\.(?:\n    (\d+) lines, since [^.]+\.)?$", re.MULTILINE
)
FOLDERS = sorted(path.parent for path in ROOT.glob("miniatures/*/__init__.py"))


def mechanisms(folder: Path) -> list[tuple[list[str], int]]:
    """Return the modules of each mechanism of a folder, with the lines that they may have."""
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    return [
        (found[1].split(", "), int(found[2] or BUDGET)) for found in _MECHANISM.finditer(said or "")
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_mechanism_can_be_held_in_the_head(folder: Path) -> None:
    for modules, most in mechanisms(folder):
        files = [folder / f"{module}.py" for module in modules]
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        assert lines <= most, f"{', '.join(modules)}: {lines} lines"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_no_mechanism_says_so_by_its_name(folder: Path) -> None:
    named = {module for modules, _ in mechanisms(folder) for module in modules}
    others = {file.stem for file in folder.glob("*.py")} - named
    assert {name for name in others if not APART.fullmatch(name)} == (
        {"programs"} if folder.name == "cpp_for_readers" else set()
    )
