"""What becomes of an anchor in another release: verdict, rank, what is said of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from insidetorch.drift import compare as drift
from insidetorch.drift.anchors import Anchor, api
from insidetorch.drift.compare import compare
from insidetorch.drift.definitions import OPERATORS, definitions
from insidetorch.drift.deprecations import deprecation
from insidetorch.drift.findings import Finding
from insidetorch.drift.trees import Tree

HEADER = "torch/include/c10/a.h"
PYTHON = "torch/a.py"
_OLD = {
    "torch/__init__.py": "from torch.a import one, Kind\n",
    PYTHON: """
        def one(x, y=1):
            total = x + y
            total += 1
            return total

        class Kind:
            def method(self, value):
                first = value
                second = first
                return second
    """,
    HEADER: """
        namespace c10 {
        struct Box {
          int width;
          int height;

          int area() const {
            return width * height;
          }
        };
        }
    """,
    "torch/include/c10/b.h": "int other();\n",
    OPERATORS: """
        - func: mul.Tensor(Tensor self, Tensor other) -> Tensor
          dispatch:
            CPU: mul

        - func: mul.Scalar(Tensor self, Scalar other) -> Tensor
    """,
}


OLD = {path: dedent(text).lstrip("\n") for path, text in _OLD.items()}


def tree(files: dict[str, str], release: str = "1.0", *, complete: bool = False) -> Tree:
    stored = {path: text.encode() for path, text in files.items()}
    return Tree(release, "", frozenset(stored), complete, stored.__getitem__)


OLD_TREE = tree(OLD)


def excerpt(file: str, symbol: str, shown: tuple[int, int] | None = None) -> Anchor:
    (found,) = definitions(OLD_TREE, file, symbol)
    what = found.definition
    lines = (what.first, what.last)
    return Anchor("notebooks/a", "excerpt", symbol, (1,), file, symbol, lines, (shown or lines,),
                  found.sha256[:32], what.signature)  # fmt: skip


def named(name: str) -> Anchor:
    found = api("notebooks/a", name, (1,), OLD_TREE)
    assert found is not None
    return found


def after(anchor: Anchor, **changed: tuple[str, str]) -> Finding:
    """Return the finding when, in files called by their last part, one text becomes another."""
    files = {
        path: text.replace(*changed[path.split("/")[-1].split(".")[0]])
        if path.split("/")[-1].split(".")[0] in changed
        else text
        for path, text in OLD.items()
    }
    (finding,) = compare([anchor], OLD_TREE, tree(files, "2.0"))
    return finding


def test_the_same_release_is_unchanged() -> None:
    anchors = [
        excerpt(HEADER, "c10::Box"), excerpt(PYTHON, "Kind.method"), named("torch.one"),
        excerpt(OPERATORS, "mul.Tensor"),
    ]  # fmt: skip
    assert {f.verdict for f in compare(anchors, OLD_TREE, tree(OLD))} == {"unchanged"}


def test_comments_docstrings_and_layout_are_no_change() -> None:
    method = excerpt(PYTHON, "Kind.method")
    said = ("first = value", '"""Docs."""\n# margin\n        first = (\n  value)  # why')
    files = {**OLD, PYTHON: OLD[PYTHON].replace(*said)}
    (finding,) = compare([method], OLD_TREE, tree(files))
    assert (finding.verdict, finding.severity) == ("moved", 0)
    assert after(excerpt(HEADER, "c10::Box"), a=("width;", "width /* } */ ;  // {")).verdict == (
        "unchanged"
    )


def test_lines_that_only_move_ask_for_nothing() -> None:
    finding = after(excerpt(HEADER, "c10::Box"), a=("namespace c10", "\n\nnamespace c10"))
    assert (finding.verdict, finding.severity) == ("moved", 0)
    assert finding.lines == (4, 11)


def test_a_change_in_the_lines_that_are_shown_ranks_before_one_beside_them() -> None:
    box = excerpt(HEADER, "c10::Box", shown=(3, 4))
    shown = after(box, a=("int height", "long height"))
    beside = after(box, a=("width * height", "height * width"))
    assert shown.place == "changed where it is shown"
    assert beside.place == "changed beside what is shown"
    assert "-  int height;" in shown.diff and "+  long height;" in shown.diff
    lost = after(box, a=("int height;", ""))
    assert lost.breakages == ("c10::Box::height: member was removed",)


def test_a_definition_in_another_file_has_moved() -> None:
    box = excerpt(HEADER, "c10::Box")
    files = {**OLD, HEADER: "", "torch/include/c10/b.h": OLD[HEADER]}
    (finding,) = compare([box], OLD_TREE, tree(files))
    assert (finding.verdict, finding.file) == ("moved", "torch/include/c10/b.h")
    assert finding.severity == 1
    declared = {**files, HEADER: "namespace c10 { struct Box; }"}
    (finding,) = compare([box], OLD_TREE, tree(declared))
    assert finding.file == "torch/include/c10/b.h"


def test_what_is_gone_is_told_with_likely_places() -> None:
    finding = after(excerpt(HEADER, "c10::Box"), a=("struct Box", "struct Crate"))
    assert (finding.verdict, finding.severity) == ("gone", 2)
    assert finding.near == (f"{HEADER}: c10::Crate",)
    finding = after(excerpt(PYTHON, "Kind.method"), a=("def method", "def renamed"))
    assert finding.near[0] == f"{PYTHON}: Kind.renamed"
    finding = after(
        excerpt(OPERATORS, "mul.Tensor"), native_functions=("mul.Tensor(", "mul.Tensors(")
    )
    assert f"{OPERATORS}: mul.Tensors" in finding.near


def test_an_api_is_followed_by_its_public_name() -> None:
    one = named("torch.one")
    files = {
        **OLD,
        "torch/__init__.py": "from torch.b import one\nfrom torch.a import Kind\n",
        "torch/b.py": OLD[PYTHON].split("class")[0],
        PYTHON: "class" + OLD[PYTHON].split("class")[1],
    }
    (finding,) = compare([one], OLD_TREE, tree(files))
    assert (finding.verdict, finding.file) == ("moved", "torch/b.py")
    hidden = {**OLD, "torch/__init__.py": "from torch.a import Kind\n"}
    (finding,) = compare([one], OLD_TREE, tree(hidden))
    assert (finding.verdict, finding.near) == ("gone", (f"{PYTHON}: one",))


@pytest.mark.parametrize(
    ("old", "new", "breakage"),
    [
        ("x, y=1", "x", "Parameter was removed"),
        ("x, y=1", "x, y", "Parameter is now required"),
        ("x, y=1", "x, z, y=1", "Parameter was added as required"),
        ("y=1", "y=2", "Parameter default was changed"),
        ("x, y=1", "x, *, y=1", "Parameter kind was changed"),
    ],
)
def test_griffe_names_what_breaks_callers(old: str, new: str, breakage: str) -> None:
    finding = after(named("torch.one"), a=(old, new))
    assert (finding.verdict, finding.place) == ("signature", "signature changed")
    assert finding.severity == 1  # whether a cell breaks is what executing it tells
    assert any(breakage in text for text in finding.breakages), finding.breakages
    assert all(text.startswith("one") for text in finding.breakages)


def test_a_member_of_a_class_that_is_named_asks_for_a_look() -> None:
    kind = named("torch.Kind")
    member = after(kind, a=("def method", "def renamed"))
    assert member.place == "signature of a member changed"
    assert member.severity == 1
    made = tree({**OLD, PYTHON: OLD[PYTHON] + "    def __init__(self, size, depth): ...\n"})
    less = tree({**OLD, PYTHON: OLD[PYTHON] + "    def __init__(self, size): ...\n"}, "2.0")
    anchor = api("notebooks/a", "torch.Kind", (1,), made)
    assert anchor is not None
    (constructor,) = compare([anchor], made, less)
    assert constructor.place == "signature changed"


def test_a_change_behind_a_name_asks_for_a_look_only() -> None:
    finding = after(named("torch.one"), a=("total += 1", "total += 2"))
    assert (finding.verdict, finding.place) == ("changed", "its code changed")
    assert finding.severity == 1


def test_schemas_and_kernels_of_operators() -> None:
    files = {**OLD, "torch/_C/__init__.pyi": "def mul(input: Tensor) -> Tensor: ...\n"}
    files["torch/__init__.py"] = "from torch._C import mul\n"
    before = tree(files)
    mul = api("notebooks/a", "torch.mul", (1,), before)
    assert mul is not None and mul.file == OPERATORS

    def changed(old: str, new: str) -> Finding:
        (found,) = compare(
            [mul], before, tree({**files, OPERATORS: files[OPERATORS].replace(old, new)})
        )
        return found

    assert changed("Scalar other", "Scalar other, bool fast").verdict == "signature"
    assert changed("CPU: mul", "CPU: mul_cpu").verdict == "changed"
    removed = changed("- func: mul.Scalar(Tensor self, Scalar other) -> Tensor", "")
    assert removed.breakages == (
        "mul.Scalar: schema removed: mul.Scalar(Tensor self, Scalar other) -> Tensor",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@deprecated('no')\ndef one(x, y=1): ...", "marked @deprecated"),
        ("def one(x, y=1):\n    warnings.warn('no', FutureWarning)", "may warn"),
        ("def one(x, y=1):\n    '''This is deprecated.'''", "its documentation says"),
        ("def one(x, y=1):\n    warnings.warn('slow', UserWarning)", ""),
    ],
)
def test_deprecations_are_read_from_the_text(text: str, said: str) -> None:
    new = tree({**OLD, PYTHON: text}, "2.0")
    (found,) = definitions(new, PYTHON, "one")
    assert deprecation(found).startswith(said) and bool(deprecation(found)) == bool(said)
    (finding,) = compare([named("torch.one")], OLD_TREE, new)
    assert finding.deprecated.startswith(said)


def test_what_a_wheel_does_not_carry_is_seen_in_a_checkout_alone() -> None:
    card = Anchor("notebooks/a", "excerpt", "e.cpp:f", (1,), "torch/csrc/e.cpp", "f", (0, 0), (),
                  "", "")  # fmt: skip
    (finding,) = compare([card], OLD_TREE, tree(OLD))
    assert (finding.verdict, finding.severity) == ("unseen", 0)
    with_it = tree({**OLD, "torch/csrc/e.cpp": "void f() {}\n"}, complete=True)
    (finding,) = compare([card], OLD_TREE, with_it)
    assert finding.verdict == "unchanged"
    (finding,) = compare([card], OLD_TREE, tree(OLD, complete=True))
    assert finding.verdict == "gone"


def test_what_depends_on_the_platform_is_not_compared() -> None:
    file = "torch/include/ATen/ops/add_native.h"
    before, now = tree({file: "int add();\n"}), tree({file: "long add();\n"})
    (found,) = definitions(before, file, "add")
    anchor = Anchor("notebooks/a", "excerpt", "add", (1,), file, "add", (1, 1), (),
                    found.sha256[:32], "int add()")  # fmt: skip
    (finding,) = compare([anchor], before, now)
    assert finding.verdict == "unseen"


def test_the_most_misleading_comes_first_within_its_chapter() -> None:
    anchors = [named("torch.one"), excerpt(HEADER, "c10::Box")]
    files = {
        **OLD,
        PYTHON: OLD[PYTHON].replace("total += 1", "total += 2"),
        HEADER: OLD[HEADER].replace("struct Box", "struct Crate"),
    }
    found = compare(anchors, OLD_TREE, tree(files))
    assert [f.verdict for f in found] == ["gone", "changed"]
    assert drift.stale(anchors, tree(files)) == anchors
