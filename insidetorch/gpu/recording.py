"""Recordings of CUDA cells: files that a machine with a GPU wrote, read here, whole or refused.

``recordings/<chapter>/<cell>.json`` holds what one cell showed, ``run-<id>.json`` beside it where
that happened, and ``<cell>.<name>.gz`` the traces of its timelines. Text is stored line by
line, so that a new recording can be reviewed as a difference.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from insidetorch.display import style_block
from insidetorch.errors import BookError
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import sanitise
from insidetorch.gpu.machine import Machine
from insidetorch.show.traces import TRACE_MIME, unpacked

SCHEMA = 1
MAX_CELL = 2 * 2**20
"""Bytes that the file of one cell may have."""
MAX_ARTIFACT = 20 * 2**20
"""Bytes that one artefact may have, compressed."""

_SLUG = r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*"
_CHAPTER = re.compile(_SLUG)
_RUN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ARTIFACT = re.compile(rf"{_SLUG}\.[A-Za-z0-9][A-Za-z0-9._-]{{0,80}}\.gz")
_SHA = re.compile(r"[0-9a-f]{64}")
_MIME = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_STREAMS = ("stdout", "stderr")


@dataclass(frozen=True)
class Run:
    """Where and when cells were recorded.

    :param id: names the file, ``run-<id>.json``.
    :param date: UTC, ISO 8601, to the second.
    :param book_commit: commit of the book, with ``+`` when files were changed; empty if unknown.
    """

    id: str
    date: str
    book_commit: str
    machine: Machine


@dataclass(frozen=True)
class Artifact:
    """The trace of a timeline, compressed beside the recording.

    :param file: name of the compressed file in the chapter's folder.
    :param title: what it is, in words.
    :param bytes: its compressed size.
    :param sha256: of the compressed file.
    """

    file: str
    title: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Recording:
    """What one CUDA cell showed.

    :param chapter: file name of the chapter, without folder and suffix.
    :param cell: name of the cell.
    :param digest: `cell_code.digest` of the code that ran.
    :param run: id of the `Run`.
    :param seconds: wall time of the cell.
    :param outputs: in order; each ``{"stream": "stdout", "text": …}`` or
        ``{"data": mime bundle, "metadata": …}``.
    :param data: name → JSON value that the cell kept with `record_data`.
    """

    chapter: str
    cell: str
    digest: str
    run: str
    seconds: float
    outputs: tuple[Mapping[str, Any], ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()


def folder() -> Path:
    """Return the folder of the recordings: the book's around here, else beside the toolkit."""
    here = Path.cwd()
    for place in (here, *here.parents):
        if (place / "_toc.yml").is_file():
            return place / "recordings"
    package = Path(__file__).parents[1]
    inside = package / "recordings"
    return inside if inside.is_dir() else package.parent / "recordings"


def find(name: str, digest: str, root: Path) -> Recording | None:
    """Return the recording of a cell, current or not, or None if there is none.

    The chapter is the one that ``INSIDETORCH_CHAPTER`` names. Without it, the chapter whose
    recording of that name has that digest; failing that, the only one with a cell of that name.
    """
    chapter = os.environ.get("INSIDETORCH_CHAPTER", "")
    if chapter:
        path = root / chapter / f"{name}.json"
        return load(path) if path.is_file() else None
    found = [load(path) for path in sorted(root.glob(f"*/{name}.json"))]
    current = [recording for recording in found if recording.digest == digest]
    if current:
        return current[0]
    return found[0] if len(found) == 1 else None


def refuse_stale(recording: Recording) -> NoReturn:
    """Say that the code of a cell is no longer what was recorded; a build stops at it.

    :raises BookError: always.
    """
    raise BookError(
        f"recordings/{recording.chapter}/{recording.cell}.json was recorded from other code than "
        f"%%cuda {recording.cell} has now; on a GPU box, refresh it with "
        f"`make record CHAPTERS={recording.chapter}`, or delete the file."
    )


def load(path: Path) -> Recording:
    """Read the recording of a cell.

    :raises BookError: the file is no recording of this schema.
    """
    return read(path.read_bytes(), f"{path.parent.name}/{path.name}")


def run_of(recording: Recording, root: Path) -> Run:
    """Return where a recording was made.

    :raises BookError: the provenance is missing or malformed.
    """
    path = root / recording.chapter / f"run-{recording.run}.json"
    place = f"{recording.chapter}/{path.name}"
    if not path.is_file():
        raise BookError(
            f"recordings/{place} is missing, and {recording.cell} was recorded in that run; "
            "restore it, or record the chapter again with `make record`."
        )
    return read_run(path.read_bytes(), place)


def write(recording: Recording) -> bytes:
    """Return the file of a recording.

    :raises BookError: it is larger than `MAX_CELL`.
    """
    outputs = [_stored(output) for output in recording.outputs]
    content = _json({"schema": SCHEMA, **asdict(recording), "outputs": outputs})
    if len(content) > MAX_CELL:
        raise BookError(
            f"{recording.chapter}: the outputs of %%cuda {recording.cell} are "
            f"{len(content) / 2**20:.1f} MiB, and a recording may have {MAX_CELL // 2**20} MiB; "
            "show less."
        )
    return content


def write_run(run: Run) -> bytes:
    """Return the file of a run."""
    return _json({"schema": SCHEMA, **asdict(run)})


def read(content: bytes, place: str) -> Recording:
    """Read a recording, checking every field.

    :param place: names the file in errors, as ``chapter/cell.json``.
    :raises BookError: the content is no recording, or of another schema.
    """
    if len(content) > MAX_CELL:
        raise BookError(_refusal(place, f"it is larger than {MAX_CELL // 2**20} MiB"))
    entry = _object(content, place)
    chapter, _, file = place.rpartition("/")
    _check(entry.get("chapter") == chapter, place, "its chapter is not the folder's")
    _check(f"{entry.get('cell')}.json" == file, place, "its cell is not the file's")
    _check(_CHAPTER.fullmatch(chapter) is not None, place, "the folder is no chapter's name")
    cell_code.label(str(entry.get("cell")))
    _check(_matches(_SHA, entry.get("digest")), place, "its digest is no SHA-256")
    _check(_matches(_RUN, entry.get("run")), place, "its run has no id")
    _check(_is_number(entry.get("seconds")), place, "its seconds are no number")
    _check(isinstance(entry.get("outputs"), list), place, "it has no list of outputs")
    _check(isinstance(entry.get("data"), dict), place, "it has no data")
    _check(isinstance(entry.get("artifacts"), list), place, "it has no list of artefacts")
    return Recording(
        chapter=chapter,
        cell=entry["cell"],
        digest=entry["digest"],
        run=entry["run"],
        seconds=entry["seconds"],
        outputs=tuple(_output(output, place) for output in entry["outputs"]),
        data=entry["data"],
        artifacts=tuple(_artifact(item, entry["cell"], place) for item in entry["artifacts"]),
    )


def read_run(content: bytes, place: str) -> Run:
    """Read a run, checking every field; arguments and errors as for `read`."""
    entry = _object(content, place)
    machine: Any = entry.get("machine")
    _check(isinstance(machine, dict), place, "it names no machine")
    _check(_matches(_RUN, entry.get("id")), place, "it has no id")
    _check(place.rpartition("/")[2] == f"run-{entry['id']}.json", place, "its id is not the file's")
    _check(isinstance(entry.get("book_commit"), str), place, "it has no commit of the book")
    date = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    _check(_matches(re.compile(date), entry.get("date")), place, "it has no date in UTC")
    gpus = machine.get("gpus")
    _check(
        isinstance(gpus, list) and bool(gpus) and all(g and isinstance(g, str) for g in gpus),
        place,
        "it names no GPU",
    )
    words = [fact.name for fact in fields(Machine) if fact.type == "str"]
    for word in words:
        _check(isinstance(machine.get(word), str), place, f"its machine has no {word}")
    for word in ("torch", "python", "cuda"):
        _check(bool(machine[word]), place, f"its machine has no {word}")
    _check(_is_number(machine.get("memory")), place, "its machine has no memory")
    return Run(
        entry["id"],
        entry["date"],
        entry["book_commit"],
        Machine(
            gpus=tuple(gpus), memory=machine["memory"], **{word: machine[word] for word in words}
        ),
    )


def replayed(recording: Recording, root: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a recording as they may be shown: HTML, SVG and images made safe.

    :param root: the folder of the recordings; with it, timelines get their traces back.
    """
    for output in recording.outputs:
        if "stream" in output:
            yield dict(output)
            continue
        data = sanitise.bundle(output["data"])
        trace = output["data"].get(TRACE_MIME)
        if trace is not None and root is not None:
            data[TRACE_MIME] = _trace(recording, trace, root)
        if str(data.get("text/html", "")).startswith(sanitise.EMPTY_STYLE):
            data["text/html"] = style_block() + data["text/html"][len(sanitise.EMPTY_STYLE) :]
        if data:
            yield {"data": data, "metadata": output["metadata"]}


def _trace(recording: Recording, trace: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the trace that a timeline of a recording was drawn from."""
    place = f"{recording.chapter}/{recording.cell}.json"
    name = f"{recording.cell}.{trace['file']}.gz"
    item = next((a for a in recording.artifacts if a.file == name), None)
    path = root / recording.chapter / name
    if item is None or not path.is_file():
        raise BookError(_refusal(place, "the trace of a timeline is missing"))
    content = path.read_bytes()
    _check(sha256(content) == item.sha256, place, "the trace of a timeline was changed")
    return unpacked(trace["file"], content)


def without_style(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mime bundle whose HTML names the toolkit's style sheet instead of holding it."""
    kept = dict(data)
    fragment = kept.get("text/html")
    if isinstance(fragment, str) and fragment.startswith(style_block()):
        kept["text/html"] = sanitise.EMPTY_STYLE + fragment.removeprefix(style_block())
    return kept


def encoded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mime bundle with its bytes in base64, as notebooks have them."""
    return {
        mime: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for mime, value in data.items()
    }


def present(source: str) -> tuple[str, str]:
    """Return the magic line and the body of a CUDA cell, for a page that shows them apart.

    :param source: the cell; of another cell, the first is empty and the second all of it.
    """
    parts = cell_code.split(source)
    return (f"%%cuda {parts[0]}".rstrip(), parts[1]) if parts else ("", source)


def stage_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook cell as the page shows it: a CUDA cell without its magic, but tagged.

    The label is the first thing that the cell's outputs show, on every machine.
    """
    magic, body = present(cell["source"])
    if cell["cell_type"] != "code" or not magic:
        return dict(cell)
    metadata = dict(cell.get("metadata", {}))
    metadata["tags"] = [*metadata.get("tags", ()), "it-cuda"]
    return {**cell, "source": body, "metadata": metadata}


def chapter_digests(sources: Sequence[str], reached: cell_code.Reached) -> dict[str, str]:
    """Return the digest of each CUDA cell of a chapter, by name.

    :param sources: the chapter's code cells.
    :param reached: tells what they reach in modules.
    """
    cell_code.labels(sources)
    found = {}
    for index, source in enumerate(sources):
        parts = cell_code.split(source)
        if parts:
            name = cell_code.label(parts[0]).name
            found[name] = cell_code.digest(parts[1], sources[:index], reached)
    return found


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _stored(output: Mapping[str, Any]) -> dict[str, Any]:
    if "stream" in output:
        return {**output, "text": output["text"].splitlines(keepends=True)}
    data = {
        mime: value.splitlines(keepends=True)
        if isinstance(value, str) and not _is_binary(mime)
        else value
        for mime, value in output["data"].items()
    }
    return {"data": data, "metadata": dict(output.get("metadata", {}))}


def _output(output: Any, place: str) -> dict[str, Any]:
    what = "an output of it is malformed"
    _check(isinstance(output, dict), place, what)
    if "stream" in output:
        _check(set(output) == {"stream", "text"} and output["stream"] in _STREAMS, place, what)
        return {"stream": output["stream"], "text": _joined(output["text"], place)}
    _check(set(output) == {"data", "metadata"}, place, what)
    data, metadata = output["data"], output["metadata"]
    _check(isinstance(data, dict) and isinstance(metadata, dict), place, what)
    _check(all(_MIME.fullmatch(mime) for mime in data), place, what)
    trace = data.get(TRACE_MIME)
    _check(trace is None or (isinstance(trace, dict) and set(trace) == {"file"}), place, what)
    return {
        "data": {
            mime: _joined(value, place)
            if isinstance(value, list) and not mime.endswith("json")
            else value
            for mime, value in data.items()
        },
        "metadata": metadata,
    }


def _artifact(item: Any, cell: str, place: str) -> Artifact:
    what = "an artefact of it is malformed"
    _check(isinstance(item, dict), place, what)
    _check(set(item) == {"file", "title", "bytes", "sha256"}, place, what)
    _check(_matches(_ARTIFACT, item["file"]), place, what)
    _check(item["file"].startswith(f"{cell}."), place, what)
    _check(isinstance(item["title"], str) and _matches(_SHA, item["sha256"]), place, what)
    _check(_is_number(item["bytes"]) and item["bytes"] <= MAX_ARTIFACT, place, what)
    return Artifact(**item)


def _joined(lines: Any, place: str) -> str:
    _check(
        isinstance(lines, list) and all(isinstance(line, str) for line in lines),
        place,
        "a text of it is no list of lines",
    )
    return "".join(lines)


def _object(content: bytes, place: str) -> dict[str, Any]:
    try:
        entry = json.loads(content)
    except (ValueError, RecursionError):
        raise BookError(_refusal(place, "it is not valid JSON")) from None
    _check(isinstance(entry, dict), place, "it is no JSON object")
    schema = entry.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise BookError(_refusal(place, f"its schema is {schema!r}, and this book reads {SCHEMA}"))
    return dict(entry)


def _check(holds: bool, place: str, problem: str) -> None:
    if not holds:
        raise BookError(_refusal(place, problem))


def _refusal(place: str, problem: str) -> str:
    return f"recordings/{place} is refused: {problem}; record the chapter again."


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_binary(mime: str) -> bool:
    return mime.startswith("image/") and mime != "image/svg+xml"


def _json(value: Mapping[str, Any]) -> bytes:
    def text(ascii_only: bool) -> str:
        return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=ascii_only) + "\n"

    try:
        return text(ascii_only=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return text(ascii_only=True).encode()
