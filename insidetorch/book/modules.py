"""The modules of a book: where each is, and which names are found in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import insidetorch
from insidetorch.book.syntax import Chain, Syntax, syntax

Read = Callable[[Path], bytes | None]
TOOLKIT = Path(insidetorch.__file__).parent


@dataclass(frozen=True)
class Module:
    """A module of the book: its file, None for a folder without ``__init__.py``."""

    name: str
    path: Path | None
    syntax: Syntax


def read_file(path: Path) -> bytes | None:
    """Return a file's content, or None if there is none."""
    return path.read_bytes() if path.is_file() else None


class Modules:
    """What can be imported in the chapters of one folder, without the packages of others.

    :param root: the book's folder, from which modules are imported.
    :param folder: the chapters' folder, from which they are too.
    :param docstrings: whose docstrings count: nobody's, the ``book``'s modules', or ``all``.
    :param read: returns the content of a file; None if there is none.
    :param toolkit: the toolkit's folder.
    """

    def __init__(
        self, root: Path, folder: Path, docstrings: str, read: Read, toolkit: Path
    ) -> None:
        self.root, self.folder, self.docstrings, self.toolkit = root, folder, docstrings, toolkit
        self.roots = tuple(dict.fromkeys((root, toolkit.parent, folder)))
        self.read = cache(read)
        self.module = cache(self._module)
        self.bases = cache(self._bases)
        self.called = cache(self._called)

    def inside_book(self, path: Path) -> Path | None:
        """Return a path below the book's folder, or that of the toolkit; None for others."""
        for folder, root in ((self.root, self.root), (self.toolkit, self.toolkit.parent)):
            if path.is_relative_to(folder):
                return path.relative_to(root)
        return None

    def _called(self, path: Path) -> str:
        inside = self.inside_book(path)
        return inside.as_posix() if inside else path.name

    def file(self, name: str) -> Path | None:
        """Return the file of a module; None if it has none, or if there is no such module."""
        module = self.module(name)
        return module.path if module else None

    def _module(self, name: str) -> Module | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        if len(parts) > 1 and self.module(".".join(parts[:-1])) is None:
            return None
        for root in self.roots:
            place = root.joinpath(*parts)
            forms = ((place / "__init__.py", parts), (place.with_suffix(".py"), parts[:-1]))
            for path, package in forms:
                text = self.read(path)
                if text is not None:
                    ours = "book", "all"
                    kept = self.docstrings in ours[path.is_relative_to(self.toolkit) :]
                    return Module(name, path, _parsed(text, ".".join(package), kept))
            if place.is_dir():
                return Module(name, None, syntax("", name))
        return None

    def homes(self, module: Module, name: str) -> tuple[list[str], list[str]]:
        """Return the modules that a lazy package finds a name in, and those it looks into."""
        entry = module.syntax.table.get(name)
        if entry is not None:
            found = [one for one in (f"{module.name}.{entry}", entry) if self.module(one)]
            return found[:1], []
        inside = self.inside(module)
        return [one for one in inside if self.has(one, name)], inside

    def has(self, name: str, attribute: str) -> bool:
        """Tell whether a module has a name of its own, or a package finds it in its modules."""
        module = self.module(name)
        if module is None:
            return False
        if module.syntax.defines(attribute) or attribute in module.syntax.table:
            return True
        lazy = module.syntax.lazy and not module.syntax.table
        return lazy and any(self.has(one, attribute) for one in self.inside(module))

    def inside(self, module: Module) -> list[str]:
        """Return the names of a package's modules."""
        if module.path is None or module.path.name != "__init__.py":
            return []
        names = sorted(
            path.stem
            for path in module.path.parent.iterdir()
            if path.suffix == ".py" or (path / "__init__.py").is_file()
        )
        return [f"{module.name}.{name}" for name in names if name != "__init__"]

    def longest(self, dotted: str) -> tuple[Module | None, Chain]:
        """Return the module that a dotted name begins with, and the names after it."""
        parts = tuple(dotted.split("."))
        for end in range(len(parts), 0, -1):
            if module := self.module(".".join(parts[:end])):
                return module, parts[end:]
        return None, parts

    def _bases(self, where: str) -> tuple[Path, ...]:
        """Return the folders that a file which code names may be in."""
        module = self.module(where) if where else None
        if module is None or module.path is None:
            return (self.folder, self.root)
        home = module.path.parent
        if home.is_relative_to(self.toolkit):
            return tuple(dict.fromkeys((home, self.toolkit)))
        above = [folder for folder in home.parents if folder.is_relative_to(self.root)]
        return (home, *above)


def _parsed(content: bytes, package: str, docstrings: bool) -> Syntax:
    try:
        return syntax(content.decode(), package, docstrings)
    except (SyntaxError, ValueError):
        # Whoever imports it will say so; until then it counts as it is.
        return syntax(f"unreadable({content!r})", package)
