"""The recorder on a box that kills, hangs and lacks things: what is recorded comes home.

The device is simulated, as in `test_cuda_cells`; the processes are real.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from insidetorch.errors import BookError
from insidetorch.gpu import machine
from insidetorch.gpu import recording as recordings
from insidetorch.gpu import run_or_replay as cuda
from insidetorch.gpu.machine import Machine
from insidetorch.recorder import record as recorder
from insidetorch.recorder.record import Script
from insidetorch.records import RECORD_MIME

ROOT = Path(__file__).parent.parent
MACHINE = Machine(
    ("Simulated device",), "9.0", 2**33, "1.2", "13.0", "2.13.0", "c" * 40, "3.12.1", "OS", "CPU",
    triton="3.7.0", cudnn="91002", clocks="1980 MHz, memory 2619 MHz", power="700.00 W",
)  # fmt: skip
FAKE = f"""
import insidetorch.gpu.machine as layer
layer.machine = lambda: layer.{MACHINE!r}
layer.answers = lambda: True
import sys
del sys.modules['insidetorch']
"""


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a device, in this process and in those it starts; return a folder for a book."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "sitecustomize.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fake'}{os.pathsep}{ROOT}")
    monkeypatch.setattr(machine, "machine", lambda: MACHINE)
    (tmp_path / "book").mkdir()
    return tmp_path / "book"


def script(*sources: str, name: str = "demo") -> Script:
    cells = ({"source": textwrap.dedent(source), "tags": []} for source in sources)
    return Script(f"notebooks/{name}", tuple(cells))


# ── What a cell leaves ──────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_deprecation_that_no_cell_declared_is_named_and_not_recorded(device: Path) -> None:
    """It would fail the build of everybody who imports the recording."""
    said: list[str] = []
    warn = 'warnings.warn("{} is old", DeprecationWarning)'
    book = script(
        "import atexit, os, warnings\nfrom insidetorch import warns",
        f"%%cuda one\nprint('a')\n{warn.format('this')}\nwarnings.warn('stays', UserWarning)",
        f"%%cuda two\nwith warns(DeprecationWarning):\n    {warn.format('that')}",
    )
    recorder.record([book], device, say=said.append)

    def shown(cell: str) -> list[str]:
        outputs = recordings.load(device / "recordings" / "demo" / f"{cell}.json").outputs
        entries = [output.get("data", {}).get(RECORD_MIME, {}) for output in outputs]
        return [entry["message"] for entry in entries if entry.get("kind") == "warning"]

    assert shown("one") == ["stays"] and shown("two") == ["that is old"]
    assert [line for line in said if "DeprecationWarning" in line and "this is old" in line]
    assert not [line for line in said if "that is old" in line]


@pytest.mark.slow
def test_a_worker_compiles_by_itself_and_leaves_at_once(device: Path) -> None:
    book = script(
        """\
        %%cuda one
        import atexit, os
        atexit.register(lambda: open("waited", "w"))
        print(os.environ["TORCHINDUCTOR_COMPILE_THREADS"])
        """
    )
    outcome = recorder.record([book], device, say=lambda line: None)
    assert outcome.recorded == ["demo/one"]
    made = recordings.load(device / "recordings" / "demo" / "one.json")
    assert made.outputs == ({"stream": "stdout", "text": "1\n"},)
    assert not (device / "notebooks" / "waited").exists()


# ── Cells that fail ─────────────────────────────────────────────────────────────────────────────

COUNTED = "open('runs', 'a').write('x')"


@pytest.mark.slow
def test_what_fails_is_tried_once_and_costs_the_chapter_one_more_process(device: Path) -> None:
    book = script(
        COUNTED,
        "%%cuda raises\n1 / 0",
        "%%cuda dies\nk = 1\n__import__('os')._exit(3)",
        "%%cuda needs-it\nprint(k)",
        "%%cuda last\nprint('last')",
    )
    runs = device / "notebooks" / "runs"
    said: list[str] = []
    outcome = recorder.record([book], device, say=said.append)
    assert outcome.recorded == ["demo/last"]
    assert runs.read_text() == "xx", "one process until it died, and one for the rest"
    assert "needs what %%cuda dies makes" in outcome.failed["demo/needs-it"]

    again = recorder.record([book], device, say=said.append)
    assert runs.read_text() == "xx", "nothing is left to try"
    assert again.failed.keys() == outcome.failed.keys() and again.current == ["demo/last"]
    assert "division by zero" in again.failed["demo/raises"]
    assert "--retry" in again.failed["demo/raises"]

    mended = [{**cell, "source": cell["source"].replace("1 / 0", "1")} for cell in book.cells]
    third = recorder.record([Script(book.doc, tuple(mended))], device, say=said.append)
    assert third.recorded == ["demo/raises"], "other code is tried"
    recorder.record([book], device, retry=True, say=said.append)
    assert runs.read_text() == "xxxx"


@pytest.mark.slow
def test_a_cell_that_hangs_is_ended_and_not_tried_again(device: Path) -> None:
    sleep = "__import__('time').sleep(600)"
    book = script(f"%%cuda hangs\n{sleep}", "%%cuda one\nprint(1)")
    outcome = recorder.record([book], device, limit=5, say=lambda line: None)
    assert outcome.recorded == ["demo/one"]
    assert outcome.failed["demo/hangs"] == "it did not end within 5 s"
    said: list[str] = []
    again = recorder.record([book], device, limit=5, say=said.append)
    assert list(again.failed) == ["demo/hangs"]
    assert not [line for line in said if line.startswith("  ")], "no cell runs"


def test_a_process_that_does_not_start_is_no_failure_of_the_cells(
    device: Path, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(BookError, match=r"demo did not start \(.* ended with 1"):
        recorder.record([script("%%cuda one\nprint(1)")], device, say=lambda line: None)
    monkeypatch.undo()
    assert json.loads((device / "_build" / "record-failed.json").read_text()) == {}


# ── A box that kills ────────────────────────────────────────────────────────────────────────────


def box(folder: Path, *scripts: Script) -> subprocess.Popen[str]:
    """Unpack a bundle without wheels in `folder` and start it."""
    (folder / "packages").mkdir(parents=True)
    shutil.copy(ROOT / "insidetorch" / "recorder" / "on_the_box.py", folder / "record.py")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    cells = [{"doc": s.doc, "cells": list(s.cells)} for s in scripts]
    about = {"schema": 1, "python": version, "book_commit": "b" * 40, "scripts": cells}
    (folder / "bundle.json").write_text(json.dumps(about))
    return subprocess.Popen(
        [sys.executable, folder / "record.py", "--archive", folder / "kept" / "out.tar.gz"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to pass within two minutes")


def alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


SLEEPS = """\
%%cuda sleeps
import os, time
open("pid.part", "w").write(str(os.getpid()))
os.rename("pid.part", "pid")
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_of_a_run_that_is_killed_the_chapters_before_come_home(
    device: Path, end: signal.Signals
) -> None:
    folder = device / "box"
    books = script("%%cuda one\nprint(1)"), script("%%cuda two\nprint(2)", SLEEPS, name="second")
    process = box(folder, *books)
    pid = folder / "notebooks" / "pid"
    until(lambda: pid.is_file() or process.poll() is not None)
    process.send_signal(end)
    printed = process.communicate(timeout=60)[0]
    assert "one: recorded" in printed and "sleeps …" in printed, "its lines were not flushed"
    assert process.returncode != 0 and "Traceback" not in printed
    worker = int(pid.read_text())
    until(lambda: not alive(worker))
    with tarfile.open(folder / "kept" / "out.tar.gz") as archive:
        names = set(archive.getnames())
    assert "recordings/demo/one.json" in names
    assert ("recordings/second/two.json" in names) == (end is signal.SIGTERM)


# ── What the box has ────────────────────────────────────────────────────────────────────────────


def test_a_machine_is_described_down_to_its_clocks(tmp_path: Path, monkeypatch) -> None:
    import torch

    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho '570.1, 1980 MHz, 2619 MHz, 700.00 W'\necho 'x, x, x, x'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda index: "GPU",
        get_device_capability=lambda index: (9, 0),
        get_device_properties=lambda index: SimpleNamespace(total_memory=2**33),
    )  # fmt: skip
    monkeypatch.setattr(torch, "cuda", found)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
    here = machine.machine()
    assert here is not None
    assert (here.driver, here.clocks, here.power, here.cudnn) == (
        "570.1", "1980 MHz, memory 2619 MHz", "700.00 W", "91002",
    )  # fmt: skip
    smi.write_text("#!/bin/sh\necho '570.1, [N/A], [N/A], [N/A]'\n")
    here = machine.machine()
    assert here is not None and (here.driver, here.clocks, here.power) == ("570.1", "", "")


def test_provenance_names_the_compiler_the_library_and_the_limits() -> None:
    run = recordings.Run("20260101t000000z-simulated", "2026-01-01T00:00:00Z", "", MACHINE)
    made = recordings.Recording("demo", "one", "0" * 64, run.id, 0.1, ())
    shown = cuda.provenance(cuda.Label("one"), made, run)
    for fact in ("Triton 3.7.0", "cuDNN 91002", "1980 MHz", "700.00 W"):
        assert fact in shown.text and fact in shown.html


def test_another_triton_or_cudnn_makes_a_recording_old(tmp_path: Path) -> None:
    run = recordings.Run("20260101t000000z-simulated", "2026-01-01T00:00:00Z", "", MACHINE)
    made = recordings.Recording("demo", "one", "0" * 64, run.id, 0.1, ())
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / f"run-{run.id}.json").write_bytes(recordings.write_run(run))
    assert recorder.is_current(made, made.digest, replace(MACHINE, power="350 W"), tmp_path)
    for change in ({"triton": "3.6.0"}, {"cudnn": "90000"}):
        assert not recorder.is_current(made, made.digest, replace(MACHINE, **change), tmp_path)


def test_a_box_without_a_compiler_says_so_at_the_start(device: Path, monkeypatch) -> None:
    said: list[str] = []
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(recorder, "tool", lambda *names: None)
    recorder.record([], device, say=said.append)
    assert "no C compiler" in said[1]
    said.clear()
    monkeypatch.setattr(recorder, "tool", lambda *names: "/usr/bin/cc")
    recorder.record([], device, say=said.append)
    assert not [line for line in said if "no C compiler" in line]


# ── The book's cells ────────────────────────────────────────────────────────────────────────────

PAGES = [*sorted((ROOT / "notebooks").glob("*.md")), *sorted((ROOT / "book").glob("*.md"))]


def test_no_page_says_in_prose_what_is_recorded() -> None:
    """Such a sentence is wrong from the first recording on, or until then."""
    stale = re.compile(
        r"(?:recorded|run|measured) (?:them |it )?(?:on one )?yet|has run there|"
        r"(?:until|before)[^.]{0,60}has run"
    )
    for page in PAGES:
        text = re.sub(r"(?s)```{code-cell}.*?\n```", "", page.read_text(encoding="utf-8"))
        text = " ".join(text.split())
        about = [s for s in re.split(r"(?<=[.:])\s", text) if re.search(r"GPU|[Cc]ells?\b", s)]
        assert not [s for s in about if stale.search(s)], page.name


def test_what_is_recorded_for_other_cells_is_read_by_one() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        kept = re.findall(r'record_data\("([^"]+)"', text)
        assert not [name for name in kept if f'side_by_side("{name}"' not in text], page.name
