"""What the code of a chapter reaches of the book's own modules and data.

From the names in its cells, through imports, to functions, classes and constants, and from their
bodies on. Of a module that is imported counts what runs on import; of a definition, what it is and
what it names in turn; of one that the page shows, its text. A module counts whole where its names
are looked up by a computed one. Nothing is imported for this, and no torch is needed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from insidetorch.book.modules import TOOLKIT, Module, Modules, Read, read_file
from insidetorch.book.syntax import HOLE, Chain, Target, Uses, cells, code_in
from insidetorch.errors import BookError
from insidetorch.locate import python

ALWAYS = ("insidetorch.run.kernel", "insidetorch:load_ipython_extension")
"""What every chapter reaches: ``module``, or ``module:name``."""

_NAMED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(?::([\w.]*))?")
_AS_PROGRAM = re.compile(r"-m\s+([A-Za-z_]\w*(?:\.\w+)+)")
_FILE = re.compile(r"[\w. /-]*[\w-]\.?[\w.-]*\w")
APART = frozenset({"_build", ".git", ".venv", "recordings", "verdicts.yml", "display.css"})
"""Files and folders that are no data of the code that names them: the key counts them otherwise,
or not at all."""


class Node(NamedTuple):
    """One thing that is reached.

    :param kind: ``load`` what runs on import, ``def`` a definition, ``bind`` a name that an import
        binds, ``home`` an entry of a table of lazy names, ``all`` a whole module, ``text`` of a
        definition, ``attr`` what a chain of names after a module stands for, ``data`` a file,
        ``scan`` a module that is only searched for a name, ``outside`` a package of others.
    :param where: the module, the file or the package.
    :param chain: what of it.
    :param whole: of a chain that ends at a module, all of it is meant.
    """

    kind: str
    where: str
    chain: Chain = ()
    whole: bool = True


@dataclass(frozen=True)
class Reached:
    """What a chapter reaches.

    :param parts: file → hash of what of it is reached.
    :param files: all files that its process may read because of it.
    :param packages: top-level names of the packages of others that it imports.
    :param strings: the strings of its cells.
    :param nodes: what `parts` was made from.
    """

    parts: Mapping[str, str]
    files: frozenset[Path]
    packages: frozenset[str]
    strings: frozenset[str]
    nodes: frozenset[Node]


class Reach:
    """The book's modules around one folder of chapters, and what leads from one to another.

    :param root: the book's folder, from which modules are imported.
    :param folder: the chapters' folder, from which they are too.
    :param docstrings: whose docstrings count: nobody's, the ``book``'s modules', or ``all``.
    :param read: returns the content of a file; None if there is none.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        *,
        docstrings: str = "",
        read: Read = read_file,
        toolkit: Path = TOOLKIT,
        always: Sequence[str] = ALWAYS,
    ) -> None:
        self.modules = Modules(root, folder, docstrings, read, toolkit)
        self.module = self.modules.module
        self.always = always
        self.edges = cache(self._edges)
        self.digest = cache(self._digest)
        self.labelled = cache(self._labelled)
        self.named = cache(self._named)

    def of(self, sources: Sequence[str]) -> Reached:
        """Return what code cells reach.

        :param sources: the code of the cells, in order.
        """
        uses = cells(tuple(sources))
        waiting = [*self._always(), *self._used(uses, None)]
        waiting += self._imported(uses)
        found: set[Node] = set()
        texts, aliases = set(uses.strings), dict[str, set[Target]]()
        self._read_code(uses.strings, aliases)
        while waiting:
            while waiting:
                node = waiting.pop()
                if node in found:
                    continue
                found.add(node)
                waiting += self.edges(node)
                if node.kind in {"def", "load"}:
                    strings = self._piece(node).strings
                    texts |= strings
                    self._read_code(strings, aliases)
            # Code in one string may use what another, which is put before it, imports.
            waiting = [node for node in self._across(texts, aliases) if node not in found]
        return self._reached(found, uses.strings)

    def _always(self) -> Iterator[Node]:
        for one in self.always:
            name, _, attribute = one.partition(":")
            if self.module(name):
                yield Node("attr", name, (attribute,)) if attribute else Node("all", name)

    def _reached(self, nodes: set[Node], strings: Iterable[str]) -> Reached:
        digests: dict[str, list[str]] = {}
        files, packages = set[Path](), set[str]()
        for node in nodes:
            path, label = self.labelled(node)
            if path:
                files.add(path)
            elif node.kind == "outside":
                packages.add(node.where)
            if path and label:
                digests.setdefault(self.modules.called(path), []).append(label)
        parts = {name: _hash("\n".join(sorted(lines))) for name, lines in digests.items()}
        return Reached(
            parts, frozenset(files), frozenset(packages), frozenset(strings), frozenset(nodes)
        )

    def _labelled(self, node: Node) -> tuple[Path | None, str]:
        """Return the file of a node, and what it adds to the hash of that file."""
        if node.kind == "outside":
            return None, ""
        path = Path(node.where) if node.kind == "data" else self.modules.file(node.where)
        digest = self.digest(node) if path else ""
        return path, f"{node.kind} {'.'.join(node.chain)} {digest}" if digest else ""

    # ── From one to the next ────────────────────────────────────────────────────────────────────

    def _edges(self, node: Node) -> list[Node]:
        """Return what a node leads to."""
        if node.kind in {"data", "outside", "home", "bind", "scan"}:
            return []
        module = self.module(node.where)
        assert module is not None
        above = node.where.rpartition(".")[0]
        out = [Node("load", above)] if above else []
        if node.kind == "text":
            return out
        if node.kind == "attr":
            return [
                *out,
                Node("load", node.where),
                *self._attribute(module, node.chain, node.whole),
            ]
        if node.kind == "all":
            return [*out, Node("load", node.where), *self._whole(module)]
        uses = self._piece(node)
        if node.kind == "def":
            # A definition may import; what a module's own imports load is with the module.
            return [*out, Node("load", node.where), *self._used(uses, module)]
        return [*out, *self._used(uses, module)]

    def _piece(self, node: Node) -> Uses:
        module = self.module(node.where)
        assert module is not None
        if node.kind == "load":
            return module.syntax.on_import.uses
        if node.chain == ("__main__",):
            return module.syntax.main.uses
        return module.syntax.pieces[node.chain[0]].uses

    def _used(self, uses: Uses, module: Module | None) -> Iterator[Node]:
        """Yield what a piece of code leads to; without a module, that of the cells."""
        for name in uses.loaded:
            yield from self._loads(name)
        for targets in uses.bound.values():
            for target in targets:
                yield from self._loads_member(target)
        for star in uses.stars:
            yield from self._value(star, (), whole=True)
        for chain in uses.chains:
            yield from self._chain(chain, uses, module)
        for chain in uses.shown:
            yield from self._shown(chain, uses, module)
        for text in uses.shown_names:
            yield from self._shown_name(text)
        for text in uses.strings:
            yield from self.named(text, module.name if module else "")
        if module and (uses.dynamic or uses.chains >= {("sys", "modules"), ("__name__",)}):
            lazy = (module.syntax.pieces.get(name) for name in ("__getattr__", "__dir__"))
            if not any(piece and piece.uses is uses for piece in lazy):
                yield Node("all", module.name)

    def _imported(self, uses: Uses) -> Iterator[Node]:
        """Yield what imports name, used or not: as in cells, and in code that is put together."""
        for targets in uses.bound.values():
            for target in targets:
                if target.name:
                    yield from self._target(target, (), whole=False)

    def _loads(self, name: str) -> Iterator[Node]:
        parts = name.split(".")
        if self.module(parts[0]) is None:
            yield Node("outside", parts[0])
            return
        for end in range(1, len(parts) + 1):
            if self.module(inner := ".".join(parts[:end])):
                yield Node("load", inner)

    def _loads_member(self, target: Target) -> Iterator[Node]:
        """Yield the module that ``from module import name`` loads because of the name."""
        module = self.module(target.module) if target.name else None
        if module is None or module.syntax.defines(target.name):
            return
        if self.module(inner := f"{target.module}.{target.name}"):
            yield Node("load", inner)
        elif module.syntax.lazy:
            homes, _ = self.modules.homes(module, target.name)
            yield from (Node("load", home) for home in homes)

    def _chain(self, chain: Chain, uses: Uses, module: Module | None) -> Iterator[Node]:
        first, rest = chain[0], chain[1:]
        for target in uses.bound.get(first, ()):
            yield from self._target(target, rest)
        if module:
            if first in module.syntax.pieces:
                yield Node("def", module.name, (first,))
            for target in module.syntax.bindings.get(first, ()):
                yield Node("bind", module.name, (first,))
                yield from self._target(target, rest)

    def _target(self, target: Target, rest: Chain, whole: bool = True) -> Iterator[Node]:
        if self.module(target.module) is None:
            return
        if target.name:
            yield Node("attr", target.module, (target.name, *rest), whole)
        else:
            yield from self._value(target.module, rest, whole)

    def _value(self, name: str, rest: Chain, whole: bool) -> Iterator[Node]:
        """Yield what a module, with names after it, leads to."""
        if self.module(name) is None:
            return
        if rest:
            yield Node("attr", name, rest, whole)
        else:
            yield Node("all" if whole else "load", name)

    def _attribute(self, module: Module, chain: Chain, whole: bool) -> Iterator[Node]:
        name, rest = chain[0], chain[1:]
        own = module.syntax
        if name in own.pieces:
            yield Node("def", module.name, (name,))
        for target in own.bindings.get(name, ()):
            yield Node("bind", module.name, (name,))
            yield from self._target(target, rest, whole)
        if own.defines(name):
            return
        if self.module(inner := f"{module.name}.{name}"):
            yield from self._value(inner, rest, whole)
        elif name.startswith("__"):
            yield from [Node("all", module.name)] if name == "__dict__" else ()
        elif own.lazy:
            yield Node("def", module.name, ("__getattr__",))
            homes, searched = self.modules.homes(module, name)
            yield from (Node("scan", one) for one in searched)
            for home in homes:
                yield Node("home", module.name, (name, home))
                yield Node("load", home)
                if self.modules.has(home, name):
                    yield Node("attr", home, chain, whole)
                else:
                    yield from self._value(home, rest, whole)
            if not homes:
                yield Node("all", module.name)
        else:
            yield Node("all", module.name)

    def _whole(self, module: Module) -> Iterator[Node]:
        own = module.syntax
        yield from (Node("def", module.name, (name,)) for name in own.pieces)
        yield Node("def", module.name, ("__main__",))
        for targets in own.bindings.values():
            for target in targets:
                if target.name:
                    yield from self._target(target, (), whole=False)
        if own.lazy:
            yield from (Node("attr", module.name, (name,), False) for name in own.table)
            if not own.table:
                yield from (Node("all", name) for name in self.modules.inside(module))

    # ── Sources that are shown ──────────────────────────────────────────────────────────────────

    def _shown(self, chain: Chain, uses: Uses, module: Module | None) -> Iterator[Node]:
        for target in uses.bound.get(chain[0], ()):
            yield from self._text_of(target, chain[1:])
        if module:
            if chain[0] in module.syntax.pieces:
                yield Node("text", module.name, (".".join(chain),))
            for target in module.syntax.bindings.get(chain[0], ()):
                yield from self._text_of(target, chain[1:])

    def _text_of(self, target: Target, rest: Chain, depth: int = 5) -> Iterator[Node]:
        chain = (target.name, *rest) if target.name else rest
        module = self.module(target.module)
        if module is None or not depth:
            return
        inner = f"{target.module}.{chain[0]}" if chain else ""
        if not chain or chain[0] in module.syntax.pieces:
            yield Node("text", target.module, (".".join(chain),))
        elif chain[0] in module.syntax.bindings:
            for further in module.syntax.bindings[chain[0]]:
                yield from self._text_of(further, chain[1:], depth - 1)
        elif self.module(inner):
            yield from self._text_of(Target(inner), chain[1:], depth - 1)

    def _shown_name(self, text: str) -> Iterator[Node]:
        found = _NAMED.fullmatch(text)
        if found and found[2] is None:
            module, rest = self.modules.longest(found[1])
            if module and module.path:
                yield Node("text", module.name, (".".join(rest),))

    # ── Names in strings ────────────────────────────────────────────────────────────────────────

    def _named(self, text: str, where: str) -> list[Node]:
        """Return what a string of a module leads to: modules, definitions, code and files."""
        out: list[Node] = []
        if len(text) <= 200 and "\n" not in text and ("." in text or ":" in text or "/" in text):
            out += self._dotted(text)
            out += self._data(text, where)
        for name in _AS_PROGRAM.findall(text):
            if self.module(name):
                out.append(Node("all", name))
        if code := code_in(text):
            out += self._used(code, None)
            out += self._imported(code)
        return out

    def _dotted(self, text: str) -> Iterator[Node]:
        if HOLE in text:
            start = text.partition(HOLE)[0].partition(":")
            if start[1] and (module := self.module(start[0])) and module.path:
                yield Node("text", start[0], ("",))
            return
        found = _NAMED.fullmatch(text)
        if found is None:
            return
        if found[2] is not None:
            if (module := self.module(found[1])) and module.path:
                yield Node("text", found[1], (found[2],))
        elif "." in found[1]:
            module, rest = self.modules.longest(found[1])
            if module and (not rest or module.syntax.defines(rest[0])):
                yield from self._value(module.name, rest, whole=True)

    def _data(self, text: str, where: str) -> Iterator[Node]:
        if not _FILE.fullmatch(text):
            return
        for base in self.modules.bases(where):
            path = Path(os.path.normpath(base / text))
            inside = self.modules.inside_book(path)
            if inside is None or not APART.isdisjoint(inside.parts):
                continue
            if self.modules.read(path) is None:
                continue
            name = ".".join(inside.with_suffix("").parts)
            if path.suffix == ".py" and self.modules.file(name) == path:
                yield Node("all", name)
            else:
                yield Node("data", str(path))
            return

    def _read_code(self, strings: Iterable[str], aliases: dict[str, set[Target]]) -> None:
        for text in strings:
            if code := code_in(text):
                for name, targets in code.bound.items():
                    ours = {one for one in targets if self.module(one.module)}
                    if ours:
                        aliases.setdefault(name, set()).update(ours)

    def _across(self, texts: set[str], aliases: Mapping[str, set[Target]]) -> Iterator[Node]:
        for alias, targets in aliases.items():
            uses = re.compile(rf"\b{alias}\.([A-Za-z_]\w*)")
            for name in {name for text in texts if alias in text for name in uses.findall(text)}:
                for target in targets:
                    inner = f"{target.module}.{target.name}" if target.name else target.module
                    if self.modules.has(inner, name):
                        yield Node("attr", inner, (name,))

    # ── Digests ─────────────────────────────────────────────────────────────────────────────────

    def _digest(self, node: Node) -> str:
        """Return the hash of what a node is by itself; empty if it only leads to others."""
        if node.kind == "data":
            return _hash(self.modules.read(Path(node.where)) or b"")
        module = self.module(node.where)
        assert module is not None
        if node.kind == "load":
            return module.syntax.on_import.digest
        if node.kind == "def":
            name = node.chain[0]
            piece = module.syntax.main if name == "__main__" else module.syntax.pieces[name]
            return piece.digest
        if node.kind == "bind":
            return _hash(repr(sorted(map(str, module.syntax.bindings[node.chain[0]]))))
        if node.kind == "home":
            return _hash(repr(node.chain))
        if node.kind == "text":
            return self._text(module, node.chain[0])
        return ""

    def _text(self, module: Module, name: str) -> str:
        assert module.path is not None
        text = (self.modules.read(module.path) or b"").decode()
        try:
            found = python.find(module.name, text, name)
        except (BookError, SyntaxError):
            return _hash(text)
        return _hash(repr([(one.first, one.text) for one in found]))


def _hash(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()[:32]
