"""What a library demands is read as its linker wrote it; refusals are the loader's own words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from miniatures.import_torch.watch_elf import demands
from miniatures.import_torch.watch_places import refusals

COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the loader is GNU's")


def build(folder: Path, code: str, *options: str) -> Path:
    """Compile a library and return its file."""
    assert COMPILER is not None
    made = folder / "library.so"
    (folder / "library.c").write_text(code, encoding="utf-8")
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", str(folder / "library.c"), *options, "-o", str(made)],
        check=True,
    )
    return made


@pytest.mark.needs("cc")
@pytest.mark.parametrize("stack", ["execstack", "noexecstack"])
def test_the_mark_for_an_executable_stack_is_read(tmp_path: Path, stack: str) -> None:
    library = build(tmp_path, "int one(void) { return 1; }", "-Wl,-z," + stack)
    assert demands(library).executable_stack == (stack == "execstack")


@pytest.mark.needs("cc")
def test_memory_for_threads_versions_and_the_path_are_read(tmp_path: Path) -> None:
    code = """
    #include <stdio.h>
    __thread int numbers[10];
    int *mine(void) { puts("mine"); return numbers; }
    """
    found = demands(build(tmp_path, code, "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"))
    assert found.thread_bytes == 40
    assert found.runpath == "$ORIGIN"
    assert found.versions["GLIBC"] >= (2, 2, 5)


@pytest.mark.needs("cc")
def test_the_loader_refuses_what_lacks_something() -> None:
    said = refusals()
    assert "libneeded_at_run_time.so: cannot open" in said["needs, RTLD_NOW"]
    assert "undefined symbol: nobody_has_this" in said["asks, RTLD_NOW"]
    assert said["asks, RTLD_LAZY"] == "opened"
