"""The bundle for a box without a network: what returns is checked, and it runs on torch alone."""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools import lack

from insidetorch.book.project import open_project
from insidetorch.commands.record import scripts
from insidetorch.errors import BookError
from insidetorch.gpu import recording as recordings
from insidetorch.gpu.machine import Machine
from insidetorch.gpu.recording import Artifact, Recording, Run
from insidetorch.recorder import bundle
from insidetorch.recorder.record import Script

ROOT = Path(__file__).parent.parent
SCRIPT = Script(
    "notebooks/demo",
    ({"source": "n = 4", "tags": []}, {"source": "%%cuda one\nprint(n)", "tags": []}),
)
MACHINE = Machine(
    ("Simulated device",), "9.0", 2**33, "1.2", "13.0", "2.13.0", "c" * 40, "3.12.1", "OS", "CPU"
)  # fmt: skip
RUN = Run("20260101t000000z-simulated", "2026-01-01T00:00:00Z", "b" * 40, MACHINE)
TRACE = gzip.compress(b"{}" * 1000, mtime=0)


def good_files() -> dict[str, bytes]:
    """Return the files of a good archive without its manifest."""
    digest = recordings.chapter_digests(SCRIPT.sources, lambda code: "")["one"]
    made = Recording(
        "demo", "one", digest, RUN.id, 0.5, ({"stream": "stdout", "text": "4\n"},), {"n": 4},
        (Artifact("one.trace.json.gz", "a trace", len(TRACE), recordings.sha256(TRACE)),),
    )  # fmt: skip
    return {
        "recordings/demo/one.json": recordings.write(made),
        f"recordings/demo/run-{RUN.id}.json": recordings.write_run(RUN),
        "recordings/demo/one.trace.json.gz": TRACE,
    }


def pack(files: dict[str, bytes], manifest: object = None, *more: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    sums = {name: recordings.sha256(content) for name, content in files.items()}
    listed = {"schema": 1, "files": sums} if manifest is None else manifest
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in {"manifest.json": json.dumps(listed).encode(), **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in more:
            archive.addfile(entry)
    return out.getvalue()


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bundle") / "book"  # its parent is compared whole
    (root / "recordings" / "other").mkdir(parents=True)
    (root / "recordings" / "other" / "kept.txt").write_text("kept")
    return root


def refused(checkout: Path, content: bytes, **options: bool) -> str:
    """Import an archive that must be refused; return the sentence."""
    archive = checkout.parent / "recordings.tar.gz"
    archive.write_bytes(content)
    before = tree(checkout.parent)
    with pytest.raises(BookError) as error:
        bundle.import_archive(archive, checkout, [SCRIPT], **options)
    assert tree(checkout.parent) == before, "nothing is written"
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and "refused" in message
    return message


def test_a_good_archive_comes_in_whole(tmp_path: Path) -> None:
    files = good_files()
    (tmp_path / "a.tar.gz").write_bytes(pack(files))
    assert bundle.import_archive(tmp_path / "a.tar.gz", tmp_path, [SCRIPT]) == ["demo/one"]
    assert tree(tmp_path / "recordings") == {
        name.removeprefix("recordings/"): content for name, content in files.items()
    }
    made = recordings.load(tmp_path / "recordings" / "demo" / "one.json")
    assert recordings.run_of(made, tmp_path / "recordings") == RUN


def test_what_is_exported_can_be_imported(tmp_path: Path) -> None:
    for name, content in good_files().items():
        path = tmp_path / "box" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    archive = tmp_path / "recordings.tar.gz"
    digests = bundle.all_digests([SCRIPT], tmp_path / "box")
    assert bundle.export(tmp_path / "box", digests, archive) == ["demo/one"]
    (tmp_path / "home").mkdir()
    assert bundle.import_archive(archive, tmp_path / "home", [SCRIPT]) == ["demo/one"]
    assert tree(tmp_path / "home") == tree(tmp_path / "box")


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_truncated_archive_is_refused(checkout: Path, data: st.DataObject) -> None:
    content = pack(good_files())
    cut = data.draw(st.integers(0, len(content) - 1))
    refused(checkout, content[:cut])


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_file_that_was_altered_is_refused(checkout: Path, data: st.DataObject) -> None:
    files = good_files()
    sums = {name: recordings.sha256(content) for name, content in files.items()}
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    altered = {**files, name: bytes(content)}
    assert "manifest" in refused(checkout, pack(altered, {"schema": 1, "files": sums}))


ESCAPES = [
    "../x", "/tmp/x", "recordings/../x", "recordings/demo/../../x", "x", "recordings/x.json",
    "recordings/demo/deep/x.json", "recordings//x", "recordings/./x", "recordings/demo/.hidden",
    "recordings/demo/..", "recordings\\demo\\x", "recordings/demo/x\n.json", "C:/x", "~/x",
    "./recordings/demo/one.json", "recordings/..%2f/x",
]  # fmt: skip
SEGMENT = st.sampled_from(["..", ".", "", "recordings", "demo", "x.json", "~", "\\", "a b", "é"])


@pytest.mark.slow
@given(st.sampled_from(ESCAPES) | st.lists(SEGMENT, min_size=1, max_size=5).map("/".join))
@settings(max_examples=150, deadline=None)
def test_a_path_outside_the_chapters_folders_is_refused(checkout: Path, name: str) -> None:
    refused(checkout, pack({**good_files(), name: b"x"}))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_a_link_or_a_device_is_refused(checkout: Path, kind: bytes) -> None:
    entry = tarfile.TarInfo("recordings/demo/x.json")
    entry.type, entry.linkname = kind, "../../../x"
    assert "no plain file" in refused(checkout, pack(good_files(), None, entry))


@pytest.mark.slow
def test_an_archive_that_unpacks_to_too_much_is_refused(checkout: Path) -> None:
    zeros = gzip.compress(bytes(bundle.MAX_ARCHIVE + 1), compresslevel=1)
    assert "unpacks to more than" in refused(checkout, zeros)


def test_a_recording_that_is_too_large_is_refused(checkout: Path) -> None:
    files = good_files() | {"recordings/demo/one.json": b" " * (recordings.MAX_CELL + 1)}
    assert "larger than" in refused(checkout, pack(files))


def changed(file: str, change: Callable[[dict], object]) -> dict[str, bytes]:
    """Return good files of which one JSON file was changed."""
    files = good_files()
    name = next(name for name in files if name.startswith(f"recordings/demo/{file}"))
    entry = json.loads(files[name])
    change(entry)
    return files | {name: json.dumps(entry).encode()}


def test_another_schema_is_refused(checkout: Path) -> None:
    files = good_files()
    sums = {name: recordings.sha256(content) for name, content in files.items()}
    assert "schema is 2" in refused(checkout, pack(files, {"schema": 2, "files": sums}))
    assert "manifest" in refused(checkout, pack(files, ["schema"]))
    for file in ("one.json", "run-"):
        files = changed(file, lambda entry: entry.update(schema=2))
        assert "schema is 2" in refused(checkout, pack(files))


def test_a_recording_without_provenance_is_refused(checkout: Path) -> None:
    files = good_files()
    run = f"recordings/demo/run-{RUN.id}.json"
    del files[run]
    assert "the run of one, is missing" in refused(checkout, pack(files))
    for field in asdict(MACHINE):
        files = changed("run-", lambda entry, field=field: entry["machine"].pop(field))
        assert RUN.id in refused(checkout, pack(files))


def test_artefacts_that_do_not_fit_are_refused(checkout: Path) -> None:
    files = good_files()
    trace = "recordings/demo/one.trace.json.gz"
    assert trace in refused(checkout, pack({k: v for k, v in files.items() if k != trace}))
    assert trace in refused(checkout, pack(files | {trace: b"other"}))
    assert "belongs to no recording" in refused(
        checkout, pack(files | {"recordings/demo/two.x.gz": b"\x1f\x8b"})
    )


def test_a_cell_that_the_book_does_not_have_is_refused(checkout: Path) -> None:
    files = changed("one.json", lambda entry: entry.update(cell="two", artifacts=[]))
    files["recordings/demo/two.json"] = files.pop("recordings/demo/one.json")
    del files["recordings/demo/one.trace.json.gz"]
    assert "no CUDA cell demo/two" in refused(checkout, pack(files))


def test_a_cell_that_changed_since_is_refused_or_left_out(checkout: Path, tmp_path: Path) -> None:
    content = pack(changed("one.json", lambda entry: entry.update(digest="0" * 64)))
    assert "demo/one changed in the book" in refused(checkout, content)
    (tmp_path / "a.tar.gz").write_bytes(content)
    archive = tmp_path / "a.tar.gz"
    assert bundle.import_archive(archive, tmp_path, [SCRIPT], skip_changed=True) == []
    assert not list(tmp_path.rglob("*.json"))


def test_a_file_that_is_no_archive_is_refused(checkout: Path, tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 zip", gzip.compress(b"no tar"), os.urandom(2000)):
        refused(checkout, content)
    with pytest.raises(BookError, match="is no file"):
        bundle.import_archive(tmp_path / "absent", tmp_path, [])


def wheels(version: str) -> list[Path]:
    try:
        return bundle.download_wheels(ROOT, version)
    except BookError as error:
        lack(str(error))


@pytest.mark.slow
def test_the_bundle_of_this_book_stays_under_60_mb() -> None:
    book = scripts(open_project(ROOT))
    target = bundle.make_bundle(ROOT, book, wheels("3.12"), "3.12", "")
    assert target.stat().st_size <= 60_000_000
    with tarfile.open(target) as archive:
        names = archive.getnames()
    assert all(name.startswith("record-bundle/") for name in names)
    assert not [name for name in names if "torch-" in name or "jupyter" in name]


FAKE = """
import socket, sys
import insidetorch.gpu.machine as layer

def refuse(*_, **__):
    raise OSError("this machine has no network")

socket.socket.connect = socket.getaddrinfo = refuse
layer.machine = lambda: layer.Machine(
    ("Simulated device",), "0.0", 2**33, "", "0.0", "2.13.0", "c", "3", "an OS", "a CPU")
layer.answers = lambda: True
"""
TORCH_ALONE = (
    "torch torchgen functorch filelock typing_extensions.py sympy mpmath networkx jinja2 "
    "markupsafe fsspec numpy numpy.libs setuptools isympy.py"
)


@pytest.mark.slow
def test_the_bundle_records_on_a_python_that_has_nothing_but_torch(tmp_path: Path) -> None:
    version = ".".join(platform.python_version_tuple()[:2])
    book = tmp_path / "book"
    for folder in ("miniatures", "recordings", "book"):
        (book / folder).mkdir(parents=True)
    (book / "book" / "verdicts.yml").write_text("[]")
    cells = (
        "import torch\nfrom insidetorch import claim, figure\nn = 4",
        '%%cuda one --title "One"\nclaim("n is four", n == 4)\ntorch.arange(n)',
        "%%cuda two\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\n"
        'figure(fig, alt="a line")',
        "%%cuda three\nimport ipykernel",
    )
    script = Script("notebooks/demo", tuple({"source": cell, "tags": []} for cell in cells))
    target = bundle.make_bundle(book, [script], wheels(version), version, "b" * 40)

    box = tmp_path / "box"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(box / "python")], check=True)
    with tarfile.open(target) as archive:
        archive.extractall(box, filter="data")
    import torch

    packages = box / "torch-alone"
    packages.mkdir()
    installed = Path(torch.__file__).parent.parent
    for name in TORCH_ALONE.split():
        if (installed / name).exists() and not name.startswith("numpy"):
            (packages / name).symlink_to(installed / name)
    (packages / "sitecustomize.py").write_text(FAKE)
    folder = box / "record-bundle"
    python = box / "python" / "bin" / "python"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), str(folder / "record.py"), *arguments],
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(box),
                "PYTHONPATH": os.pathsep.join([str(packages), str(folder)]),
            },
            cwd=box,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert "three: failed: ModuleNotFoundError: No module named 'ipykernel'" in done.stdout, done
    assert "2 recorded, 0 were current, 0 skipped, 1 failed" in done.stdout
    assert done.returncode == 1 and not done.stderr
    again = run()
    assert "0 recorded, 2 were current, 0 skipped, 1 failed" in again.stdout

    archive_back = folder / "recordings.tar.gz"
    found = bundle.import_archive(archive_back, book, [script])
    assert found == ["demo/one", "demo/two"]
    one = recordings.load(book / "recordings" / "demo" / "one.json")
    assert one.outputs[-1]["data"]["text/plain"] == "tensor([0, 1, 2, 3])"
    two = recordings.load(book / "recordings" / "demo" / "two.json")
    assert "<svg" in two.outputs[-1]["data"]["text/html"]
    run_of = recordings.run_of(one, book / "recordings")
    assert run_of.machine.gpu == "Simulated device" and run_of.book_commit == "b" * 40


def test_a_bundle_for_another_python_says_so(tmp_path: Path) -> None:
    main = ROOT / "insidetorch" / "recorder" / "on_the_box.py"
    (tmp_path / "record.py").write_text(main.read_text())
    (tmp_path / "bundle.json").write_text('{"python": "3.1"}')
    done = subprocess.run(
        [sys.executable, str(tmp_path / "record.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "This bundle is for Python 3.1" in done.stderr
    assert done.stderr.count("\n") == 1
