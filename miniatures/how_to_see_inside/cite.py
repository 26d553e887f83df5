"""From an operator's name to the lines of PyTorch's source that put its kernels in the table."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import torchgen

from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.locate.paths import permalink
from insidetorch.private.tables import dispatch_dump

SITE = Path(torchgen.__file__).parent.parent
PACKAGED = SITE / "torchgen/packaged"
NATIVE = "ATen/native/native_functions.yaml"
DERIVATIVES = "autograd/derivatives.yaml"
REPOSITORY = {NATIVE: f"aten/src/{NATIVE}", DERIVATIVES: f"tools/{DERIVATIVES}"}
REGISTERED = re.compile(
    r"^(?P<key>\w+)(?:\[alias\])?(?P<old> \(inactive\))?: (?:fallthrough )?"
    r"registered at (?P<path>\S+):(?P<line>\d+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Citation:
    """Where one kernel of an operator was put into the table.

    :param key: the dispatch key it serves; ``debug`` is the operator's declaration.
    :param active: false if a later registration for the same key replaced it.
    :param file: path in PyTorch's tree; of generated code, where the build puts it.
    :param line: the line that opens the block of registrations.
    :param origin: the table that the file was generated from; empty if a person wrote it.
    :param link: the line, or the operator's entry in the table, at the commit of this release.
    """

    operator: str
    key: str
    active: bool
    file: str
    line: int
    origin: str
    link: str


def cite(operator: str) -> list[Citation]:
    """Return the citations of an operator such as ``aten::mul.Tensor``, in the dump's order."""
    found = REGISTERED.finditer(dispatch_dump(operator))
    return [_citation(operator, match) for match in found]


def _citation(operator: str, match: re.Match[str]) -> Citation:
    file, line = in_tree(match["path"]), int(match["line"])
    origin, place, at = "", file, line
    if is_generated(file):
        origin, at = table_entry(operator, autograd="VariableType" in file)
        place = REPOSITORY[origin]
    facts = torch_facts()
    link = permalink(place, facts.commit if facts else "main", at)
    return Citation(operator, match["key"], not match["old"], file, line, origin, link)


def in_tree(path: str) -> str:
    """Return a path of the machine that built the release, or of this one, in PyTorch's tree."""
    found = re.search(r"(?:^|/)((?:build/)?aten/src/.*|torch/.*)$", path.split("-packages/")[-1])
    if found is None:
        raise BookError(f"{path} is in no folder of PyTorch: name an operator of PyTorch itself.")
    return found[1]


def is_generated(file: str) -> bool:
    """Tell whether the build writes this file, so that no repository has it."""
    return file.startswith("build/") or "/generated/" in file


def table_entry(operator: str, autograd: bool = False) -> tuple[str, int]:
    """Return the table that declares an operator, and the line of its entry.

    :param autograd: prefer the table of derivatives, if it has the operator.
    """
    name = operator.partition("::")[2]
    for table in [DERIVATIVES, NATIVE] if autograd else [NATIVE]:
        if name in entries(table):
            return table, entries(table)[name]
    raise BookError(f"{operator} has no entry in {NATIVE}: name an operator of namespace aten.")


@cache
def entries(table: str) -> dict[str, int]:
    """Return the line of each operator's entry in a table.

    Variants that the generator adds have no entry of their own; another entry lists them.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(lines_of(PACKAGED / table), start=1):
        if entry := re.match(r"- (?:func|name): ([\w.]+)\(", line):
            found[entry[1]] = number
        elif line.startswith("  autogen:"):
            names = re.findall(r"[\w.]+", line.partition(":")[2])
            found.update((name, number) for name in names if name not in found)
    return found


@cache
def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of the installation."""
    return path.read_text(encoding="utf-8").splitlines()


def regenerate(folder: Path) -> dict[str, list[str]]:
    """Write autograd's registrations again from the wheel; return the lines of each file by name.

    What PyTorch's build runs: the templates and tables are in the wheel beside the generator.
    """
    selective = import_module("torchgen.selective_build.selector").SelectiveBuilder
    import_module("torchgen.packaged.autograd.gen_autograd").gen_autograd(
        str(PACKAGED / NATIVE),
        str(PACKAGED / "ATen/native/tags.yaml"),
        str(folder),
        str(PACKAGED / "autograd"),
        selective.get_nop_selector(),
    )
    return {file.name: file.read_text().splitlines() for file in folder.glob("*.cpp")}


def holds(citation: Citation, regenerated: dict[str, list[str]]) -> bool | None:
    """Check a citation's line; None where its file is not on this machine."""
    written = regenerated.get(Path(citation.file).name)
    if written is None:
        roots = [SITE, Path(os.environ.get("PYTORCH_SRC") or SITE)]
        places = [root / citation.file for root in roots]
        there = [place for place in places if place.is_file()]
        if not there:
            return None
        statement = "".join(lines_of(there[0])[citation.line - 1 :][:4])
        return "Library(" in statement or "TORCH_LIBRARY" in statement
    block = takewhile(lambda line: not line.startswith("}"), written[citation.line :])
    name = re.escape(citation.operator.partition("::")[2])
    call = re.compile(rf'"(?:aten::)?{name}["(]')
    opened = written[citation.line - 1].startswith("TORCH_LIBRARY")
    return opened and any(call.search(line) for line in block)
