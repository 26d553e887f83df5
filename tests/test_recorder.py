"""The recorder: chapters run with a simulated device, profiles, failures, numbers that moved."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_cuda_cells import FAKE, MACHINE, ROOT, RUN, record, shell_in

from insidetorch.book.project import open_project
from insidetorch.commands.record import book_commit, scripts
from insidetorch.errors import BookError
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import machine, sanitise
from insidetorch.gpu import recording as recordings
from insidetorch.gpu.recording import Recording
from insidetorch.recorder import record as recorder
from insidetorch.recorder.record import Script
from insidetorch.records import RECORD_MIME
from insidetorch.show import traces
from insidetorch.show.traces import TRACE_MIME

# ── The recorder ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Give what runs cells."""
    yield from shell_in(tmp_path, monkeypatch)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a device, in this process and in those it starts; return a folder for a book."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "sitecustomize.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    monkeypatch.setattr(machine, "machine", lambda: MACHINE)
    (tmp_path / "book").mkdir()
    return tmp_path / "book"


def script(*sources: str, name: str = "demo") -> Script:
    return Script(f"notebooks/{name}", tuple({"source": s, "tags": []} for s in sources))


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot much of a picture").decode()
SETUP = (
    "import sys\nimport torch\nfrom IPython.display import HTML, Image, display\n"
    "from insidetorch import claim\nn = 4"
)
SHOWING = textwrap.dedent(f"""\
    %%cuda shows --title "All kinds"
    import base64
    print("out <b>", flush=True)
    print("err", file=sys.stderr)
    display(HTML('<p class="it">a &amp; b</p>'))
    display(Image(base64.b64decode({PNG!r})))
    claim("n is `4`", n == 4, n=n)
    torch.arange(n)
    """)


@pytest.mark.slow
def test_one_file_runs_with_a_device_and_without(device: Path, monkeypatch) -> None:
    """What a reader without a GPU sees is, byte for byte, what the recording machine showed.

    HTML that is not as the sanitiser writes it comes back as the sanitiser writes it.
    """
    import nbformat
    from nbclient import NotebookClient

    recorder.record([script(SETUP, SHOWING)], device, say=lambda line: None)
    (device / "_toc.yml").write_text("")
    (device / "sitecustomize.py").write_text(FAKE)

    def execute(**environment: str) -> list[dict[str, Any]]:
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in (SETUP, SHOWING)]
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT), "INSIDETORCH_BUILD": "1", **environment}
        NotebookClient(book).execute(cwd=str(device / "notebooks"), env=env)
        shown = []
        for output in book.cells[1].outputs:
            data = dict(output.get("data", {}))
            if "image/png" in data:
                data["image/png"] = "".join(data["image/png"].split())
            shown.append({"text": output.get("text"), **data})
        return shown

    live = execute(PYTHONPATH=f"{device}{os.pathsep}{ROOT}")
    replayed = execute()
    assert live[0][RECORD_MIME]["state"] == "live"
    assert replayed[0][RECORD_MIME]["state"] == "recorded"
    assert len(live) == 7
    assert replayed[1:] == live[1:]
    assert replayed[4]["image/png"] == PNG


PROFILING = textwrap.dedent("""\
    %%cuda profiles
    from insidetorch import timeline
    a = torch.ones(8, 8)
    with torch.profiler.profile() as profile:
        a @ a
    timeline(profile, name="one-product", alt="One product.")
    """)


@pytest.mark.slow
def test_a_profile_is_drawn_from_the_recording_and_its_trace_lies_beside_the_page(
    device: Path, run
) -> None:
    """A profile of the CPU stands for one of a GPU: the recorder does not know the difference."""
    recorder.record([script(SETUP, PROFILING)], device, say=lambda line: None)
    folder = device / "recordings" / "demo"
    shutil.copytree(folder, Path("recordings/demo"))
    made = recordings.load(folder / "profiles.json")
    (trace,) = made.artifacts
    assert trace.file.startswith("profiles.one-product-")
    assert "gzip" not in (folder / "profiles.json").read_text()  # the trace is in its own file

    outputs = run(SETUP, PROFILING)
    (shown,) = (out["data"] for out in outputs if TRACE_MIME in out.get("data", {}))
    assert "One product." in shown["text/html"] and "<svg" in shown["text/html"]
    site = traces.files([{"cells": [{"outputs": [{"data": shown}]}]}])
    (path,) = (path for path in site if ".events." not in path)
    assert f'href="../{path}" download' in shown["text/html"]
    assert f'data-trace="{path}" data-title="one-product"' in shown["text/html"]
    assert any(e["name"] == "aten::mm" for e in json.loads(site[path])["traceEvents"])

    kept = Path("recordings/demo") / trace.file
    content = kept.read_bytes()
    kept.write_bytes(content + b"x")
    with pytest.raises(BookError, match="was changed"):
        run(SETUP, PROFILING)
    kept.unlink()
    with pytest.raises(BookError, match="is missing"):
        run(SETUP, PROFILING)


def test_a_link_to_a_trace_is_kept_and_no_other_place() -> None:
    others = ("../traces/../a.json", "../recordings/a-12345678.json", "/traces/a.json")
    for place in ("../traces/a-12345678.json", *others):
        stays = place not in others
        assert (f'href="{place}"' in sanitise.html(f'<a href="{place}">t</a>')) == stays
        marker = f'<span class="it-viewer" data-trace="{place[3:]}" data-title="a&quot;>"></span>'
        clean = sanitise.html(marker)
        assert ("data-trace" in clean) == stays and "data-title" not in clean


def test_a_file_that_is_no_trace_is_refused() -> None:
    good = json.dumps({"traceEvents": [
        {"ph": "X", "name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    ]}).encode()  # fmt: skip
    name = traces.packed(good, "a")["file"]
    assert traces.unpacked(name, gzip.compress(good)) == traces.packed(good, "a")
    for file, content in ((name, b"{}"), (name, gzip.compress(b"[]"))):
        with pytest.raises(BookError, match="holds no trace"):
            traces.unpacked(file, content)
    with pytest.raises(BookError, match="another trace"):
        traces.unpacked("a-00000000.json", gzip.compress(good))


@pytest.mark.slow
def test_a_failing_cell_spoils_no_other_and_a_second_run_goes_on(device: Path) -> None:
    book = script(
        "n = 4",
        "%%cuda first\nfrom insidetorch.gpu.run_or_replay import record_data\n"
        "record_data('d', {'x': [1, 2.5]})\nprint(n)",
        "raise ValueError('only on this machine')",
        "%%cuda fails\nprint('before')\n1 / 0",
        "%%cuda dies\nimport os\nos._exit(3)",
        "%%cuda large\nprint('x' * 3_000_000)",
        "%%cuda two-gpus --gpus 2\n1",
        "%%cuda last\nk = n + 1\nprint(k)",
        "%%cuda uses-last\nk",
    )
    said: list[str] = []
    outcome = recorder.record([book], device, say=said.append)
    assert outcome.recorded == ["demo/first", "demo/last", "demo/uses-last"]
    assert outcome.failed["demo/fails"] == "ZeroDivisionError: division by zero"
    assert outcome.failed["demo/dies"] == "the process ended with 3 in dies"
    assert "show less" in outcome.failed["demo/large"]
    assert "2 GPUs" in outcome.skipped["demo/two-gpus"]
    assert outcome.setup == {"demo/cell 3": "ValueError: only on this machine"}

    folder = device / "recordings" / "demo"
    first = recordings.load(folder / "first.json")
    assert first.data == {"d": {"x": [1, 2.5]}}
    assert first.outputs[-1]["text"].endswith("4\n")
    assert recordings.run_of(first, device / "recordings").machine == MACHINE
    assert first.digest == recordings.chapter_digests(book.sources, lambda code: "")["first"]

    mended = [cell["source"].replace("1 / 0", "n / 8") for cell in book.cells]
    del mended[4:7]
    mended[1] = "%%cuda other\n1"
    said.clear()
    outcome = recorder.record([script(*mended)], device, say=said.append)
    assert outcome.recorded == ["demo/other", "demo/fails"]
    assert outcome.current == ["demo/last", "demo/uses-last"]
    assert any("demo/first.json belongs to no cell" in line for line in said)
    outcome = recorder.record([script(*mended)], device, everything=True, say=said.append)
    assert len(outcome.recorded) == 4
    # Runs are named by the second, so the orphan's and this one may be the same.
    used = {recordings.load(folder / f"{name}.json").run for name in ("first", "last")}
    assert {path.name for path in folder.glob("run-*.json")} == {f"run-{id}.json" for id in used}


def test_without_a_gpu_the_recorder_refuses_in_one_sentence(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "machine", lambda: None)
    with pytest.raises(BookError, match="no CUDA device"):
        recorder.record([script("%%cuda one\n1")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_chapter_is_named_with_those_there_are(device: Path) -> None:
    with pytest.raises(BookError, match="'other' with CUDA cells; there are: demo"):
        recorder.record(
            [script("%%cuda one\n1"), script("1", name="x")], device, chapters=["other"]
        )


def test_another_machine_or_release_makes_a_recording_old(tmp_path: Path) -> None:
    made = record(tmp_path, "%%cuda one\n1")
    folder = tmp_path / "recordings"
    assert recorder.is_current(made, made.digest, MACHINE, folder)
    assert recorder.is_current(made, made.digest, replace(MACHINE, cpu="other"), folder)
    assert not recorder.is_current(made, "0" * 64, MACHINE, folder)
    assert not recorder.is_current(None, made.digest, MACHINE, folder)
    for change in ({"torch": "2.14.0"}, {"gpus": ("other",)}, {"driver": "2"}):
        assert not recorder.is_current(made, made.digest, replace(MACHINE, **change), folder)


def timing(median: float, iqr: float, label: str = "add") -> dict[str, Any]:
    entry = {"kind": "timing", "label": label, "median": median, "iqr": iqr}
    return {"data": {"text/plain": f"{median}", RECORD_MIME: entry}, "metadata": {}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("took 3.25 ms on 4", "took 3.30 ms on 4", []),
        ("took 3.25 ms on 4", "took 6.50 ms on 4", ["“took 3.25 ms on 4” → “took 6.50 ms on 4”"]),
        ("1,000 nodes", "1e3 nodes", []),
        ("a 1\nb 2", "a 1\nb 3", ["“b 2” → “b 3”"]),
        ("same\n1", "other\n1", ["1 lines are new, 1 are gone"]),
    ],
)
def test_numbers_that_moved_beyond_the_noise_are_told(
    before: str, after: str, expected: list[str]
) -> None:
    def made(text: str) -> Recording:
        outputs = ({"stream": "stdout", "text": text},)
        return Recording("demo", "one", "0" * 64, RUN.id, 0.1, outputs)

    assert recorder.changes(made(before), made(after)) == expected


def test_a_timing_moved_if_it_left_its_spread() -> None:
    def told(after: dict[str, Any]) -> list[str]:
        old = Recording("demo", "one", "0" * 64, RUN.id, 0.1, (timing(1.0, 0.3),))
        return recorder.changes(old, replace(old, outputs=(after,)))

    assert told(timing(1.25, 0.1)) == [] and told(timing(1.05, 0.01)) == []
    assert told(timing(2.0, 0.1)) == ["add: 1 s → 2 s (+100%)"]
    assert told(timing(2.0, 0.1, label="other")) == []


@pytest.mark.slow
def test_the_books_recordings_fit_its_cells() -> None:
    book = scripts(open_project(ROOT))
    reached = cell_code.reached_in([ROOT])
    assert recorder.orphans(book, ROOT / "recordings") == []
    for entry in book:
        for name, digest in recordings.chapter_digests(entry.sources, reached).items():
            path = ROOT / "recordings" / entry.name / f"{name}.json"
            assert not path.is_file() or recordings.load(path).digest == digest, path


def test_the_books_commit_is_of_this_checkout(tmp_path: Path) -> None:
    assert book_commit(tmp_path) == ""
