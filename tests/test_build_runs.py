"""Whole builds of tiny books: what fails, what is kept, what is said."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tiny_book import PACKAGE, TinyBook

pytestmark = pytest.mark.slow

RECORD = """from IPython.display import display
class Record:
    def __init__(self, **record): self.record = record
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "shown", "application/vnd.insidetorch+json": self.record}
"""
WARNING = "kind='warning', category='FutureWarning', message='old', deprecation=True"


def ledger(book: TinyBook) -> dict:
    chapters = json.loads((book.root / "_build/ledger.json").read_text())["chapters"]
    return {chapter["doc"]: chapter for chapter in chapters}


def line_of(path: Path, text: str) -> int:
    return path.read_text().splitlines().index(text) + 1


def test_the_life_of_a_book(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    html = tmp_path / "_build/html"
    index = tmp_path / "index.md"
    sound_index = index.read_text()

    # Everything that can go wrong in cells and pages, at once.
    index.write_text(sound_index + "\nSee {doc}`nowhere`.\n")
    sound = book.cells("notebooks/sound", "x = 1", "print('the value is', x)")
    bad = book.cells("notebooks/bad", "y = 1", "undefined_name")
    failed = "class ClaimFailed(AssertionError): pass\n"
    failed += "display(Record(kind='claim', text='water is dry', held=False))\n"
    book.cells("notebooks/claims", RECORD, failed + "raise ClaimFailed('does not hold')")
    book.cells("notebooks/warns", RECORD, f"display(Record({WARNING}, declared=False))")
    raises = book.cells("notebooks/raises", "1 / 0")
    endless = book.cells(
        "notebooks/endless", "while True: pass", front="insidetorch: {cell-seconds: 1}\n"
    )
    sleeps = ("import time\ntime.sleep(1)", "time.sleep(60)")
    book.cells("notebooks/sleeps", *sleeps, front="insidetorch: {chapter-seconds: 2}\n")
    book.cells("notebooks/dies", "import os", "os.abort()")
    status, said = book.build()
    assert status == 1
    assert f"bad.md:{line_of(bad, 'undefined_name')} (code cell 2): NameError" in said
    assert "(code cell 2): ClaimFailed: does not hold — claim: “water is dry”" in said
    assert "(code cell 2): undeclared FutureWarning: “old”; replace the call" in said
    assert "(code cell 1): ZeroDivisionError" in said
    where = f"endless.md:{line_of(endless, 'while True: pass')} (code cell 1)"
    assert f"{where}: the cell ran longer than its limit of 1 s" in said
    assert "(code cell 2): the chapter ran longer than its limit of 2 s" in said
    assert "(code cell 2): the kernel died" in said
    assert "index.md:5: WARNING: unknown document: 'nowhere'" in said
    assert not html.exists()
    parts = ledger(book)
    assert parts["notebooks/sound"]["status"] == "ok"
    assert parts["notebooks/bad"]["error"]["cell"] == 2
    assert parts["notebooks/claims"]["error"]["claim"] == "water is dry"

    # What ended is kept; what is wrong is told again, from the cache too.
    for name in ("bad", "claims", "endless", "sleeps", "dies"):
        book.cells(f"notebooks/{name}", "1")
    raises.write_text(raises.read_text().replace("\n1 / 0", "\n:tags: [raises-exception]\n1 / 0"))
    status, said = book.build()
    assert status == 1
    assert "Executing 6 of 8 chapters" in said
    assert "2 problems" in said
    assert "undeclared FutureWarning" in said
    assert "unknown document: 'nowhere'" in said

    # Mended: the site appears, with links, outputs, downloads and the wheel.
    index.write_text(sound_index)
    book.cells("notebooks/warns", RECORD, f"display(Record({WARNING}, declared=True))")
    book.chapter(
        "notebooks/links",
        "# Links\n\nSee [the sound one](sound.md) and [home](../index.md), and read on.\n\n"
        '<span class="it-freshness" data-doc="notebooks/links"></span>\n\n'
        "```{code-cell}\n1\n```\n",
    )
    (tmp_path / "tinytools").mkdir()
    (tmp_path / "tinytools/__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(PACKAGE)
    status, said = book.build()
    assert status == 0, said
    assert "9 chapters, 2 executed, 7 from the cache" in said
    page = (html / "notebooks/links.html").read_text()
    assert 'href="sound.html"' in page
    assert 'href="../index.html"' in page
    assert 'data-doc="notebooks/links">fresh</span>' in page
    assert "ZeroDivisionError" in (html / "notebooks/raises.html").read_text()
    wheel = "tinytools-1.2-py3-none-any.whl"
    assert (html / "_static" / wheel).is_file()

    # Prose executes nothing; a damaged entry is executed again; a page taken out is gone.
    text = sound.read_text()
    sound.write_text(text.replace("Some words", "Some better words"))
    (entry, *_) = (tmp_path / "_build/cache/executed/notebooks__links").glob("*.ipynb")
    entry.write_text(entry.read_text()[:200])
    book.remove("notebooks/bad")
    status, said = book.build()
    assert status == 0, said
    assert "the cached run of notebooks/links is damaged" in said
    assert "8 chapters, 1 executed, 7 from the cache" in said
    page = (html / "notebooks/sound.html").read_text()
    assert "Some better words" in page
    assert "the value is 1" in page
    assert not list(html.rglob("bad.*"))
    given = json.loads((html / "_sources/notebooks/sound.ipynb").read_text())
    assert given["cells"][0]["source"].startswith("This notebook is the chapter")
    assert wheel in given["cells"][1]["source"]
    assert "the value is 1" in json.dumps(given["cells"][-1]["outputs"])

    # A site that is not whole replaces none, and one lost in a swap comes back.
    index.write_text("(home)=\n# <b></b>\n")
    (tmp_path / "pyproject.toml").write_text(PACKAGE.replace('"1.2"', '"one point two"'))
    html.rename(tmp_path / "_build/html.old")
    status, said = book.build()
    assert status == 1
    assert "index: the page has nothing to read" in said
    assert "the toolkit's wheel could not be built" in said
    assert "Some better words" in (html / "notebooks/sound.html").read_text()


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_build_leaves_no_kernel_and_keeps_what_ended(
    tmp_path: Path, blow: signal.Signals
) -> None:
    book = TinyBook(tmp_path)
    book.cells("notebooks/ends", "1")
    # A match that holds the GIL for years: no thread of the kernel can notice anything.
    book.cells("notebooks/busy", "import re", "re.match('(a+)+$', 'a' * 64 + 'b')")
    process = book.start("-j", "2")
    done = tmp_path / "_build/cache/executed/notebooks__ends"
    wait_until("the first chapter", lambda: any(done.glob("*.ipynb")))
    wait_until("one kernel", lambda: len(kernels_of(process.pid)) == 1)
    (kernel,) = kernels_of(process.pid)
    process.send_signal(blow)
    said, _ = process.communicate(timeout=150)
    wait_until("the kernel's end", lambda: not kernel.is_running(), seconds=5)
    if blow == signal.SIGINT:
        assert process.returncode == 130, said
        assert said.strip().splitlines()[-1].startswith("Interrupted: the kernels are stopped")
        assert "Traceback" not in said
    else:
        book.cells("notebooks/busy", "1")
        status, said = book.build()
        assert status == 0, said
        assert "1 executed, 1 from the cache" in said


def test_two_builds_at_once_are_refused(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    (tmp_path / "_build").mkdir()
    with (tmp_path / "_build/lock").open("w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        status, said = book.build()
    assert status == 1
    assert f"another build (process {os.getpid()}) is at work" in said


def test_an_output_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    (tmp_path / "_build").write_text("in the way")
    status, said = book.build()
    assert status == 1
    assert "the output folder" in said
    assert "cannot be written" in said
    (tmp_path / "_build").unlink()
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/html").write_text("in the way")
    status, said = book.build()
    assert status == 1
    assert "the site cannot be written" in said
    assert (tmp_path / "_build/html").read_text() == "in the way"


def test_what_is_missing_is_told_before_anything_runs(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    book.cells("notebooks/draws", "from insidetorch import graph\ngraph('digraph {}', alt='')")
    (tmp_path / "requirements.txt").write_text("torch==1.0.0\n")
    status, said = book.build()
    assert status == 1
    assert "pins 1.0.0" in said
    assert "--any-torch" in said
    status, said = book.build("--any-torch", PATH=str(tmp_path))
    assert status == 1
    assert "Graphviz is missing" in said
    assert "Executing" not in said


def kernels_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children(recursive=True)
    return [child for child in children if "insidetorch.run.kernel" in child.cmdline()]


def wait_until(what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)
