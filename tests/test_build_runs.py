"""Whole builds of tiny books: what fails, what is kept, what is said."""

from __future__ import annotations

import fcntl
import json
import os
import re
import resource
import signal
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tiny_book import PACKAGE, REPOSITORY, TinyBook, toolkit

from insidetorch import processes
from insidetorch.book.lock import build_lock

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
    assert said.count("executed once more") == 1
    assert "second run only" not in said
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
    (wheel,) = (html / "_static").glob("*.whl")
    assert re.fullmatch(r"tinytools-1\.2\+[0-9a-f]{12}-py3-none-any\.whl", wheel.name)
    with zipfile.ZipFile(html / "_sources/notebooks/sound.zip") as archive:
        assert set(archive.namelist()) == {"sound/sound.ipynb", f"sound/{wheel.name}"}
        assert archive.read(f"sound/{wheel.name}") == wheel.read_bytes()

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
    assert wheel.name in given["cells"][1]["source"]
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


def test_a_sentence_that_holds_at_the_second_run_only_is_named(tmp_path: Path) -> None:
    book = TinyBook(tmp_path / "book")
    late = f"from pathlib import Path\nseen = Path({str(tmp_path / 'seen')!r})\n"
    late += "class ClaimFailed(AssertionError): pass\n"
    late += "if not seen.exists():\n    seen.touch()\n    raise ClaimFailed('too early')"
    book.cells("notebooks/late", late)
    book.cells("notebooks/sound", "1")
    status, said = book.build()
    assert status == 0, said
    assert said.count(" (code cell 1): ClaimFailed: too early: ") == 2
    assert said.count("executed notebooks/sound") == 1
    assert "held at the second run only; mend the cell" in said
    assert ledger(book)["notebooks/late"]["status"] == "ok"


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_build_leaves_nothing_behind_and_keeps_what_ended(
    tmp_path: Path, blow: signal.Signals
) -> None:
    """The caller ignores SIGINT, as shells do for what they start in the background."""
    book = TinyBook(tmp_path / "book")
    tmp_path, temporary = book.root, tmp_path / "tmp"
    temporary.mkdir()
    book.cells("notebooks/fails", "undefined_name")
    book.cells("notebooks/ends", "1")
    # A match that holds the GIL for years: no thread of the kernel can notice anything.
    book.cells("notebooks/busy", "import re", "re.match('(a+)+$', 'a' * 64 + 'b')")
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = book.start("-j", "2", TMPDIR=str(temporary))
    signal.signal(signal.SIGINT, usual)
    done, failed = tmp_path / "_build/cache/executed/notebooks__ends", tmp_path / "_build/failures"
    wait_until("the two chapters", lambda: any(done.glob("*.ipynb")) and failed.is_file())
    wait_until("one kernel", lambda: len(kernels_of(process.pid)) == 1)
    (kernel,) = kernels_of(process.pid)
    process.send_signal(blow)
    said, _ = process.communicate(timeout=150)
    wait_until("the kernel's end", lambda: not kernel.is_running(), seconds=5)
    if blow != signal.SIGKILL:
        word, code = ("Interrupted", 130) if blow == signal.SIGINT else ("Terminated", 143)
        assert process.returncode == code, said
        assert said.strip().splitlines()[-1].startswith(f"{word}: the kernels are stopped")
        assert "Traceback" not in said
    else:
        (tmp_path / "_build/cache/.half.1.part").write_text("half a file")
        book.cells("notebooks/busy", "1")
        book.cells("notebooks/fails", "1")
        status, said = book.build(TMPDIR=str(temporary))
        assert status == 0, said
        assert "ended: notebooks/fails.md:16 (code cell 1): NameError" in said
        assert "2 executed, 1 from the cache" in said
        assert not failed.exists()
    assert not list(temporary.iterdir())
    assert not list(tmp_path.rglob("*.part"))


def test_what_a_cell_detached_ends_with_its_chapter(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    start = "import os, subprocess\nfrom pathlib import Path\n"
    start += "def start(**more): return str(subprocess.Popen(['sleep', '600'], **more).pid)\n"
    detached = "pids = [start(start_new_session=True), start(start_new_session=True, env={})]\n"
    # Not below the book: a file that a cell reads there must be known to the chapter's key.
    outside = tmp_path.with_name(f"{tmp_path.name}-orphan")
    orphan = f"if not os.fork():\n    os.setsid()\n    Path({str(outside)!r}).write_text(start())\n"
    orphan += "    os._exit(0)\nos.wait()\n"
    written = f"Path('pids').write_text(' '.join([*pids, Path({str(outside)!r}).read_text()]))"
    book.cells("notebooks/leaves", start + detached + orphan + written)
    status, said = book.build()
    assert status == 0, said
    pids = (tmp_path / "notebooks/pids").read_text().split()
    assert len(pids) == 3
    assert not [pid for pid in pids if "sleep" in command_of(int(pid))]


def test_a_cell_that_writes_too_much_is_stopped(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    book.cells("notebooks/floods", "while True: print('x' * 1000)")
    book.cells("notebooks/at_once", "print('x' * 5_000_000)", "1")
    book.cells("notebooks/shows", "from IPython.display import HTML\nHTML('x' * 2_000_000)")
    book.cells("notebooks/bears", "print('x' * 900_000)", "print('x' * 900_000)")
    status, said = book.build()
    assert status == 1
    for name in ("floods", "at_once", "shows"):
        assert f"{name}.md:16 (code cell 1): the cell wrote more than 1 MB of text" in said
    assert "3 problems" in said
    assert (tmp_path / "_build/stage/notebooks/floods.ipynb").stat().st_size < 2_000_000


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path) -> None:
    """A limit to the size of files stands for the full disk: it fails a write in the same way."""
    book = TinyBook(tmp_path)
    book.cells("notebooks/large", "print('x' * 600_000)")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limit[1]))
    try:
        status, said = book.build()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert status == 1
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1].startswith("Error: ")
    assert ".ipynb cannot be written (File too large); free some space there" in said
    assert not list(tmp_path.rglob("*.part"))


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


def test_cleaning_heeds_a_build(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    kept = tmp_path / "_build/html/index.html"
    kept.parent.mkdir(parents=True)
    kept.write_text("a page")
    make = ["make", "-f", str(REPOSITORY / "Makefile"), f"PY={sys.executable}", "clean"]
    with build_lock(tmp_path / "_build"):
        done = processes.run(make, cwd=book.root, env=processes.environment(toolkit()))
        assert f"another build (process {os.getpid()}) is at work" in done.stderr
        assert done.returncode and kept.is_file()
    done = processes.run(make, cwd=book.root, env=processes.environment(toolkit()))
    assert not done.returncode and not kept.exists(), done.stderr


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


def test_a_bibliography_that_lacks_a_brace_is_named_with_the_line(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    with (tmp_path / "_config.yml").open("a") as config:
        config.write("bibtex_bibfiles: [refs.bib]\nsphinx:\n")
        config.write("  extra_extensions: [sphinxcontrib.bibtex, insidetorch.site]\n")
    text = "@misc{a,\n title = {A},\n}\n@misc{b,\n title = {B},\n}\n"
    for broken, said_of_it in (
        (text.replace("{B}", "{B"), "refs.bib:4: the braces of the entry 'b' do not pair up"),
        (text.replace("= {B}", "{B}"), "refs.bib:5: cannot be read ('=' expected)"),
    ):
        (tmp_path / "refs.bib").write_text(broken)
        status, said = book.build()
        assert status == 1
        assert "1 problem." in said and said_of_it in said


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


def command_of(pid: int) -> list[str]:
    try:
        process = psutil.Process(pid)
        return [] if process.status() == psutil.STATUS_ZOMBIE else process.cmdline()
    except psutil.NoSuchProcess:
        return []


def wait_until(what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)
