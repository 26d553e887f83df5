"""What becomes of an anchor in another release: verdict, rank, what is said of it."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

from insidetorch.drift import compare as drift
from insidetorch.drift.anchors import Anchor, api
from insidetorch.drift.compare import compare
from insidetorch.drift.definitions import OPERATORS, definitions
from insidetorch.drift.deprecations import deprecation
from insidetorch.drift.findings import Finding
from insidetorch.drift.releases import pack
from insidetorch.drift.trees import Tree, open_wheel
from insidetorch.drift.unshipped import exports

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
    assert (finding.verdict, finding.differs) == ("moved within its file", False)
    assert after(excerpt(HEADER, "c10::Box"), a=("width;", "width /* } */ ;  // {")).verdict == (
        "unchanged"
    )


def test_lines_that_only_move_ask_for_nothing() -> None:
    finding = after(excerpt(HEADER, "c10::Box"), a=("namespace c10", "\n\nnamespace c10"))
    assert (finding.verdict, finding.differs) == ("moved within its file", False)
    assert finding.lines == (4, 11)


def test_a_change_in_the_lines_that_are_shown_ranks_before_one_beside_them() -> None:
    box = excerpt(HEADER, "c10::Box", shown=(3, 4))
    shown = after(box, a=("int height", "long height"))
    beside = after(box, a=("width * height", "height * width"))
    (change,) = shown.changes
    assert change.shown and (change.old, change.new) == (("int height;",), ("long height;",))
    assert [one.shown for one in beside.changes] == [False]
    lost = after(box, a=("int height;", ""))
    assert list(map(str, lost.breakages)) == ["c10::Box::height: member removed"]


def test_a_definition_in_another_file_has_moved() -> None:
    box = excerpt(HEADER, "c10::Box")
    files = {**OLD, HEADER: "", "torch/include/c10/b.h": OLD[HEADER]}
    (finding,) = compare([box], OLD_TREE, tree(files))
    assert (finding.verdict, finding.file) == ("moved", "torch/include/c10/b.h")
    assert finding.differs
    declared = {**files, HEADER: "namespace c10 { struct Box; }"}
    (finding,) = compare([box], OLD_TREE, tree(declared))
    assert finding.file == "torch/include/c10/b.h"


def test_what_is_gone_is_told_with_likely_places() -> None:
    finding = after(excerpt(HEADER, "c10::Box"), a=("struct Box", "struct Crate"))
    assert finding.verdict == "gone"
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
        ("x, y=1", "x", "parameter removed"),
        ("x, y=1", "x, y", "parameter required"),
        ("x, y=1", "x, z, y=1", "parameter required"),
        ("y=1", "y=2", "default changed"),
        ("x, y=1", "x, *, y=1", "parameter passed otherwise"),
    ],
)
def test_griffe_names_what_breaks_callers(old: str, new: str, breakage: str) -> None:
    finding = after(named("torch.one"), a=(old, new))
    assert finding.verdict == "signature"
    assert breakage in [one.why for one in finding.breakages]
    assert all(one.owner == "one" for one in finding.breakages)


def test_members_and_the_constructor_of_a_class_that_is_named_are_told() -> None:
    kind = named("torch.Kind")
    member = after(kind, a=("def method", "def renamed"))
    assert list(map(str, member.breakages)) == ["Kind.method: member removed"]
    made = tree({**OLD, PYTHON: OLD[PYTHON] + "    def __init__(self, size, depth): ...\n"})
    less = tree({**OLD, PYTHON: OLD[PYTHON] + "    def __init__(self, size): ...\n"}, "2.0")
    anchor = api("notebooks/a", "torch.Kind", (1,), made)
    assert anchor is not None
    (constructor,) = compare([anchor], made, less)
    assert list(map(str, constructor.breakages)) == ["Kind.__init__: parameter removed: depth"]


def test_a_change_behind_a_name_is_no_breakage() -> None:
    finding = after(named("torch.one"), a=("total += 1", "total += 2"))
    assert (finding.verdict, finding.breakages) == ("changed", ())


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
    assert list(map(str, removed.breakages)) == [
        "mul: overload removed: mul.Scalar(Tensor self, Scalar other) -> Tensor"
    ]


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
    assert finding.said.startswith(f"deprecated there: {said}" if said else "")


def test_what_a_wheel_does_not_carry_is_seen_in_a_checkout_alone() -> None:
    card = Anchor("notebooks/a", "excerpt", "e.cpp:f", (1,), "torch/csrc/e.cpp", "f", (0, 0), (),
                  "", "")  # fmt: skip
    (finding,) = compare([card], OLD_TREE, tree(OLD))
    assert (finding.verdict, finding.said) == ("unknown", "no copy of torch/csrc/e.cpp is at hand")
    with_it = tree({**OLD, "torch/csrc/e.cpp": "void f() {}\n"}, complete=True)
    (finding,) = compare([card], OLD_TREE, with_it)
    assert (finding.verdict, finding.said.split(";")[0]) == ("unknown", "it is there")
    (finding,) = compare([card], with_it, with_it)
    assert finding.verdict == "unchanged"
    other = tree({**OLD, "torch/csrc/e.cpp": "void f() { g(); }\n"}, complete=True)
    (finding,) = compare([card], with_it, other)
    assert finding.verdict == "changed" and finding.changes[0].shown
    (finding,) = compare([card], OLD_TREE, tree(OLD, complete=True))
    assert finding.verdict == "gone"


def test_what_depends_on_the_platform_is_not_compared() -> None:
    file = "torch/include/ATen/ops/add_native.h"
    before, now = tree({file: "int add();\n"}), tree({file: "long add();\n"})
    (found,) = definitions(before, file, "add")
    anchor = Anchor("notebooks/a", "excerpt", "add", (1,), file, "add", (1, 1), (),
                    found.sha256[:32], "int add()")  # fmt: skip
    (finding,) = compare([anchor], before, now)
    assert finding.verdict == "unknown"


def test_an_anchor_of_other_code_than_the_lock_is_stale() -> None:
    anchors = [named("torch.one"), excerpt(HEADER, "c10::Box")]
    files = {
        **OLD,
        PYTHON: OLD[PYTHON].replace("total += 1", "total += 2"),
        HEADER: OLD[HEADER].replace("struct Box", "struct Crate"),
    }
    assert drift.stale(anchors, tree(files)) == anchors
    assert drift.stale(anchors, OLD_TREE) == []


def test_a_clone_tells_of_files_at_each_release_s_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    file = tmp_path / "torch" / "csrc" / "e.cpp"
    file.parent.mkdir(parents=True)

    def committed(text: str) -> Tree:
        file.write_text(text)
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
            subprocess.run([*git, *words], check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        return Tree("1.0", head.stdout.strip(), frozenset(), False, lambda path: b"")

    trees = [
        committed(text)
        for text in (
            "namespace t {\nvoid E::f() { a(); }\n}\n",
            "namespace t {\n// said\nvoid E::f() { a(); }\n}\n",
            "namespace t {\nvoid E::f() { if (x) a(); }\n}\n",
            "namespace t { void E::g() {} }\n",
        )
    ]
    card = Anchor("notebooks/a", "excerpt", "e.cpp:f", (1,), "torch/csrc/e.cpp", "E::f", (0, 0), (),
                  "", "")  # fmt: skip
    monkeypatch.setenv("PYTORCH_SRC", str(tmp_path))
    found = [compare([card], trees[0], other)[0] for other in trees]
    assert [one.verdict for one in found] == ["unchanged", "unchanged", "changed", "gone"]
    elsewhere = Tree("2.0", "c" * 40, frozenset(), False, lambda path: b"")
    (unknown,) = compare([card], trees[0], elsewhere)
    assert unknown.verdict == "unknown"


def test_symbols_tell_whether_a_function_is_still_there(tmp_path: Path) -> None:
    def release(name: str, *names: str) -> Tree:
        wheel = tmp_path / f"{name}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(
                "torch/version.py", f"__version__ = '{name}'\ngit_version = 'c{name}'\n"
            )
            archive.writestr("torch/lib/libtorch_cpu.so", b"\0".join(n.encode() for n in names))
        pack(wheel, tmp_path / f"{name}.zip")
        return open_wheel(tmp_path / f"{name}.zip")

    one = release("1", "_ZN5torch1E3runEv", "_ZNK5torch1E4walkEi")
    two = release("2", "_ZN5torch1E5renamedEv", "_ZNK5torch1E4walkEl")
    told = [exports(tree, symbol) for tree in (one, two) for symbol in ("E::run", "torch::E::walk")]
    assert told == [True, True, False, True]
    assert exports(tree({}), "E::run") is None
    for symbol, verdict in (("E::run", "gone"), ("E::walk", "unknown")):
        card = Anchor("notebooks/a", "excerpt", "x", (1,), "torch/csrc/e.cpp", symbol, (0, 0), (),
                      "", "")  # fmt: skip
        (finding,) = compare([card], one, two)
        assert finding.verdict == verdict
    assert finding.said.startswith("its symbol is there")
