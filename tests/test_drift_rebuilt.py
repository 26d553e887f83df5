"""The book beside the release that it is written for, with other comments and layout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from insidetorch.drift import lockfile
from insidetorch.drift.book import installed
from insidetorch.drift.compare import compare
from insidetorch.drift.prose import chapters
from insidetorch.drift.report import report
from insidetorch.drift.reread import items
from insidetorch.drift.trees import Tree

ROOT = Path(__file__).parents[1]


def rewritten(files: dict[str, str], folder: Path) -> dict[str, bytes]:
    """Return sources with other comments and another layout: the same code to whoever compiles."""
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.endswith(".py"):
            lines = text.split("\n")
            for node in reversed(ast.parse(text).body):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    lines.insert(node.lineno - 1, "# said of it")
            text = "\n".join(lines)
        elif file.endswith(".yaml"):
            text = re.sub(r"(?m)^- ", "# said of it\n\n- ", text)
        elif file.endswith((".h", ".hpp", ".cuh")):
            text = re.sub(r"(?m)(?<=[\w)];)$", "  // said of it\n", text)
        path.write_text(text)
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "--isolated", "--quiet"]
    subprocess.run([*ruff, "--line-length", "70", str(folder)], check=True)
    return {file: (folder / file).read_bytes() for file in files}


@pytest.mark.slow
def test_comments_and_layout_leave_the_book_as_it_stands(tmp_path: Path) -> None:
    here = installed()
    anchors = lockfile.read(ROOT / lockfile.PLACE).anchors
    files = {one.file: here.text(one.file) or "" for one in anchors if one.file in here.paths}
    new = rewritten(files, tmp_path)
    assert sum(new[file] != text.encode() for file, text in files.items()) > len(files) / 2

    def read(path: str) -> bytes:
        return new[path] if path in new else here.read(path) or b""

    rebuilt = Tree(here.release, here.commit, here.paths, False, read, here.origin)
    prose = chapters(ROOT, {one.chapter for one in anchors})
    findings = compare(anchors, here, rebuilt)
    told = [(one.verdict, one.anchor.target) for one in findings if one.differs]
    assert told == []
    made = report(items(findings, prose), rebuilt.public, here.public)
    assert made.code == 0 and made.sentence.startswith("stands")
