"""CUDA cells: live with a device, replayed without, refused when stale; how they are recorded.

The device is simulated: only the layer that names it is replaced. Every output is one that the
cell really made, on the CPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from insidetorch.errors import BookError
from insidetorch.facts import tool
from insidetorch.gpu import cell as cell_code
from insidetorch.gpu import recording as recordings
from insidetorch.gpu import run_or_replay as cuda
from insidetorch.gpu import without_gpu as pretend
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Recording, Run
from insidetorch.measure.cpu_beside_gpu import measured, quantity, side_by_side
from insidetorch.recorder.worker import Shell, captured
from insidetorch.records import RECORD_MIME

ROOT = Path(__file__).parent.parent
MACHINE = Machine(
    ("Simulated device",), "9.0", 2**33, "1.2", "13.0", "2.13.0", "c" * 40, "3.12.1", "OS", "CPU"
)  # fmt: skip
RUN = Run("20260101t000000z-simulated", "2026-01-01T00:00:00Z", "b" * 40, MACHINE)
FAKE = f"import insidetorch.gpu.machine as layer\nlayer.machine = lambda: layer.{MACHINE!r}\n"
FAKE += "layer.answers = lambda: True\n"
# The package finds out when it is imported whether IPython runs, so a kernel must import it itself.
FAKE += "import sys\ndel sys.modules['insidetorch']\n"


def shell_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Run cells one after another in one IPython shell, in a book's folder; return the outputs."""
    (tmp_path / "_toc.yml").write_text("")
    (tmp_path / "recordings").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("INSIDETORCH_BUILD", "INSIDETORCH_CHAPTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda, "_here", lambda: None)
    monkeypatch.setattr(cuda, "_kept", {})
    shell = Shell.instance()
    cuda.register()

    def cells(*sources: str) -> list[dict[str, Any]]:
        with captured() as capture:
            for source in sources:
                result = shell.run_cell(source, store_history=True)
                error = result.error_before_exec or result.error_in_exec
                if error:
                    raise error
        return capture.outputs

    yield cells
    Shell.clear_instance()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Give what runs cells."""
    yield from shell_in(tmp_path, monkeypatch)


def record(root: Path, *sources: str, **changes: Any) -> Recording:
    """Write a recording of the last of these cells, which prints what it would print."""
    parts = cell_code.split(sources[-1])
    assert parts is not None
    name = cell_code.label(parts[0]).name
    digest = cell_code.digest(parts[1], sources[:-1])
    outputs = ({"stream": "stdout", "text": "recorded\n"},)
    made = replace(Recording("demo", name, digest, RUN.id, 0.1, outputs), **changes)
    folder = root / "recordings" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(recordings.write(made))
    (folder / f"run-{RUN.id}.json").write_bytes(recordings.write_run(RUN))
    return made


def states(outputs: list[dict[str, Any]]) -> list[str]:
    found = [output.get("data", {}).get(RECORD_MIME, {}) for output in outputs]
    return [entry["state"] for entry in found if entry.get("kind") == "cuda"]


# ── The magic ───────────────────────────────────────────────────────────────────────────────────


def test_without_a_recording_a_box_says_that_nothing_ran(run) -> None:
    (box,) = run("%%cuda one --title 'A & B'\nraise SystemExit")
    assert states([box]) == ["not recorded"]
    assert "not yet recorded" in box["data"]["text/plain"]
    assert 'class="it it-absent"' in box["data"]["text/html"]
    assert "A &amp; B" in box["data"]["text/html"] and cuda.GUIDE in box["data"]["text/html"]


def test_away_from_the_book_a_box_says_that_its_recordings_are_not_there(run, tmp_path) -> None:
    (tmp_path / "recordings").rmdir()
    (box,) = run("%%cuda one\nraise SystemExit")
    assert states([box]) == ["not at hand"] and "not on this machine" in box["data"]["text/plain"]


def test_a_current_recording_is_replayed_with_its_provenance(run, tmp_path: Path) -> None:
    cells = ("n = 4", "%%cuda one\nprint(n)  # here\n")
    record(tmp_path, cells[0], "%%cuda one --title T\nprint( n )")
    head, output = run(*cells)
    assert output == {"stream": "stdout", "text": "recorded\n"}
    assert states([head]) == ["recorded"]
    text = head["data"]["text/plain"]
    for fact in ("Simulated device", "1.2", "13.0", "2.13.0", "c" * 12, "3.12.1", "2026-01-01"):
        assert fact in text and fact in head["data"]["text/html"]
    assert "b" * 12 in text
    entry = head["data"][RECORD_MIME]
    assert entry["gpu"] == "Simulated device" and entry["book_commit"] == "b" * 40


@pytest.mark.parametrize(
    "cells",
    [("n = 4", "%%cuda one\nprint(n + 1)"), ("n = 5", "%%cuda one\nprint(n)")],
    ids=["cell", "helper"],
)
def test_a_stale_recording_is_not_shown_and_fails_the_build(
    run, tmp_path: Path, monkeypatch, cells: tuple[str, str]
) -> None:
    record(tmp_path, "n = 4", "%%cuda one\nprint(n)")
    (box,) = run(*cells)
    assert states([box]) == ["stale"] and "recorded\n" not in json.dumps(box)
    monkeypatch.setenv("INSIDETORCH_BUILD", "1")
    with pytest.raises(BookError) as refused:
        run(*cells)
    assert "demo/one.json" in str(refused.value) and "%%cuda one" in str(refused.value)
    assert "make record CHAPTERS=demo" in str(refused.value)


def test_running_a_cell_again_does_not_make_its_recording_stale(run, tmp_path: Path) -> None:
    cells = ("n = 4", "%%cuda one\nprint(n)")
    record(tmp_path, *cells)
    assert states(run(*cells, *cells, "n = 5", cells[1])) == ["recorded"] * 3


def test_with_a_device_the_cell_runs_and_names_the_machine(run, monkeypatch) -> None:
    monkeypatch.setattr(cuda, "_here", lambda: MACHINE)
    head, printed, value = run("x = 20", "%%cuda one\nprint(x)\ny = x + 1\ny * 2")
    assert states([head]) == ["live"] and "Simulated device" in head["data"]["text/plain"]
    assert printed == {"stream": "stdout", "text": "20\n"}
    assert value["data"]["text/plain"] == "42"
    assert run("print(y)") == [{"stream": "stdout", "text": "21\n"}]
    with pytest.raises(ZeroDivisionError):
        run("%%cuda two\n1 / 0")


def test_a_machine_that_is_too_small_replays(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cuda, "_here", lambda: MACHINE)
    (box,) = run("%%cuda one --gpus 2\nraise SystemExit")
    assert "needs 2 GPUs, and this machine has 1" in box["data"]["text/plain"]
    (box,) = run("%%cuda two --memory 16GiB\nraise SystemExit")
    assert "needs 16 GiB of GPU memory, and this machine has 8 GiB" in box["data"]["text/plain"]
    record(tmp_path, "%%cuda three --gpus 2\n1")
    assert states(run("%%cuda three --gpus 2\n1")) == ["recorded"]


def test_foreign_html_is_cleaned(run, tmp_path: Path) -> None:
    html = '<p class="it">a<script>1</script><img src="https://evil.example"></p>'
    record(tmp_path, "%%cuda one\n1", outputs=({"data": {"text/html": html}, "metadata": {}},))
    _, shown = run("%%cuda one\n1")
    assert shown["data"]["text/html"] == '<p class="it">a<img></p>'


def test_what_a_cell_keeps_must_be_json() -> None:
    for value in (float("nan"), {1, 2}, object()):
        with pytest.raises(BookError, match="record_data"):
            cuda.record_data("x", value)
    assert cuda.take() == {}


# ── On the page ─────────────────────────────────────────────────────────────────────────────────


def test_on_the_page_the_magic_line_is_gone_and_the_cell_is_tagged() -> None:
    cell = {"cell_type": "code", "source": "%%cuda one\nprint(1)", "metadata": {"tags": ["x"]}}
    staged = recordings.stage_cell(cell)
    assert staged["source"] == "print(1)" and staged["metadata"]["tags"] == ["x", "it-cuda"]
    assert cell["source"].startswith("%%cuda"), "the notebook that readers get keeps it"
    for other in (
        {"cell_type": "code", "source": "print(1)", "metadata": {}},
        {"cell_type": "markdown", "source": "%%cuda one\n", "metadata": {}},
    ):
        assert recordings.stage_cell(other) == other


# ── Beside the CPU ──────────────────────────────────────────────────────────────────────────────

CPU = {"rows": {"add": 10e9, "mul": 5e9}, "unit": "B/s", "limit": {"name": "a copy", "value": 20e9}}


def test_both_sides_stand_in_one_table_each_with_its_machine_and_limit(run, tmp_path) -> None:
    gpu = measured({"add": 3e12}, unit="B/s", limit=(4e12, "a copy there"))
    record(tmp_path, "%%cuda one\n1", data={"bandwidth": gpu})
    run("%%cuda one\n1")
    text = side_by_side("bandwidth", CPU, caption="Adding").text
    assert "Adding" in text and "300 ×" in text and "75 %" in text and "50 %" in text
    assert "10 GB/s" in text and "3 TB/s" in text and "4 TB/s" in text
    assert "GPU: Simulated device" in text and "recorded 2026-01-01" in text
    assert "this build" in text


def test_without_a_recording_the_gpu_column_says_so(run) -> None:
    shown = side_by_side("bandwidth", CPU, caption="Adding")
    assert "not yet recorded" in shown.text and "not yet recorded" in shown.html
    assert "5 GB/s" in shown.text and "×" not in shown.text


def test_a_live_cell_gives_its_own_numbers(run, monkeypatch) -> None:
    monkeypatch.setattr(cuda, "_here", lambda: MACHINE)
    keep = "record_data('t', {'rows': {'add': 0.5}, 'unit': 's', 'limit': None})"
    run("from insidetorch.gpu.run_or_replay import record_data", f"%%cuda one\n{keep}")
    cpu = measured({"add": 1.0}, unit="s")
    assert "0.5 ×" in side_by_side("t", cpu, caption="Time").text
    with pytest.raises(BookError, match=r"in B/s and the GPU in s"):
        side_by_side("t", CPU, caption="Time")


def test_results_of_bench_keep_their_rate_or_their_time() -> None:
    from insidetorch import bench

    timed = bench("x + 1", globals={"x": 1}, min_run_time=0.01)
    rated = bench("x + 1", globals={"x": 1}, min_run_time=0.01, work=8.0, unit="B")
    assert measured({"a": timed}) == {"rows": {"a": timed.median}, "unit": "s", "limit": None}
    assert measured({"a": rated}, limit=(1e9, "l"))["unit"] == "B/s"
    with pytest.raises(BookError, match="B/s and s"):
        measured({"a": timed, "b": rated})
    with pytest.raises(BookError, match="nothing to keep"):
        measured({})
    assert quantity(1.5e-3, "s") == "1.5 ms" and quantity(7, "kernels") == "7 kernels"


# ── Without a device ────────────────────────────────────────────────────────────────────────────

KERNEL = """
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def softmax_times_sigmoid(x):
    import torch

    return torch.softmax(x, -1) * torch.sigmoid(x)


@pytest.mark.slow
def test_inductor_writes_triton_for_a_gpu_that_is_not_there() -> None:
    text = pretend.triton_code(softmax_times_sigmoid, (64, 1024)).text
    assert "Nothing was run" in text and "@triton.jit" in text
    assert "tl.load" in text and "tl.sigmoid" in text and "tl.store" in text
    assert text.count("@triton.jit") == 1, "softmax and sigmoid are one kernel"
    with pytest.raises(BookError, match="defined with def"):
        pretend.triton_code(lambda x: x, (1,))
    with pytest.raises(BookError, match=r"triton_code\(softmax_times_sigmoid"):
        pretend.triton_code(softmax_times_sigmoid, (4,), (4,))


@pytest.mark.slow
def test_ptx_says_what_it_is_or_what_is_missing(monkeypatch) -> None:
    if tool("nvcc"):
        text = pretend.ptx(KERNEL).text
        assert "Nothing was run" in text and "fma.rn.f32" in text and "st.global" in text
        assert "multiply and add with one rounding" in text
        with pytest.raises(BookError, match="nvcc refuses the source"):
            pretend.ptx("__global__ void f() { nonsense }")
        with pytest.raises(BookError, match="no architecture"):
            pretend.ptx(KERNEL, arch="-run")
    monkeypatch.setattr(pretend, "tool", lambda *names: None)
    shown = pretend.ptx(KERNEL)
    assert "not installed" in shown.text and "it-absent" in shown.html
