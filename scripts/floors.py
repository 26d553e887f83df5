"""Draw the floors of the toolkit from its imports, in the picture that CONTRIBUTING.md shows.

``python scripts/floors.py`` writes the picture again; a test holds it to the imports.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
PACKAGE = "insidetorch"
_PICTURE = re.compile(r"(?<=```mermaid\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def floors() -> list[list[str]]:
    """Return the rooms of each floor, the highest first, as pyproject.toml orders them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def arrows() -> set[tuple[str, str]]:
    """Return which room imports from which."""
    graph = grimp.build_graph(PACKAGE)
    rooms = {room for floor in floors() for room in floor}
    found = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = tuple(name.split(".")[1] for name in (module, other) if "." in name)
            if len(pair) == 2 and pair[0] != pair[1] and rooms.issuperset(pair):
                found.add((pair[0], pair[1]))
    return found


def told_once(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Leave out an arrow where a way over other rooms leads to the same place."""

    def reached(room: str) -> set[str]:
        return {other for start, end in pairs if start == room for other in {end, *reached(end)}}

    around = {(room, far) for room, near in pairs for far in reached(near)}
    return pairs - around


def picture() -> str:
    """Return the picture in Mermaid's language."""
    lines = ["flowchart TD"]
    for number, floor in enumerate(floors()):
        lines.append(f'  subgraph floor{number}[" "]')
        lines += [f"    {room}" for room in floor]
        lines.append("  end")
    lines += [f"  {room} --> {other}" for room, other in sorted(told_once(arrows()))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_PICTURE.sub(lambda _: picture(), page), encoding="utf-8")
