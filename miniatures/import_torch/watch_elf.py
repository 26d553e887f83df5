"""What a library demands of the system: versions, an executable stack, memory for threads."""

from __future__ import annotations

import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from miniatures.import_torch.loader import DYNAMIC, ENTRY, SECTION, text

SEGMENT = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, …, size in file, in memory
STACK, THREADS, EXECUTE = 0x6474E551, 7, 1  # types of segment, and a flag
VERSIONS, RUNPATH = 0x6FFFFFFE, 29  # a type of section, and an entry of the dynamic section


@dataclass(frozen=True)
class Demands:
    """What the dynamic loader must give to a library, or refuse it.

    :param versions: the newest version that it asks for, by family, such as ``GLIBC``.
    :param executable_stack: whether it wants the stack to be executable.
    :param thread_bytes: bytes that each thread must have for its variables.
    :param runpath: where its needs are looked for; ``$ORIGIN`` is its own folder.
    """

    versions: dict[str, tuple[int, ...]]
    executable_stack: bool
    thread_bytes: int
    runpath: str


def demands(path: str | Path) -> Demands:
    """Return what the ELF file at `path` demands (64 bits, little-endian)."""
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    first, start = struct.unpack_from("<QQ", data, 32)
    size, count, width, sections = struct.unpack_from("<HHHH", data, 54)
    segments = [SEGMENT.unpack_from(data, first + i * size) for i in range(count)]
    tables = [SECTION.unpack_from(data, start + i * width) for i in range(sections)]
    stack = [one[1] for one in segments if one[0] == STACK]
    versions: dict[str, tuple[int, ...]] = {}
    runpath = ""
    for table in tables:
        if table[1] not in (VERSIONS, DYNAMIC):
            continue
        body = data[table[4] : table[4] + table[5]]
        strings = tables[table[6]]
        texts = data[strings[4] : strings[4] + strings[5]]
        if table[1] == DYNAMIC:
            found = [text(texts, value) for what, value in ENTRY.iter_unpack(body)
                     if what == RUNPATH]  # fmt: skip
            runpath = found[0] if found else ""
        else:
            for family, version in _versions(body, texts):
                versions[family] = max(version, versions.get(family, ()))
    return Demands(
        versions,
        # Without the entry the system assumes that the stack must be executable.
        not stack or bool(stack[0] & EXECUTE),
        sum(one[6] for one in segments if one[0] == THREADS),
        runpath,
    )


def _versions(body: bytes, texts: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """Return the versions in a section of needs: for each library a chain of names."""
    found, at = [], 0
    while True:
        _, count, _, inner, after = struct.unpack_from("<HHIII", body, at)
        place = at + inner
        for _ in range(count):
            _, _, _, label, step = struct.unpack_from("<IHHII", body, place)
            parts = re.fullmatch(r"(\w+?)_([\d.]+)", text(texts, label))
            if parts:
                found.append((parts[1], tuple(map(int, parts[2].split(".")))))
            place += step
        if not after:
            return found
        at += after
