"""Outside tools: what they show, and the one sentence where they are missing."""

from __future__ import annotations

import shutil

import pytest
import torch
from tools import lack

from insidetorch.errors import BookError
from miniatures.how_to_see_inside import draw
from miniatures.how_to_see_inside import watch as tools
from miniatures.how_to_see_inside.watch import OBSERVERS, Calls, Operators, Seen, seen
from miniatures.how_to_see_inside.watch_run import (
    Look,
    Row,
    alive,
    beside,
    happened,
    kinds_of_records,
    places,
)

PROGRAM = """
def program():
    pass
"""


def test_modes_list_functions_and_operators() -> None:
    x = torch.ones(2, 2)
    with Calls() as calls, Operators() as operators:
        (x + 1).sum()
    assert calls.seen == ["torch.Tensor.add", "torch.Tensor.sum"]
    assert operators.seen == ["aten::add.Tensor", "aten::sum"]


def test_every_observer_lets_the_program_run() -> None:
    for observer in OBSERVERS.values():
        with observer():
            assert (torch.ones(2) * 2).tolist() == [2, 2]


def test_an_output_loses_addresses_and_folders() -> None:
    shown = seen("gdb", ["0x00007ffff57990b0 in f () from /x/site-packages/torch/lib/a.so"], 0)
    assert shown.lines == ("0x… in f () from a.so",)
    assert seen("t", ['File "/tmp/x/script.py", line 4'], 0).lines == ('File "script.py", line 4',)
    assert seen("t", ["a::b<c>(d) from Blas.cpp:0"], 0).lines == ("a::b<c>(d) from Blas.cpp:0",)


def test_parts_of_an_output() -> None:
    whole = seen("t", ["one", "two", "three", "four"], 0)
    assert whole.part("two", "thr").lines == ("two", "three")
    assert whole.part("three").lines == ("three", "four")
    assert whole.having("one", "four").lines == ("one", "⋯", "four")
    assert whole.having("two", "three").lines == ("two", "three")
    with pytest.raises(BookError, match="no line of the output has 'five'"):
        whole.part("five")


@pytest.mark.parametrize(
    "run",
    [
        lambda: tools.gdb(PROGRAM, "run"),
        lambda: tools.symbols("libc10.so"),
        lambda: tools.sections("libc10.so"),
        lambda: tools.perf(PROGRAM),
        lambda: tools.bare("int main() {}"),
        lambda: tools.memcheck("int main() {}"),
        lambda: tools.Counting(PROGRAM).counts(),
    ],
    ids=["gdb", "nm", "readelf", "perf", "compiler", "valgrind", "callgrind"],
)
def test_a_missing_tool_is_one_sentence(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    shown = run()
    assert isinstance(shown, Seen)
    assert not shown
    assert "is not installed: install the system package" in shown.text
    assert shown.text.count(".") <= 2
    assert not shown.part("anything").lines
    assert not shown.having("anything").lines


def test_a_missing_py_spy_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert "pip install py-spy" in tools.py_spy(PROGRAM).text  # type: ignore[union-attr]


def test_sampled_frames_lose_templates_and_parameters() -> None:
    line = "<module> (a.py:1);c10::f<int, g<x>>::call(at::Tensor const&, long) (lib.so);h (lib.so)"
    assert tools._split(line) == ["<module> (a.py:1)", "c10::f::call (lib.so)", "h (lib.so)"]


def test_a_script_sees_its_environment() -> None:
    shown = tools.script("import os\nprint(os.environ['ANSWER'])\nraise SystemExit(3)", ANSWER="42")
    assert shown.lines == ("42",)
    assert shown.status == 3
    assert shown.title == "ANSWER=42 python"


def test_python_functions_are_counted() -> None:
    def inner() -> None:
        pass

    def outer() -> None:
        inner()
        inner()

    assert tools.frames(outer) == 3


@pytest.mark.needs("gdb")
def test_gdb_stops_where_it_is_told() -> None:
    shown = tools.gdb("import os\nos.getppid()\n", "break getppid", "run", "bt 1")
    if not shown:
        assert "allow ptrace" in shown.text
        lack("leave to trace a process")
    assert shown.lines[0] == "(gdb) break getppid"
    assert any("getppid" in line for line in shown.part("(gdb) bt 1").lines)


@pytest.mark.needs("c++")
def test_a_cpp_program_is_compiled_and_run() -> None:
    code = '#include <c10/util/Exception.h>\n#include <cstdio>\nint main() { std::puts("here"); }'
    shown = tools.bare(code)
    assert shown.lines == ("here",)
    assert shown.status == 0
    with pytest.raises(BookError, match="compiler refused"):
        tools.bare("int main() { return nothing; }")


def test_what_works_beside_the_page_works_in_order() -> None:
    done: list[int] = []
    waiting = [beside(done.append, number) for number in range(3)]
    assert [each.result() for each in waiting] == [None] * 3
    assert done == [0, 1, 2]


def test_a_run_is_a_tree_of_functions_and_operators() -> None:
    x, w = torch.ones(2, 2), torch.ones(3, 2, requires_grad=True)
    rows = happened(lambda: torch.nn.functional.linear(x, w).relu())
    assert [row.name for row in rows if row.kind == "function"] == ["linear", "torch.Tensor.relu"]
    assert (rows[0].depth, rows[1]) == (0, Row(1, "aten::linear", "operator"))
    assert "aten::clamp_min" in [row.name for row in rows if row.depth == 2]


def test_a_list_is_found_in_a_run_in_order() -> None:
    rows = [Row(1, name, "operator") for name in ("t", "mm", "t", "relu")]
    assert places(rows, ["t", "t", "relu"]) == {0, 2, 3}
    assert places(rows, ["mm", "detach", "relu"]) == {1, 3}
    assert places(rows, []) == set()


def test_bytes_held_and_kinds_of_records() -> None:
    assert alive([4, 8, -4]) == [0, 4, 12, 8]
    log = 'V11 a.py:1] {"graph": {"x": 1}, "rank": 0}\n\t{"payload": 1}\nV11 b.py:2] {"code": {}}\n'
    assert kinds_of_records(log + log) == ["graph", "code"]


def test_pictures_say_what_they_show() -> None:
    rows = [("one", "first", "a"), ("two", "second", "")]
    shown = draw.ladder(rows, "ab", ("box", "words", "name"))
    assert (
        shown.text == "[figure: From top to bottom, box, words, name: one: first, a; two: second.]"
    )
    look = Look("mode", [Row(0, "f", "function"), Row(1, "g", "operator")], {1}, "It says g.")
    assert "mode lists 1 of 2 rows: g." in draw.looked(look, 2).text
    assert "ends at 1 KiB" in draw.held([0, 2048, 1024], 1, 1).text
