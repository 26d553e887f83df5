"""The installed PyTorch as a tree of folders, measured in lines of Python and C++ headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SUFFIXES = frozenset({".py", ".pyi", ".h", ".hpp", ".cuh"})
HEADERS = "torch/include"

# Where the folders of the repository went in the wheel; the first prefix that fits wins.
_INSTALLED = (
    ("aten/src/", "torch/include/"),
    ("c10/", "torch/include/c10/"),
    ("caffe2/", "torch/include/caffe2/"),
    ("torch/csrc/", "torch/include/torch/csrc/"),
    ("torch/headeronly/", "torch/include/torch/headeronly/"),
    ("torchgen/", "torchgen/"),
    ("torch/", "torch/"),
)


@dataclass(frozen=True)
class Area:
    """A folder on the map.

    :param path: as installed, below ``site-packages``, e.g. ``torch/include/c10``.
    :param lines: lines of the files it stands for, with those of the areas inside it.
    :param whole: False if it stands for what is left of a folder whose larger folders have areas.
    :param inside: the areas it is split into, largest first; empty if it is not split.
    """

    path: str
    lines: int
    whole: bool = True
    inside: tuple[Area, ...] = ()

    def leaves(self) -> list[Area]:
        """Return the areas that are not split, largest first."""
        if not self.inside:
            return [self]
        found = [leaf for area in self.inside for leaf in area.leaves()]
        return sorted(found, key=_largest_first)


def count_lines(root: Path) -> dict[str, int]:
    """Count the lines of the Python files and C++ headers below a package.

    :param root: the folder of the package, e.g. ``…/site-packages/torch``.
    :return: lines by folder (its own files alone), as POSIX paths that start at the package.
    """
    lines: Counter[str] = Counter()
    for file in root.rglob("*"):
        if file.suffix in SUFFIXES and file.is_file():
            folder = file.relative_to(root.parent).parent.as_posix()
            lines[folder] += file.read_bytes().count(b"\n")
    return dict(lines)


def with_below(lines: Mapping[str, int]) -> dict[str, int]:
    """Return the lines of each folder with all that is below it."""
    total: Counter[str] = Counter()
    for folder, count in lines.items():
        path = PurePosixPath(folder)
        for ancestor in [path, *path.parents][:-1]:
            total[ancestor.as_posix()] += count
    return dict(total)


def areas(
    lines: Mapping[str, int], root: str, *, split: float, least: float, skip: str = ""
) -> Area:
    """Choose the folders to draw: large ones are split, small ones stay with their parent.

    :param lines: lines by folder, its own files alone.
    :param root: the folder that is drawn.
    :param split: a folder with more than this share of the lines is split if it has subfolders.
    :param least: a subfolder gets its own area if it has at least this share.
    :param skip: a folder below `root` that is left out.
    :return: the area of `root`; the lines of its leaves add up to those of `root` without `skip`.
    """
    total = with_below(lines)
    everything = total.get(root, 0) - (total.get(skip, 0) if skip else 0)
    children: dict[str, list[str]] = {}
    for folder in total:
        if folder != skip:
            children.setdefault(PurePosixPath(folder).parent.as_posix(), []).append(folder)

    def chosen(folder: str, size: int) -> Area:
        own = [
            child
            for child in children.get(folder, [])
            if total[child] >= least * everything and total[child] > 0
        ]
        if (folder != root and size <= split * everything) or not own:
            return Area(folder, size)
        inside = [chosen(child, total[child]) for child in own]
        rest = size - sum(area.lines for area in inside)
        if rest:
            inside.append(Area(folder, rest, whole=False))
        return Area(folder, size, inside=tuple(sorted(inside, key=_largest_first)))

    return chosen(root, everything)


def installed_path(file: str) -> str:
    """Return where a file of PyTorch's repository is in the wheel, whether shipped or not.

    A path that is already the wheel's own is returned as it is.
    """
    if file.startswith(HEADERS + "/"):
        return file
    for prefix, place in _INSTALLED:
        if file.startswith(prefix):
            return place + file.removeprefix(prefix)
    return file


def area_of(file: str, drawn: list[Area], skip: str = "") -> Area | None:
    """Return the area that stands for a file: the deepest one that holds it.

    :param file: a path in the wheel or in PyTorch's repository.
    :param skip: a folder that the areas leave out, with all that is in it.
    """
    path = PurePosixPath(installed_path(file))
    folders = {ancestor.as_posix() for ancestor in path.parents}
    if skip in folders:
        return None
    holding = [area for area in drawn if area.path in folders]
    return max(holding, key=lambda area: len(area.path), default=None)


def _largest_first(area: Area) -> tuple[int, str]:
    return -area.lines, area.path
