"""The sources that one release of PyTorch carries, read from a wheel, a folder or a checkout."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from insidetorch.errors import BookError
from insidetorch.locate.definition import Language
from insidetorch.locate.headers import without_guard

VERSION = "torch/version.py"
HEADERS = (".h", ".hpp", ".cuh")
_SUFFIXES = (*HEADERS, ".py", ".pyi", ".yaml")
_TOPS = ("torch/", "torchgen/", "functorch/")
_TEMPLATES = "torchgen/packaged/"
_OWN_HEADERS = tuple(f"torch/include/{top}/" for top in ("c10", "ATen", "torch", "caffe2"))
_OPERATORS = "torch/include/ATen/ops/"
_CHECKOUT = (  # where a checkout keeps what a wheel has there; the first that fits wins
    ("aten/src/ATen/templates/", "torchgen/packaged/ATen/templates/"),
    ("aten/src/ATen/native/native_", _TEMPLATES + "ATen/native/native_"),
    ("aten/src/ATen/native/tags.yaml", _TEMPLATES + "ATen/native/tags.yaml"),
    ("aten/src/ATen/", "torch/include/ATen/"),
    ("tools/autograd/", _TEMPLATES + "autograd/"),
    ("c10/", "torch/include/c10/"),
    ("caffe2/", "torch/include/caffe2/"),
    ("torch/csrc/", "torch/include/torch/csrc/"),
    ("torch/headeronly/", "torch/include/torch/headeronly/"),
)  # fmt: skip
_SOURCES = ("aten/src/ATen", "c10", "caffe2", "torch", "torchgen", "functorch", "tools/autograd")
SYMBOLS = "torch/symbols.txt"
"""In a packed release: the names that its libraries define."""
UNSHIPPED = (".cpp", ".cc", ".c", ".cu", ".mm", ".metal")


@dataclass(frozen=True, eq=False)
class Tree:
    """What one release carries, by the paths that a wheel has below ``site-packages``.

    :param release: its version, with the local part, e.g. ``2.13.0+cpu``.
    :param commit: of pytorch/pytorch; "" if it is not known.
    :param paths: the files: Python, stubs, headers, YAML, templates of the code generator.
    :param complete: also carries what wheels leave out (``.cpp``, ``.cu``): a checkout.
    :param origin: the archive or folder it was opened from.
    """

    release: str
    commit: str
    paths: frozenset[str]
    complete: bool
    _bytes: Callable[[str], bytes]
    origin: Path = Path()

    @property
    def public(self) -> str:
        """The version without its local part."""
        return self.release.split("+")[0]

    def read(self, path: str) -> bytes | None:
        """Return a file as PyTorch's tree has it (see `without_guard`), or None if it is absent.

        :raises BookError: the file is there and cannot be read.
        """
        if path not in self.paths:
            return None
        try:
            return without_guard(self._bytes(path))
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise BookError(
                f"{path} of torch {self.release} cannot be read from {self.origin} ({error}); "
                "it is damaged: remove it and fetch it again."
            ) from None

    def text(self, path: str) -> str | None:
        """Return a file as text, or None if it is absent."""
        return _text(self, path)

    @cached_property
    def headers(self) -> tuple[str, ...]:
        """PyTorch's own headers, without those generated for single operators."""
        return tuple(
            sorted(
                path
                for path in self.paths
                if path.startswith(_OWN_HEADERS)
                and not path.startswith(_OPERATORS)
                and path.endswith(HEADERS)
            )
        )

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """The Python files, without the stubs."""
        return tuple(sorted(path for path in self.paths if path.endswith(".py")))

    def corpus(self, language: Language) -> dict[str, bytes]:
        """Return all Python files or all headers; read once, some 50 MB."""
        return _corpus(self, language)


@lru_cache(maxsize=2)
def _corpus(tree: Tree, language: Language) -> dict[str, bytes]:
    paths = tree.modules if language == "python" else tree.headers
    return {path: tree.read(path) or b"" for path in paths}


@lru_cache(maxsize=512)
def _text(tree: Tree, path: str) -> str | None:
    found = tree.read(path)
    return None if found is None else found.decode("utf-8", "replace")


def wanted(path: str) -> bool:
    """Tell whether drift looks at a member of a wheel."""
    return path.startswith(_TOPS) and (path.endswith(_SUFFIXES) or path.startswith(_TEMPLATES))


def open_wheel(path: Path) -> Tree:
    """Return the tree in a wheel, which stays packed; its members are read when they are needed.

    :raises BookError: the file is no wheel of torch, or is damaged.
    """
    try:
        archive = zipfile.ZipFile(path)
        names = [name for name in archive.namelist() if wanted(name)]
        version = archive.read(VERSION).decode()
    except KeyError:
        raise BookError(f"{path} holds no torch/version.py; name a wheel of torch.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise BookError(
            f"{path} is damaged or no wheel ({error}); remove it and fetch it again."
        ) from None
    return _tree(version, names, archive.read, path)


def open_folder(site: Path) -> Tree:
    """Return the tree below a folder that holds ``torch/``, such as ``site-packages``.

    :raises BookError: there is no torch in it.
    """
    try:
        version = (site / VERSION).read_text(encoding="utf-8")
    except OSError:
        raise BookError(f"{site} holds no {VERSION}; name a folder that holds torch/.") from None
    names = (
        f"{folder}/{file}"[len(str(site)) + 1 :].replace(os.sep, "/")
        for top in _TOPS
        for folder, _, files in os.walk(site / top)
        for file in files
    )
    return _tree(version, filter(wanted, names), lambda path: (site / path).read_bytes(), site)


def open_checkout(root: Path, commit: str) -> Tree:
    """Return the tree of a source checkout, its files under the paths they have in a wheel.

    Headers and stubs that are generated when PyTorch is built are not among them.

    :param commit: what is checked out; "" if unknown.
    :raises BookError: it is no checkout of PyTorch.
    """
    try:
        release = (root / "version.txt").read_text(encoding="utf-8").strip()
    except OSError:
        raise BookError(f"{root} holds no version.txt; name a checkout of PyTorch.") from None
    place: dict[str, Path] = {}
    for top in _SOURCES:
        for file in (root / top).rglob("*"):
            if not file.is_file():
                continue
            source = file.relative_to(root).as_posix()
            path = in_wheel(source)
            if source.endswith(UNSHIPPED):
                place[source] = file
            elif wanted(path):
                place[path] = file
    paths = frozenset(place)
    return Tree(release, commit, paths, True, lambda path: place[path].read_bytes(), root)


def in_wheel(source: str) -> str:
    """Return where a wheel has what is at `source` in PyTorch's repository, if it has it."""
    if source.startswith("torch/csrc/") and source.endswith(".py"):
        return source
    for prefix, place in _CHECKOUT:
        if source.startswith(prefix):
            return place + source.removeprefix(prefix)
    return source


def _tree(version: str, names: Iterable[str], read: Callable[[str], bytes], origin: Path) -> Tree:
    commit = re.search(r"git_version\s*=\s*'([0-9a-f]+)'", version)
    release = re.search(r"__version__\s*=\s*'([^']+)'", version)
    return Tree(
        release[1] if release else "",
        commit[1] if commit else "",
        frozenset(names),
        False,
        read,
        origin,
    )
