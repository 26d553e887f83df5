"""The label of a CUDA cell, and what identifies its code."""

from __future__ import annotations

import io
import tokenize
from importlib import util
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from insidetorch.errors import BookError
from insidetorch.gpu import cell as cell_code

BODY = """\
x = torch.ones(4, 8, device="cuda")
for i in range(3):
    if i % 2 == 0 and not done:
        x = x * 1.5 + helper(x, i)
print("norm", x.norm() < limit, [1, 2][0])
x.sum()
"""
EARLIER = (
    "import torch\nfrom insidetorch import claim",
    "limit = 10\ndef helper(x, i):\n    return scale(x) - i",
    "def scale(x):\n    return x / 2\ndone = False",
    "unused = 1",
)


def test_a_label_has_a_name_and_options() -> None:
    label = cell_code.label('two-gpus --title "Two GPUs" --memory 1.5GiB --gpus 2')
    assert label == cell_code.Label("two-gpus", "Two GPUs", 3 * 2**29, 2)
    assert cell_code.label("a").heading == "a" and label.heading == "Two GPUs"


@pytest.mark.parametrize(
    "line",
    [
        "", "a_b", "a/b", "..", "-a", "a-", "run-1", "a b", "a --what", "a --memory 8", "a" * 61,
        "a --gpus 0", "a --gpus x", 'a --title "x',
    ],
)  # fmt: skip
def test_a_malformed_label_is_refused_in_one_sentence(line: str) -> None:
    with pytest.raises(BookError) as refused:
        cell_code.label(line)
    assert str(refused.value).startswith("%%cuda") and "\n" not in str(refused.value)


def test_two_cells_of_one_name_are_refused() -> None:
    with pytest.raises(BookError, match="%%cuda a: two cells"):
        cell_code.labels(["%%cuda a\n1", "x = 1", "%%cuda a\n2"])


def test_other_cells_are_no_cuda_cells() -> None:
    assert cell_code.split("%%cuda-like a\n1") is None
    assert cell_code.split("x = '%%cuda a'") is None
    assert cell_code.split("%%cuda a\nx\ny") == ("a", "x\ny")
    assert cell_code.split("%%cuda a") == ("a", "")


# ── What identifies the code ────────────────────────────────────────────────────────────────────


def tokens(source: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(source).readline))


def changed(token: tokenize.TokenInfo) -> list[str]:
    text = token.string
    if token.type == tokenize.NAME:
        return [f"{text}_", f"{text}2", "None"]
    if token.type == tokenize.NUMBER:
        return [f"{text}7", f"3{text}"]
    if token.type == tokenize.STRING:
        return [f"{text[:-1]}_{text[-1]}", "''"]
    return ["+", "-", "*", "<", ">", "==", "%", "=", "(", "]", ","]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_change_of_the_code_changes_the_digest(data: st.DataObject) -> None:
    words = [t for t in tokens(BODY) if t.string.strip() and t.type != tokenize.COMMENT]
    token = data.draw(st.sampled_from(words))
    new = data.draw(st.sampled_from(changed(token)))
    assume(new != token.string)
    lines = BODY.splitlines(keepends=True)
    row, start, end = token.start[0] - 1, token.start[1], token.end[1]
    lines[row] = lines[row][:start] + new + lines[row][end:]
    assert cell_code.digest("".join(lines), EARLIER) != cell_code.digest(BODY, EARLIER)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_white_space_and_comments_do_not(data: st.DataObject) -> None:
    spaces = st.sampled_from([" ", "  ", "\t", "   "])
    note = st.sampled_from(["", "  # a remark", " #", "  # x = 1"])
    blank = st.sampled_from(["", "\n", "# alone\n", "    # indented\n\n"])
    lines = []
    for line in BODY.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        words = [t.string for t in tokens(line.lstrip() + "\n") if t.string.strip()]
        spaced = "".join(word + data.draw(spaces) for word in words)
        lines.append(f"{data.draw(blank)}{indent}{spaced.rstrip()}{data.draw(note)}\n")
    assert cell_code.digest("".join(lines), EARLIER) == cell_code.digest(BODY, EARLIER)


def test_helpers_that_the_cell_names_count_and_others_do_not() -> None:
    first = cell_code.digest(BODY, EARLIER)

    def with_cell(index: int, source: str) -> str:
        return cell_code.digest(BODY, [*EARLIER[:index], source, *EARLIER[index + 1 :]])

    assert with_cell(3, "unused = 2") == first
    assert with_cell(0, "import torch\nfrom insidetorch import claim, source") == first
    assert with_cell(1, EARLIER[1].replace("10", "11")) != first
    assert with_cell(1, EARLIER[1].replace("- i", "+ i")) != first
    assert with_cell(2, EARLIER[2].replace("/ 2", "/ 3")) != first, "a helper of a helper"
    assert with_cell(2, EARLIER[2] + "\nlimit = 10") == first, "said again"
    assert with_cell(2, EARLIER[2] + "\nlimit += 1") != first
    assert cell_code.digest(BODY, [*EARLIER, "%%cuda other\ndone = True"]) != first


@pytest.mark.parametrize(
    ("earlier", "same"),
    [
        (["x = 2", "y = x + 1"], True),
        (["x = 1", "y = x + 1", "claim(all(x for x in ys))", "f = lambda x: x"], True),
        (["x = 7", "x = 1", "y = x + 1"], True),
        (["x = 1", "x += 0", "y = x + 1"], False),
        (["x = 1", "x.size = 2", "y = x + 1"], False),
        (["x = 1", "if x: x = 2", "y = x + 1"], False),
        (["x = 1", "print(x := 2)", "y = x + 1"], False),
        (["x = 1", "y = x + 1", "y[0] = 2"], False),
        (["x = 1", "y = x + 1", "x = 5"], True),
        (["x = 1", "y = x + 1", "for x in ys: pass"], True),
    ],
)
def test_what_sets_a_name_last_counts_and_what_changes_it_since(
    earlier: list[str], same: bool
) -> None:
    first = cell_code.digest("print(y)", ["x = 1", "y = x + 1"])
    wanted = cell_code.digest("print(y)", ["x = 2", "y = x + 1"])
    found = cell_code.digest("print(y)", earlier)
    assert (found == (wanted if earlier[0] == "x = 2" else first)) == same


def test_a_function_finds_its_names_when_it_is_called() -> None:
    def digest(*earlier: str, body: str = "f()") -> str:
        return cell_code.digest(
            body, ["n = 1", "def f(k=2):\n    m = k\n    return m + n", *earlier]
        )

    assert digest("n = 3") != digest()
    assert digest("m = 3", "k = 4") == digest(), "names of its own"
    assert digest("g = f()", "n = 3", body="g") == digest("g = f()", body="g")
    later = "h = lambda: n"
    assert digest(later, "n = 3", body="h()") != digest(later, body="h()")


@pytest.mark.parametrize(
    "inner",
    [
        "def g():\n        n = 2\n        return n",
        "g = lambda n: n",
        "g = [n for n in range(2)]",
        "class g:\n        n = 2",
    ],
)
def test_a_name_of_an_inner_function_is_not_its_outer_ones(inner: str) -> None:
    def digest(*earlier: str) -> str:
        return cell_code.digest(
            "f()", ["n = 1", f"def f():\n    {inner}\n    return n, g", *earlier]
        )

    assert digest("n = 3") != digest()
    assert digest("m = 3") == digest()


def test_of_a_miniature_the_names_that_are_needed_count(tmp_path: Path) -> None:
    parts = {
        "imports": "from .queue import Queue, other",
        "run": "def run(x):\n    return Queue(x)",
        "rest": "def rest(x):\n    return 1",
    }
    queue = "class Queue: pass\ndef other(): pass"
    (tmp_path / "miniatures").mkdir()
    (tmp_path / "miniatures" / "__init__.py").write_text("raise SystemExit")

    def digest(engine: dict[str, str], queue: str, *earlier: str, body: str = "run(x)") -> str:
        for name, text in (("engine", "\n".join(engine.values())), ("queue", queue)):
            (tmp_path / "miniatures" / f"{name}.py").write_text(f"{text}\nraise SystemExit")
        return cell_code.digest(body, earlier, cell_code.reached_in([tmp_path]))

    earlier = "from miniatures.engine import run"
    for options in ({}, {"body": f"{earlier}\nrun(x)"}):
        cells = () if options else (earlier,)
        first = digest(parts, queue, *cells, **options)
        for engine, other, same in (
            ({**parts, "rest": "rest = 2"}, queue, True),
            (parts, queue.replace("other(): pass", "other(): return 1"), True),
            ({**parts, "run": parts["run"].replace("run(x)", "run(x, y=1)")}, queue, False),
            (parts, queue.replace("Queue: pass", "Queue: x = 1"), False),
        ):
            assert (digest(engine, other, *cells, **options) == first) == same


def test_of_the_toolkit_what_measures_counts_and_what_shows_does_not(
    tmp_path: Path, monkeypatch
) -> None:
    sources = {
        "__init__": "raise SystemExit",
        "measure/timing": "from insidetorch.display import show\n"
        "def bench(f): return show(runs(f))\ndef runs(f): return 30\ndef seconds(s): return 's'",
        "display": "def show(x): return x",
    }
    (tmp_path / "insidetorch" / "measure").mkdir(parents=True)
    monkeypatch.setattr(cell_code, "_TOOLKIT", tmp_path)

    def digest(module: str = "measure/timing", old: str = "", new: str = "") -> str:
        for name, text in sources.items():
            text = text.replace(old, new) if name == module else text
            (tmp_path / "insidetorch" / f"{name}.py").write_text(text)
        cells = ["from insidetorch import bench, figure"]
        return cell_code.digest("bench(f)", cells, cell_code.reached_in([]))

    assert digest("measure/timing", "30", "2") != digest()
    assert digest("measure/timing", "show(runs(f))", "runs(f)") != digest()
    assert digest("measure/timing", "'s'", "'seconds'") == digest()
    assert digest("measure/timing", "return 30", "return 30  # at least") == digest()
    assert digest("display", "return x", "return ''") == digest()


def test_the_modules_that_count_are_there() -> None:
    assert all(util.find_spec(name) for name in cell_code.COUNTED)


def test_what_a_cell_reaches_is_asked_of_the_cell_and_what_it_needs() -> None:
    asked: list[str] = []

    def reached(sources) -> str:
        asked.extend(sources)
        return str(len(asked))

    first = cell_code.digest("print( helper(1, 2) )", EARLIER, reached)
    assert asked[0] == "print(helper(1, 2))" and len(asked) == 3
    assert "def helper(x, i):\n    return scale(x) - i" in asked
    assert cell_code.digest("print( helper(1, 2) )", EARLIER, reached) != first


def test_cells_in_ipythons_own_language_have_digests_too() -> None:
    assert cell_code.digest("!nvidia-smi  # now") == cell_code.digest("!nvidia-smi  # now\n\n")
    assert cell_code.digest("!nvidia-smi") != cell_code.digest("!nvidia-smi -L")
    assert cell_code.digest("this is ( no code") != cell_code.digest("this is ( not code")


def test_what_must_run_for_a_cell() -> None:
    sources = ["a = 1", "%%cuda one\nx = a", "%%cuda two\nprint(a)", "%%cuda three\nx", "b = 2"]
    assert cell_code.cells_to_run(sources, ["three"]) == [0, 1, 3]
    assert cell_code.cells_to_run(sources, ["two"]) == [0, 2]
    assert cell_code.cells_to_run(sources, []) == []
