"""Where another release comes from, and what is said when it does not come."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from insidetorch.drift import releases
from insidetorch.drift.environment import requirements
from insidetorch.drift.releases import open_release, pack, refusal
from insidetorch.drift.trees import in_wheel, open_wheel
from insidetorch.errors import BookError

VERSION = "__version__ = '2.99.0+cpu'\ngit_version = 'c0ffee'\n"
GUARDED = "#if !defined(TORCH_STABLE_ONLY)\nint one();\n#else\n#error x\n#endif\n"
MEMBERS = {
    "torch/version.py": VERSION,
    "torch/lib/libtorch.so": "x" * 1000,
    "torch/include/c10/a.h": GUARDED,
    "torch/nn/a.py": "def a(): ...\n",
    "torchgen/packaged/ATen/templates/a.cpp": "//\n",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "torch-2.99.0-cp311-cp311-macosx_14_0_arm64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in MEMBERS.items():
            archive.writestr(name, text)
    return path


def test_a_wheel_is_read_without_its_libraries(wheel: Path, tmp_path: Path) -> None:
    tree = open_release(str(wheel), tmp_path)
    assert (tree.release, tree.public, tree.commit) == ("2.99.0+cpu", "2.99.0", "c0ffee")
    assert tree.paths == set(MEMBERS) - {"torch/lib/libtorch.so"}
    assert tree.text("torch/include/c10/a.h") == "int one();\n"
    assert tree.text("torch/absent.py") is None
    small = tmp_path / "small.zip"
    pack(wheel, small)
    assert open_wheel(small).paths == tree.paths


@pytest.mark.parametrize("inside", ["", "lib/python3.11/site-packages"])
def test_folders_and_environments(tmp_path: Path, inside: str) -> None:
    for name, text in MEMBERS.items():
        path = tmp_path / inside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert open_release(str(tmp_path), tmp_path).text("torch/nn/a.py") == "def a(): ...\n"


def test_a_checkout_is_read_under_the_paths_of_a_wheel(tmp_path: Path) -> None:
    files = {
        "version.txt": "2.99.0a0\n", "torch/csrc/autograd/engine.h": "int h();\n",
        "torch/csrc/autograd/engine.cpp": "int c() {}\n", "c10/core/a.h": "int a();\n",
        "aten/src/ATen/native/native_functions.yaml": "- func: f() -> ()\n",
        "tools/autograd/derivatives.yaml": "- name: f() -> ()\n", "torch/nn/a.py": "a = 1\n",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tree = open_release(str(tmp_path), tmp_path)
    assert tree.complete
    assert tree.paths == {
        "torch/include/torch/csrc/autograd/engine.h", "torch/csrc/autograd/engine.cpp",
        "torch/include/c10/core/a.h", "torchgen/packaged/ATen/native/native_functions.yaml",
        "torchgen/packaged/autograd/derivatives.yaml", "torch/nn/a.py",
    }  # fmt: skip
    assert in_wheel("aten/src/ATen/TensorIterator.h") == "torch/include/ATen/TensorIterator.h"


def test_bad_names_and_files_get_one_sentence(wheel: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("numpy/__init__.py", "")
    broken = tmp_path / "broken.whl"
    broken.write_bytes(wheel.read_bytes()[:-200])
    text = tmp_path / "text.whl"
    text.write_text("no archive")
    empty = tmp_path / "empty"
    empty.mkdir()
    for named, said in {
        "not-a-thing": "neither a file or folder here nor a version",
        str(tmp_path / "absent.whl"): "neither a file or folder here nor a version",
        str(other): "holds no torch/version.py",
        str(broken): "damaged or no wheel",
        str(text): "damaged or no wheel",
        str(empty): "holds no torch",
    }.items():
        with pytest.raises(BookError, match=said) as caught:
            open_release(named, tmp_path)
        assert "\n" not in str(caught.value)


def test_a_wheel_with_a_damaged_member_says_so_when_it_is_read(wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        info = archive.getinfo("torch/nn/a.py")
    start = info.header_offset + 30 + len(info.filename)
    data[start : start + 6] = b"\xff" * 6
    wheel.write_bytes(data)
    with pytest.raises(BookError, match=r"a\.py of torch 2\.99\.0\+cpu cannot be read"):
        open_wheel(wheel).read("torch/nn/a.py")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR: Could not find a version that satisfies torch==9.9 (from versions: "
         "2.13.0, 2.14.1, 2.15.0)\nERROR: No matching distribution found", "the newest there are"),
        ("WARNING: NewConnectionError: no\nERROR: No matching distribution found (from versions: "
         "2.13.0+cpu)", "cannot be reached"),
        ("ERROR: No matching distribution found for torch==9.9", "or the index cannot be reached"),
        ("strange words", "strange words"),
    ],
)  # fmt: skip
def test_what_pip_says_is_told_in_one_sentence(said: str, told: str) -> None:
    sentence = refusal("9.9", said)
    assert told in sentence
    assert "\n" not in sentence


def test_a_damaged_archive_in_the_cache_is_fetched_again(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    kept = cache / "torch-2.99.0.zip"
    kept.write_text("half")
    fetched: list[str] = []

    def fetch(named: str, folder: Path) -> Path:
        fetched.append(named)
        pack(wheel, kept)
        return kept

    monkeypatch.setattr(releases, "fetch", fetch)
    for _ in range(2):
        assert open_release("2.99.0", cache).public == "2.99.0"
    assert fetched == ["2.99.0"]


def test_only_torch_and_its_triton_differ_in_the_requirements(wheel: Path, tmp_path: Path) -> None:
    pins = "-c constraints.txt\ntorch==2.13.0\nnumpy==2.4.6\n"
    assert requirements(pins, "2.15.0", tmp_path).splitlines() == [
        f"-c {tmp_path.as_posix()}/constraints.txt", "torch==2.15.0", "numpy==2.4.6",
    ]  # fmt: skip
    assert requirements(pins, str(wheel), tmp_path).splitlines()[1] == f"torch @ {wheel.as_uri()}"
    assert requirements(pins, "nightly", tmp_path).splitlines()[1] == "torch"
    pins += 'triton==3.7.1; sys_platform == "linux"\n'
    assert requirements(pins, "2.15.0", tmp_path).endswith('triton; sys_platform == "linux"\n')
    with pytest.raises(BookError, match="pins no torch"):
        requirements("numpy==2.4.6\n", "2.15.0", tmp_path)
