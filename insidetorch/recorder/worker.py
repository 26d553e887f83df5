"""Runs one chapter in this process and writes a recording of its CUDA cells, without Jupyter.

Started by `insidetorch.recorder.process`, one process a chapter: ``python -m
insidetorch.recorder.worker job.json descriptor parent``. What happens is told as JSON lines on
the file descriptor, because cells may print.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from insidetorch import claims
from insidetorch.errors import BookError
from insidetorch.files import write
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import machine
from insidetorch.gpu import recording as recordings
from insidetorch.gpu import run_or_replay as cuda
from insidetorch.gpu.recording import Artifact, Recording
from insidetorch.records import RECORD_MIME
from insidetorch.run.die_with_parent import die_with_parent
from insidetorch.show.traces import TRACE_MIME


class Capture:
    """What a cell shows, in order: streams merged, displays updated in place.

    :ivar outputs: as in `Recording.outputs`.
    """

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self._ids: dict[str, dict[str, Any]] = {}
        self._clear_next = False

    def stream(self, name: str, text: str) -> None:
        if not text:
            return
        self._clear_if_due()
        if self.outputs and self.outputs[-1].get("stream") == name:
            self.outputs[-1]["text"] += text
        else:
            self.outputs.append({"stream": name, "text": text})

    def display(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any],
        id: str = "",
        update: bool = False,
    ) -> None:
        bundle = recordings.without_style(recordings.encoded(data))
        output = {"data": bundle, "metadata": dict(metadata)}
        if update:
            self._ids.get(id, {}).update(output)
            return
        self._clear_if_due()
        self.outputs.append(output)
        if id:
            self._ids[id] = output

    def clear(self, wait: bool = False) -> None:
        if wait:
            self._clear_next = True
        else:
            self.outputs.clear()

    def _clear_if_due(self) -> None:
        if self._clear_next:
            self.outputs.clear()
            self._clear_next = False


_capture = Capture()


class _Stream(io.TextIOBase):
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        _capture.stream(self._name, text)
        return len(text)


class _Publisher(DisplayPublisher):
    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        source: object = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: object,
    ) -> None:
        id = str((transient or {}).get("display_id") or "")
        _capture.display(data, metadata or {}, id, update)

    def clear_output(self, wait: bool = False) -> None:
        _capture.clear(wait)


class _Hook(DisplayHook):
    def write_output_prompt(self) -> None:
        pass

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        _capture.display(format_dict, md_dict or {})

    def finish_displayhook(self) -> None:
        self._is_active = False


class Shell(InteractiveShell):
    """An IPython shell whose outputs go to the running `captured`."""

    displayhook_class = _Hook
    display_pub_class = _Publisher


@contextmanager
def captured() -> Iterator[Capture]:
    """Collect what cells show inside the ``with`` block."""
    global _capture
    _capture = Capture()
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Stream("stdout"), _Stream("stderr")
    try:
        yield _capture
    finally:
        sys.stdout, sys.stderr = streams


def run_chapter(job: Mapping[str, Any], tell: TextIO) -> None:
    """Run a chapter's cells and record those that the job wants.

    :param job: ``chapter``, ``cells`` (each ``source`` and ``tags``), ``wanted`` (names of cells),
        ``run`` (id) and ``folder`` (of the recordings).
    :param tell: receives one JSON object a line: what happened.

    It returns early when a cell has left the device unusable for this process.
    """

    def say(event: str, cell: str, **more: object) -> None:
        tell.write(json.dumps({"event": event, "cell": cell, **more}) + "\n")
        tell.flush()

    here = machine.machine()
    assert here is not None
    sources = [cell["source"] for cell in job["cells"]]
    wanted = set(job["wanted"])
    digests = recordings.chapter_digests(
        sources, cell_code.reached_in([Path(place or ".") for place in sys.path])
    )
    # `import insidetorch` in a cell comes too late to find out that a shell is running.
    shell = Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    claims.record_warnings()
    cuda.register()
    for index in cell_code.cells_to_run(sources, wanted):
        source, tags = sources[index], job["cells"][index].get("tags") or ()
        parts = cell_code.split(source)
        if parts is None:
            say("running", f"cell {index + 1}")
            with captured():
                error = _run(shell, source)
            if error and "raises-exception" not in tags:
                say("setup failed", f"cell {index + 1}", problem=error)
            continue
        label = cell_code.label(parts[0])
        lack = cuda.shortage(label, here)
        if lack:
            say("skipped", label.name, problem=lack)
            continue
        say("running", label.name)
        begun = time.monotonic()
        cuda.take()
        with captured() as capture:
            error = _run(shell, parts[1])
        seconds = round(time.monotonic() - begun, 3)
        values = cuda.take()
        if error and "raises-exception" not in tags:
            say("failed", label.name, problem=error)
            if not machine.answers():
                return
            continue
        cuda.keep(values, cuda.Kept(None, cuda.line_of(here), here.gpu, True))
        if label.name not in wanted:
            continue
        folder = Path(job["folder"]) / job["chapter"]
        dropped = _drop_deprecations(capture.outputs)
        try:
            traces = _traces(capture.outputs, label.name)
            recording = Recording(
                job["chapter"], label.name, digests[label.name], job["run"], seconds,
                tuple(capture.outputs), values, tuple(artifact for artifact, _ in traces),
            )  # fmt: skip
            content = recordings.write(recording)
        except (BookError, OSError, TypeError, ValueError) as problem:
            say("failed", label.name, problem=str(problem))
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for artifact, compressed in traces:
            write(folder / artifact.file, compressed)
        write(folder / f"{label.name}.json", content)
        say("recorded", label.name, seconds=seconds, dropped=dropped)


def _run(shell: Any, source: str) -> str:
    """Run a cell; return what it raised in one line, or nothing."""
    result = shell.run_cell(source, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return ""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 500 else f"{text[:500]} …"


def _traces(outputs: Sequence[dict[str, Any]], cell: str) -> list[tuple[Artifact, bytes]]:
    """Take the traces of timelines out of the outputs, which keep their names."""
    found = {}
    for output in outputs:
        trace = output.get("data", {}).get(TRACE_MIME)
        if trace:
            name, content = trace["file"], base64.b64decode(trace["gzip"])
            if len(content) > recordings.MAX_ARTIFACT:
                raise BookError(
                    f"the trace {name} has {len(content) / 2**20:.1f} MiB compressed, and one may "
                    f"have {recordings.MAX_ARTIFACT // 2**20} MiB; trace fewer steps."
                )
            item = Artifact(
                f"{cell}.{name}.gz", f"the trace {name}", len(content), recordings.sha256(content)
            )
            found[name] = (item, content)
            output["data"][TRACE_MIME] = {"file": name}
    return list(found.values())


def _drop_deprecations(outputs: list[dict[str, Any]]) -> list[str]:
    """Take out the deprecations that no cell declares, and return them: they would fail a build."""
    dropped = []
    for output in list(outputs):
        entry = output.get("data", {}).get(RECORD_MIME) or {}
        if entry.get("kind") == "warning" and entry["deprecation"] and not entry["declared"]:
            outputs.remove(output)
            dropped.append(f"{entry['category']}: {entry['message']}")
    return dropped


def main(arguments: Sequence[str]) -> None:
    """Run the job in the file that is the first argument, telling the descriptor that follows.

    The third is the process that started this one; this one ends with it.
    """
    die_with_parent(int(arguments[2]))
    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    code = 1
    try:
        with os.fdopen(int(arguments[1]), "w", encoding="utf-8") as tell:
            run_chapter(job, tell)
            tell.write(json.dumps({"event": "end", "cell": ""}) + "\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Neither threads nor exit handlers of a cell are waited for.
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
