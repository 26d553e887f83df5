"""What a chapter's cells reach: the part of its cache key that the book's own code makes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tiny_book import TinyBook

from insidetorch.book import opened, packages
from insidetorch.book.modules import read_file
from insidetorch.book.packages import Installed, versions
from insidetorch.book.reach import Reach, Reached

ROOT = Path(__file__).parent.parent
TREE = {
    "miniatures/__init__.py": "",
    "miniatures/engine.py": '''"""An engine."""
from __future__ import annotations
import json
from pathlib import Path
from miniatures import parts, tape as film
from miniatures.parts import Wheel as Round

LIMIT = 3
FILE = Path(__file__).with_name("cases.json")

def run(wheel: Unused) -> int:
    """Run."""
    # A comment.
    return film.roll(LIMIT)

def turn():
    return Round().turn()

def cases():
    return json.loads(FILE.read_text())

def text(name):
    return (Path(__file__).parent / "data" / "poem.txt").read_text()

def late():
    from miniatures.late import work
    return work()

def child():
    program = "import sys; from miniatures.alone import main; main()"
    return [sys.executable, "-c", program]

def program():
    return [sys.executable, "-m", "miniatures.script"]

def computed(name):
    return getattr(parts, name)

def registered():
    return parts.TABLE

class Unused:
    pass
''',
    "miniatures/cases.json": "[1]",
    "miniatures/data/poem.txt": "a poem",
    "miniatures/tape.py": "def roll(n):\n    return helper(n)\n\ndef helper(n):\n    return n\n"
    "\ndef idle():\n    return 0\n",
    "miniatures/parts.py": "TABLE = {}\n\ndef entry(function):\n    TABLE[1] = function\n"
    "    return function\n\n@entry\ndef add():\n    return 1\n\nclass Wheel:\n"
    "    size = 1\n    def turn(self):\n        return spokes()\n\ndef spokes():\n    return 8\n",
    "miniatures/late.py": "def work():\n    return 1\n\nprint('imported')\n",
    "miniatures/alone.py": "def main():\n    return 1\n\ndef other():\n    return 2\n",
    "miniatures/script.py": "def start():\n    return 1\n\nif __name__ == '__main__':\n"
    "    start()\n",
    "miniatures/shown.py": "# first\n\n\ndef plain():\n    # why\n    return 1\n\n\ndef far():\n"
    "    return 2\n",
    "notebooks/beside.py": "def near():\n    return 1\n",
    "insidetorch/__init__.py": """
from importlib import import_module
_HOME = {"claim": "claims", "source": "show.excerpts", "private": "names", "table": "table"}
__all__ = sorted(_HOME)
def __getattr__(name):
    module = import_module(f"insidetorch.{_HOME[name]}")
    globals()[name] = value = getattr(module, name, module)
    return value
def __dir__():
    return sorted({*globals(), *_HOME})
""",
    "insidetorch/claims.py": "def claim(*a):\n    return 1\n\ndef verdict(*a):\n    return 2\n",
    "insidetorch/show/__init__.py": "",
    "insidetorch/show/excerpts.py": "def source(target):\n    return target\n",
    "insidetorch/table.py": "def rows():\n    return []\n",
    "insidetorch/names/__init__.py": """
from importlib import import_module
from pathlib import Path
def __getattr__(name):
    for path in sorted(Path(__file__).parent.glob("*.py")):
        module = import_module(f"insidetorch.names.{path.stem}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
""",
    "insidetorch/names/graph.py": "def version(t):\n    return 1\n\ndef node(t):\n    return 2\n",
    "insidetorch/names/loops.py": "def loop(t):\n    return 1\n",
}
ENGINE, TAPE, PARTS, LATE, ALONE, SCRIPT, SHOWN = (
    f"miniatures/{name}.py"
    for name in ["engine", "tape", "parts", "late", "alone", "script", "shown"]
)
RUN = "from miniatures.engine import run\nrun(1)"


@cache
def tree(root: Path) -> Path:
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree(tmp_path_factory.mktemp("book"))


def reached(root: Path, *cells: str, docstrings: str = "", **edits: tuple[str, str]) -> Reached:
    """Return what cells reach after edits: file, its slashes and points as ``__``, → old, new."""
    changed = {}
    for name, (old, new) in edits.items():
        path = next(file for file in TREE if file.replace("/", "__").replace(".", "__") == name)
        assert TREE[path].count(old) == 1 or not old
        changed[root / path] = (TREE[path].replace(old, new) if old else new).encode()
    return Reach(
        root,
        root / "notebooks",
        docstrings=docstrings,
        read=lambda path: changed[path] if path in changed else read_file(path),
        toolkit=root / "insidetorch",
        always=(),
    ).of(cells)


@pytest.mark.parametrize(
    ("cell", "file", "old", "new", "counts"),
    [
        # A definition, what it names, and what these name.
        (RUN, ENGINE, "film.roll(LIMIT)", "film.roll(0)", True),
        (RUN, TAPE, "helper(n)\n\n", "helper(n + 1)\n\n", True),
        (RUN, TAPE, "    return n\n", "    return -n\n", True),
        (RUN, TAPE, "return 0", "return 1", False),
        (RUN, ENGINE, "LIMIT = 3", "LIMIT = 4", True),
        (RUN, ENGINE, "Round().turn()", "Round()", False),
        ("import miniatures.engine as e\ne.run(1)", TAPE, "return n\n", "pass\n", 1),
        ("from miniatures import engine\nengine.turn()", PARTS, "8", "9", True),
        ("from miniatures import engine\nengine.run()", PARTS, "8", "9", False),
        ("%timeit engine.turn()\nfrom miniatures import engine", PARTS, "8", "9", 1),
        ("from beside import near\nnear()", "notebooks/beside.py", "1", "2", True),
        # An annotation is not evaluated; a class counts whole.
        (RUN, ENGINE, "    pass", "    x = 1", False),
        ("from miniatures.parts import Wheel\nWheel()", PARTS, "= 1", "= 2", True),
        # What runs on import, and what a decorator may keep.
        (RUN, PARTS, "return 1", "return 2", True),
        (RUN, LATE, "imported", "loaded", False),
        ("from miniatures.engine import late\nlate()", LATE, "imported", "in", True),
        ("from miniatures.engine import late\nlate()", LATE, "return 1", "0", True),
        (RUN, ENGINE, "import json\n", "import json, re\n", True),
        # Programs of child processes; what only a program runs.
        ("from miniatures.engine import child", ALONE, "return 1", "0", True),
        ("from miniatures.engine import child", ALONE, "return 2", "0", False),
        ("from miniatures.engine import program", SCRIPT, "    start()", "    0", 1),
        ("import miniatures.script as s\ns.start()", SCRIPT, "    start()", "  0", 0),
        ("run('import miniatures.alone as a\\na.main()')", ALONE, "n 1", "n 0", 1),
        ("run('import miniatures.alone as a\\na.main()')", ALONE, "n 2", "n 0", 0),
        ("h = 'from miniatures import alone as a\\n'\nrun(h + 'a.other()')",
         ALONE, "n 2", "n 0", True),
        ("run('{x!r}; from miniatures.alone import main')", ALONE, "n 1", "n 0", 1),
        # A module whose names are looked up counts whole.
        ("from miniatures.engine import computed", PARTS, "return 8", "0", True),
        ("from miniatures.tape import *", TAPE, "return 0", "return 1", True),
        ("from miniatures import tape\ngetattr(tape, x)", TAPE, "n 0", "n 1", True),
        ("from miniatures import tape\nvars(tape)", TAPE, "n 0", "n 1", True),
        ("from miniatures import tape\ntape.__dict__", TAPE, "n 0", "n 1", True),
        ("from miniatures import tape\ntape.__file__", TAPE, "n 0", "n 1", False),
        ("patch('miniatures.tape.idle')", TAPE, "n 0", "n 1", True),
        ("patch('miniatures.tape.idle')", TAPE, "return n\n", "pass\n", False),
        # Data that reached code names.
        ("from miniatures.engine import cases", "miniatures/cases.json", "1", "2", True),
        (RUN, "miniatures/cases.json", "1", "2", False),
        ("from miniatures.engine import text", "miniatures/data/poem.txt", "poem", "tale", True),
        ("open('../miniatures/data/poem.txt')", "miniatures/data/poem.txt", "poem", "tale", True),
        # Lazy names: by a table, by a search.
        ("from insidetorch import claim\nclaim()", "insidetorch/claims.py", "1", "3", True),
        ("from insidetorch import claim\nclaim()", "insidetorch/claims.py", "return 2", "0", False),
        ("import insidetorch\ninsidetorch.claim()", "insidetorch/claims.py", "n 1", "n 3", True),
        ("from insidetorch import source\nsource(1)", "insidetorch/show/excerpts.py",
         "return target", "return 1", True),
        ("from insidetorch import table\ntable.rows()", "insidetorch/table.py", "[]", "[1]", True),
        ("from insidetorch import private\nprivate.version(1)", "insidetorch/names/graph.py",
         "return 1", "return 3", True),
        ("from insidetorch import private\nprivate.version(1)", "insidetorch/names/graph.py",
         "return 2", "return 3", False),
        ("from insidetorch import private\nprivate.version(1)", "insidetorch/names/loops.py",
         "return 1", "return 3", False),
        ("from insidetorch import claim\nclaim()", "insidetorch/__init__.py",
         '"table": "table"', '"table": "table", "more": "claims"', False),
        ("from insidetorch import claim\nclaim()", "insidetorch/__init__.py",
         "(module, name, module)", "(module, name)", True),
        # What is shown counts with its text and its place.
        ("source('miniatures.shown:plain')", SHOWN, "# why", "# because", True),
        ("source('miniatures.shown:plain')", SHOWN, "# first\n", "#\n#\n", True),
        ("source('miniatures.shown:plain')", SHOWN, "return 2", "return 3", False),
        ("from miniatures import shown\nsource(shown.plain)", SHOWN, "why", "?", 1),
        ("import inspect\nfrom miniatures.shown import plain\ninspect.getsource(plain)",
         SHOWN, "# why", "# because", True),
        ("from miniatures.shown import plain\nplain()", SHOWN, "# why", "#", False),
        ("source(f'miniatures.shown:{name}')", SHOWN, "# first", "# 1", True),
        # A module that cannot be read counts as it is.
        ("from miniatures import tape", TAPE, "def roll(n)", "def roll(n", True),
    ],
)  # fmt: skip
def test_what_counts_and_what_does_not(
    root: Path, cell: str, file: str, old: str, new: str, counts: object
) -> None:
    name = file.replace("/", "__").replace(".", "__")
    before, after = reached(root, cell), reached(root, cell, **{name: (old, new)})
    assert (before.parts != after.parts) == bool(counts)
    if counts:
        assert root / file in before.files


def test_comments_docstrings_and_layout_do_not_count_unless_read(root: Path) -> None:
    edit = {"miniatures__engine__py": ('    """Run."""\n    # A comment.\n', "\n    'Go.'\n\n")}
    assert reached(root, RUN).parts == reached(root, RUN, **edit).parts
    for docstrings in ("book", "all"):
        before = reached(root, RUN, docstrings=docstrings)
        assert before.parts != reached(root, RUN, docstrings=docstrings, **edit).parts
    claim = "from insidetorch import claim\nclaim()"
    edit = {"insidetorch__claims__py": ("def claim(*a):\n", "def claim(*a):\n    'Go.'\n")}
    for docstrings, counts in (("", False), ("book", False), ("all", True)):
        before = reached(root, claim, docstrings=docstrings)
        after = reached(root, claim, docstrings=docstrings, **edit)
        assert (before.parts != after.parts) == counts
    reads = TREE["miniatures/engine.py"] + "\nprint(run.__doc__)\n"
    edits = [{"miniatures__engine__py": ("", text)} for text in (reads, reads.replace("Run.", "R"))]
    assert reached(root, RUN, **edits[0]).parts != reached(root, RUN, **edits[1]).parts


def test_a_name_that_moves_to_another_module_counts(root: Path) -> None:
    claim = "from insidetorch import claim\nclaim()"
    edit = {"insidetorch____init____py": ('"claim": "claims"', '"claim": "table"')}
    assert reached(root, claim).parts != reached(root, claim, **edit).parts
    other = "from insidetorch import source\nsource()"
    assert reached(root, other).parts == reached(root, other, **edit).parts


def test_a_search_for_a_name_may_read_every_module_it_searches(root: Path) -> None:
    found = reached(root, "from insidetorch import private\nprivate.version(1)")
    assert root / "insidetorch/names/loops.py" in found.files
    assert "insidetorch/names/loops.py" not in found.parts


def test_packages_of_others_are_those_that_reached_code_imports(root: Path) -> None:
    edit = {"miniatures__tape__py": ("    return 0", "    import scipy\n    return 0")}
    assert "scipy" not in reached(root, RUN, **edit).packages
    assert "scipy" in reached(root, "from miniatures.tape import idle", **edit).packages
    assert "numpy" in reached(root, "import numpy.random as r").packages


# ── Installed packages ──────────────────────────────────────────────────────────────────────────

REQUIRES: Mapping[str, list[str]] = {
    "ipykernel": ["ipython>=7", 'appnope; sys_platform == "darwin"', 'pytest; extra == "test"'],
    "matplotlib": ["numpy"],
    "sphinx": ["docutils"],
    "torch": ["sympy"],
    "pyyaml": [],
}
OTHERS = "ipython appnope pytest numpy docutils sympy"
VERSIONS = dict.fromkeys([*REQUIRES, *OTHERS.split()], "1")


def counted(changed: Mapping[str, str], *imported: str) -> dict[str, str]:
    now = {**VERSIONS, **changed}
    owners = {"yaml": ["PyYAML"], "matplotlib": ["matplotlib"]}
    return versions(
        imported,
        Installed(
            now.get, lambda name: REQUIRES.get(name, ()), lambda name: owners.get(name, ()),
            lambda: ["torch>=2.11", "absent"],
        ),
    )  # fmt: skip


def test_packages_that_can_change_outputs_count_and_others_do_not() -> None:
    before = counted({}, "yaml", "json")
    assert before == dict.fromkeys(["ipykernel", "ipython", "pyyaml", "sympy"], "1")
    for name in ("sphinx", "docutils", "pytest", "appnope", "numpy", "matplotlib", "torch"):
        assert counted({name: "2"}, "yaml", "json") == before
    for name in ("ipython", "pyyaml", "sympy"):
        assert counted({name: "2"}, "yaml", "json") != before
    assert counted({}, "matplotlib")["numpy"] == "1"


def test_the_packages_of_this_installation_run_cells_and_render_nothing() -> None:
    found = versions(["matplotlib", "yaml", "torch", "nobody_has_this"])
    assert {"ipykernel", "ipython", "traitlets", "numpy", "pyyaml", "sympy"} <= set(found)
    rendering = {"sphinx", "jupyter-book", "sphinx-book-theme", "docutils", "myst-nb", "pytest"}
    assert not rendering & set(found)
    assert packages._declared()


# ── What a process really opens ─────────────────────────────────────────────────────────────────


def test_a_process_notes_what_it_reads_of_the_book_and_nothing_else(tmp_path: Path) -> None:
    book, log = tmp_path / "book", tmp_path / "log"
    for name in ("a.txt", "sub/b.bin", "_build/c.txt", ".venv/d.txt", "mod.py", "never.txt"):
        (book / name).parent.mkdir(parents=True, exist_ok=True)
        (book / name).write_text("")
    program = f"""
import os, sys
from insidetorch.book import opened
opened.note()
assert opened.LOG not in os.environ
sys.path.insert(0, {str(book)!r})
os.chdir({str(book)!r})
import mod
open("a.txt").read()
os.open(b"sub/b.bin", os.O_RDONLY)
for apart in ("_build/c.txt", ".venv/d.txt", "/proc/self/maps"):
    open(apart).read()
open("own.txt", "w").close()
open("own.txt").read()
try:
    open("absent.txt")
except FileNotFoundError:
    pass
"""
    env = {opened.LOG: str(log), opened.BOOK: str(book), "PYTHONPATH": str(ROOT)}
    for _ in range(2):  # the second time, the module comes from its cache
        subprocess.run([sys.executable, "-c", program], env=env, check=True)
        names = sorted(path.relative_to(book).as_posix() for path in opened.read(log))
        assert names == ["a.txt", "mod.py", "sub/b.bin"]
        log.unlink()
    assert opened.read(log) == frozenset()


@pytest.mark.slow
def test_a_chapter_fails_that_reads_what_its_key_does_not_know(tmp_path: Path) -> None:
    book = TinyBook(tmp_path)
    book.cells("notebooks/good", "open('known.txt').read()", "open('../index.md').read()")
    book.cells("notebooks/bad", "open('known.' + 'txt').read(); import importlib",
               "importlib.import_module('mod' + 'ule')")  # fmt: skip
    (tmp_path / "notebooks/known.txt").write_text("x")
    (tmp_path / "notebooks/module.py").write_text("")
    status, said = book.build("-j", "2")
    assert status == 1, said
    (problem,) = (line for line in said.splitlines() if line.startswith("- "))
    assert problem.startswith("- notebooks/bad.md: a cell read notebooks/known.txt, and no code")
    assert 'Path(__file__).with_name("known.txt")' in problem
    assert "a cell read notebooks/module.py" in problem
    assert not list((tmp_path / "_build/cache/executed/notebooks__bad").glob("*.ipynb"))
    assert list((tmp_path / "_build/cache/executed/notebooks__good").glob("*.ipynb"))
