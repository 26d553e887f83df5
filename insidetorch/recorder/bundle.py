"""A GPU box without a network: one archive that carries the recorder there, one that comes back."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from insidetorch.errors import BookError
from insidetorch.files import replacing
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import recording as recordings
from insidetorch.recorder.record import Script, prune

SCHEMA = 1
MAX_BUNDLE = 60_000_000
"""Bytes that the bundle may have."""
MAX_ARCHIVE = 200 * 2**20
"""Bytes that an archive of recordings may unpack to."""

FOLDER = "record-bundle"
_MEMBER = re.compile(r"recordings/([A-Za-z0-9_-]+)/([A-Za-z0-9][A-Za-z0-9._-]*)")
_PLATFORMS = (*(f"manylinux_2_{n}" for n in range(28, 4, -1)), "manylinux2014", "linux")


def make_bundle(
    root: Path, scripts: Sequence[Script], wheels: Iterable[Path], python: str, book_commit: str
) -> Path:
    """Write ``_build/record-bundle.tar.gz`` and return it.

    :param root: the checkout.
    :param wheels: of all the recorder needs beside torch, for that Python.
    :param python: version of the box's Python, such as ``3.12``.
    :raises BookError: the bundle is larger than `MAX_BUNDLE`.
    """
    package = Path(str(resources.files("insidetorch")))
    entries = {f"wheels/{wheel.name}": wheel for wheel in wheels}
    for folder in (package, root / "miniatures", root / "recordings"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith(".") and "__pycache__" not in path.parts:
                entries[f"{folder.name}/{path.relative_to(folder).as_posix()}"] = path
    entries["book/verdicts.yml"] = root / "book" / "verdicts.yml"
    entries["record.py"] = package / "recorder" / "on_the_box.py"
    about = {
        "schema": SCHEMA,
        "python": python,
        "book_commit": book_commit,
        "scripts": [{"doc": s.doc, "cells": [dict(cell) for cell in s.cells]} for s in scripts],
    }
    target = root / "_build" / f"{FOLDER}.tar.gz"
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        part = Path(scratch) / target.name
        with tarfile.open(part, "w:gz") as archive:
            _add(archive, f"{FOLDER}/bundle.json", json.dumps(about).encode())
            for name, path in sorted(entries.items()):
                _add(archive, f"{FOLDER}/{name}", path.read_bytes())
        size = part.stat().st_size
        if size > MAX_BUNDLE:
            largest = max(entries, key=lambda name: entries[name].stat().st_size)
            raise BookError(
                f"the bundle would have {size / 1e6:.0f} MB, and the limit is "
                f"{MAX_BUNDLE / 1e6:.0f} MB; the largest file in it is {largest}."
            )
        part.replace(target)
    return target


def download_wheels(root: Path, python: str) -> list[Path]:
    """Return wheels of the toolkit's dependencies but torch, at the book's pins, for a GPU box.

    They are fetched with pip and kept below ``_build/cache``.

    :param python: version of the box's Python; the box is taken to be Linux on x86-64.
    :raises BookError: the version is malformed, or pip cannot fetch them.
    """
    if not re.fullmatch(r"3\.\d+", python):
        raise BookError(f"--python {python!r} is no version of Python; write --python 3.12.")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [name for name in project["dependencies"] if not name.startswith("torch")]
    pins = [root / name for name in ("requirements.txt", "constraints.txt")]
    key = hashlib.sha256("\n".join(names).encode())
    for pin in pins:
        key.update(pin.read_bytes())
    folder = root / "_build" / "cache" / "wheels" / f"{python}-{key.hexdigest()[:16]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            part = Path(scratch) / "wheels"
            command = [
                sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
                "--python-version", python, "--implementation", "cp", "--dest", str(part),
                *(flag for name in _PLATFORMS for flag in ("--platform", f"{name}_x86_64")),
                *(flag for pin in pins for flag in ("-c", str(pin))), *names,
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                said = (errors or done.stderr.strip().splitlines() or ["no reason given"])[0]
                raise BookError(
                    f"pip cannot fetch the wheels for Python {python} ({said}); "
                    "check the network and the version."
                )
            part.rename(folder)
    return sorted(folder.glob("*.whl"))


def export(root: Path, digests: Mapping[str, Mapping[str, str]], target: Path) -> list[str]:
    """Write an archive of the recordings that fit their cells; return them as ``chapter/cell``.

    :param root: the folder with ``recordings/``.
    :param digests: of the cells, as `all_digests` returns them.
    """
    files: dict[str, bytes] = {}
    cells = []
    for chapter, its_digests in digests.items():
        folder = root / "recordings" / chapter
        for name, digest in its_digests.items():
            path = folder / f"{name}.json"
            if not path.is_file():
                continue
            recording = recordings.load(path)
            if recording.digest != digest:
                continue
            cells.append(f"{chapter}/{name}")
            run = f"run-{recording.run}.json"
            for file in (path.name, run, *(item.file for item in recording.artifacts)):
                files[f"recordings/{chapter}/{file}"] = (folder / file).read_bytes()
    manifest = {
        "schema": SCHEMA,
        "files": {name: recordings.sha256(content) for name, content in files.items()},
    }
    with replacing(target) as part, tarfile.open(part, "w:gz") as archive:
        _add(archive, "manifest.json", json.dumps(manifest, indent=1, sort_keys=True).encode())
        for name, content in sorted(files.items()):
            _add(archive, name, content)
    return cells


def import_archive(
    archive: Path, root: Path, scripts: Sequence[Script], *, skip_changed: bool = False
) -> list[str]:
    """Check an archive of recordings and unpack it into ``recordings/``.

    :param root: the checkout.
    :param scripts: the book's chapters.
    :param skip_changed: leave out recordings of cells that have changed since, instead of
        refusing the archive.
    :return: the recordings, as ``chapter/cell``.
    :raises BookError: anything in it is not as it must be; then nothing is written.
    """
    files = _checked_files(archive)
    digests = all_digests(scripts, root)
    kept, cells, changed = dict[str, bytes](), list[str](), list[str]()
    used = set[str]()
    for name, content in files.items():
        chapter, file = _parts(archive, name)
        if file.startswith("run-") or not file.endswith(".json"):
            continue
        recording = recordings.read(content, f"{chapter}/{file}")
        needs = _needs(archive, recording, files)
        used |= {name, *needs}
        known = digests.get(chapter, {}).get(recording.cell)
        if known is None:
            raise _refuse(archive, f"the book has no CUDA cell {chapter}/{recording.cell}")
        if known != recording.digest:
            changed.append(f"{chapter}/{recording.cell}")
            continue
        cells.append(f"{chapter}/{recording.cell}")
        kept |= {name: content} | {need: files[need] for need in needs}
    strangers = sorted(files.keys() - used)
    if strangers:
        raise _refuse(archive, f"{strangers[0]} belongs to no recording in it")
    if changed and not skip_changed:
        raise BookError(
            f"{archive} is refused: {', '.join(changed)} changed in the book after the bundle was "
            "made; record them again, or import the others with --skip-changed."
        )
    _place(root / "recordings", kept)
    return sorted(cells)


def all_digests(scripts: Sequence[Script], root: Path) -> dict[str, dict[str, str]]:
    """Return chapter → CUDA cell → digest of its code."""
    reached = cell_code.reached_in([root])
    return {
        script.name: found
        for script in scripts
        if (found := recordings.chapter_digests(script.sources, reached))
    }


def _checked_files(archive: Path) -> dict[str, bytes]:
    """Return the content of the files that the archive's manifest names, and no others."""
    files = dict(_members(archive))
    try:
        manifest = json.loads(files.pop("manifest.json"))
        schema, sums = manifest["schema"], dict(manifest["files"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _refuse(archive, "it has no readable manifest.json") from None
    if type(schema) is not int or schema != SCHEMA:
        raise _refuse(archive, f"its schema is {schema!r}, and this book reads {SCHEMA}")
    if sums.keys() != files.keys():
        name = sorted(sums.keys() ^ files.keys())[0]
        raise _refuse(archive, f"{name} is in its manifest or among its files, but not in both")
    for name, content in files.items():
        if recordings.sha256(content) != sums[name]:
            raise _refuse(archive, f"{name} is not what its manifest says")
    return files


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if not archive.is_file():
        raise BookError(f"{archive} is no file; give the archive that `record.py` wrote.")
    try:
        with gzip.open(archive) as stream:
            content = stream.read(MAX_ARCHIVE + 1)
        if len(content) > MAX_ARCHIVE:
            raise _refuse(archive, f"it unpacks to more than {MAX_ARCHIVE // 2**20} MiB")
        seen = set()
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for member in tar:
                if not member.isreg():
                    raise _refuse(archive, f"{member.name!r} in it is no plain file")
                if member.name != "manifest.json":
                    _parts(archive, member.name)
                if member.name in seen:
                    raise _refuse(archive, f"{member.name!r} is in it twice")
                seen.add(member.name)
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError):
        raise _refuse(archive, "it is damaged or no gzipped tar archive") from None


def _parts(archive: Path, name: str) -> tuple[str, str]:
    found = _MEMBER.fullmatch(name)
    if found is None:
        raise _refuse(archive, f"{name!r} in it is outside recordings/<chapter>/")
    return found[1], found[2]


def _needs(archive: Path, recording: recordings.Recording, files: Mapping[str, bytes]) -> list[str]:
    """Return the other files of a recording, after checking them."""
    prefix = f"recordings/{recording.chapter}/"
    run = f"run-{recording.run}.json"
    if prefix + run not in files:
        raise _refuse(archive, f"{prefix}{run}, the run of {recording.cell}, is missing")
    recordings.read_run(files[prefix + run], f"{recording.chapter}/{run}")
    for item in recording.artifacts:
        content = files.get(prefix + item.file)
        if content is None or recordings.sha256(content) != item.sha256:
            raise _refuse(archive, f"{prefix}{item.file} is missing or not what its cell recorded")
        if len(content) != item.bytes or not content.startswith(b"\x1f\x8b"):
            raise _refuse(archive, f"{prefix}{item.file} is not what its cell recorded")
    return [prefix + run, *(prefix + item.file for item in recording.artifacts)]


def _place(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below ``recordings/``: all beside it first, then each moved to its place."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=folder) as scratch:
        staged = []
        for number, (name, content) in enumerate(files.items()):
            path = Path(scratch) / str(number)
            path.write_bytes(content)
            staged.append((path, folder.parent / name))
        # A recording must never be seen without its run and its artefacts.
        staged.sort(key=lambda pair: pair[1].suffix == ".json" and pair[1].name[:4] != "run-")
        for path, target in staged:
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
    for chapter in {target.parent for _, target in staged}:
        prune(chapter)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    archive.addfile(entry, io.BytesIO(content))


def _refuse(archive: Path, problem: str) -> BookError:
    return BookError(f"{archive} is refused: {problem}; have it written again by `record.py`.")
