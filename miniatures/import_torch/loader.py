"""The dynamic loader in miniature: which libraries come, in which order, and who answers a name."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from insidetorch.errors import BookError


@dataclass(frozen=True)
class Library:
    """What a shared library says about itself.

    :param name: the name by which others need it.
    :param needed: names of the libraries that it needs, in its order.
    :param defines: the functions and variables that it offers.
    :param unique: those of them of which a process may use one definition only.
    """

    name: str
    needed: tuple[str, ...]
    defines: frozenset[str]
    unique: frozenset[str] = frozenset()


class Process:
    """The libraries of a process, in the order they came, and where each looks for a name."""

    def __init__(self, program: str, files: Mapping[str, Library]) -> None:
        self.files = files
        self.loaded: list[str] = []
        self.initialised: list[str] = []
        self.everyone: list[str] = []  # where everybody looks first
        self.family: dict[str, list[str]] = {}  # where a library looks next
        self.chosen: dict[str, str] = {}  # whose definition of a unique name is in use
        self.open(program, everyone=True)

    def open(self, name: str, *, everyone: bool = False) -> None:
        """Load a library and all that it needs, then run their constructors.

        :param everyone: offer their names to the whole process, as RTLD_GLOBAL does.
        """
        family = self.breadth_first(name)
        new = [one for one in family if one not in self.family]
        self.family |= dict.fromkeys(new, family)
        self.loaded += new
        if everyone:
            self.everyone += [one for one in family if one not in self.everyone]
        self.initialised += self.needs_first(new)

    def breadth_first(self, name: str) -> list[str]:
        """Return a library, then what it needs, then what those need, each once."""
        found = [name]
        for one in found:
            found += [need for need in self.files[one].needed if need not in found]
        return found

    def needs_first(self, new: Collection[str]) -> list[str]:
        """Return the new libraries, each after those it needs; of others, the last found first."""
        done: list[str] = []
        met: set[str] = set()

        def visit(name: str) -> None:
            if name in new and name not in met:
                met.add(name)
                for need in self.files[name].needed:
                    visit(need)
                done.append(name)

        for name in reversed(list(new)):
            visit(name)
        return done

    def answer(self, asker: str, symbol: str) -> str | None:
        """Return the library whose `symbol` the library `asker` gets: the first that has it."""
        for name in (*self.everyone, *self.family[asker]):
            if symbol in self.files[name].unique:
                return self.chosen.setdefault(symbol, name)
            if symbol in self.files[name].defines:
                return name
        return None


SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, …
SYMBOL = struct.Struct("<IBBHQQ")  # name, binding and type, visibility, section, value, size
ENTRY = struct.Struct("<qQ")  # what, value
DYNAMIC, SYMBOLS = 6, 11  # types of section
NEEDED, SONAME = 1, 14  # what an entry of the dynamic section says
UNIQUE = 10  # a binding; the others that are offered: 1, global; 2, weak


def read(path: str | Path) -> Library:
    """Return what the ELF file at `path` needs and defines (64 bits, little-endian)."""
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[:6] != b"\x7fELF\2\1":
        raise BookError(
            f"{path} is not an ELF file of 64 bits, little-endian: give a Linux library."
        )
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [SECTION.unpack_from(data, start + i * size) for i in range(count)]

    def body(section: tuple[int, ...]) -> bytes:
        return data[section[4] : section[4] + section[5]]

    name, needed, offers = Path(path).name, [], list[tuple[str, int]]()
    for section in sections:
        if section[1] not in (DYNAMIC, SYMBOLS):
            continue
        texts = body(sections[section[6]])
        if section[1] == DYNAMIC:
            for what, value in ENTRY.iter_unpack(body(section)):
                if what == NEEDED:
                    needed.append(text(texts, value))
                elif what == SONAME:
                    name = text(texts, value)
        else:
            offers += offered(body(section), texts)
    return Library(
        name,
        tuple(needed),
        frozenset(symbol for symbol, _ in offers),
        frozenset(symbol for symbol, binding in offers if binding == UNIQUE),
    )


def offered(symbols: bytes, texts: bytes) -> Iterator[tuple[str, int]]:
    """Yield the names in a symbol table that other libraries can use, each with its binding."""
    for name, info, visibility, section, _, _ in SYMBOL.iter_unpack(symbols):
        if section and info >> 4 in (1, 2, UNIQUE) and visibility & 3 in (0, 3):
            yield text(texts, name), info >> 4


def text(texts: bytes, start: int) -> str:
    """Return the text that begins at `start` and ends before the next zero byte."""
    return texts[start : texts.index(b"\0", start)].decode()
