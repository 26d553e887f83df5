"""The lock: what it holds, how it differs, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from insidetorch.drift.anchors import Anchor, Source, gather
from insidetorch.drift.definitions import fingerprint
from insidetorch.drift.lockfile import SCHEMA, Lock, changes, describe, dump, parse, read, sentences
from insidetorch.drift.trees import Tree
from insidetorch.errors import BookError

A = Anchor(
    "notebooks/a", "api", "torch.x", (1, 4), "torch/x.py", "x", (3, 9), (), "a" * 32, "def x"
)
B = Anchor("notebooks/b", "excerpt", "torch::Y", (2,), "torch/include/y.h", "torch::Y", (5, 8),
           ((5, 6), (8, 8)), "b" * 32, "class Y")  # fmt: skip
LOCK = Lock("2.13.0", "c0ffee", (B, A))


def test_the_lock_is_sorted_one_anchor_to_a_line_and_read_back() -> None:
    text = dump(LOCK)
    assert parse(text) == Lock("2.13.0", "c0ffee", (A, B))
    assert dump(parse(text)) == text
    assert len(text.splitlines()) == 3
    moved = dump(replace(LOCK, anchors=(replace(A, lines=(4, 10)), B)))
    assert sum(a != b for a, b in zip(text.splitlines(), moved.splitlines(), strict=True)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ('{"schema": 99}\n', f"reads up to {SCHEMA}"),
        ("{", "line 1"),
        (dump(LOCK) + "{]\n", "line 4"),
        (dump(LOCK).replace('"symbol"', '"sigil"'), "line 2"),
        (dump(LOCK).replace("[3, 9]", "[3]"), "line 2"),
        (dump(LOCK).replace('"torch.x"', "7"), "line 2"),
    ],
)
def test_a_damaged_or_newer_lock_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(BookError, match=said) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert "make lock" in str(caught.value)


def test_a_lock_that_is_no_text_is_damaged_too(tmp_path: Path) -> None:
    (tmp_path / "anchors.lock").write_bytes(dump(LOCK).encode() + b"\xff\xfe\n")
    with pytest.raises(BookError, match=r"anchors\.lock, line 4, cannot be read"):
        read(tmp_path / "anchors.lock")


def test_each_difference_is_told() -> None:
    new = replace(B, target="torch::Z")
    stale = replace(A, sha256="d" * 32)
    found = changes(LOCK, [stale, new])
    assert [change.kind for change in found] == ["stale", "unused", "new"]
    said = sentences(found, ["notebooks/a", "notebooks/b"])
    assert len(said) == 3
    assert "notebooks/a, code cells 1, 4: torch.x is no longer what" in said[0]
    assert changes(LOCK, [A, B]) == []
    assert [c.kind for c in changes(LOCK, [A, replace(B, lines=(6, 9))])] == ["placed"]
    assert describe(found)[0] == "notebooks/a"


def test_a_chapter_that_is_gone_is_told_once() -> None:
    other = replace(B, target="torch::Other")
    found = changes(Lock("2.13.0", "", (A, B, other)), [A])
    assert sentences(found, ["notebooks/a"]) == [
        "anchors.lock holds anchors of notebooks/b, which the book no longer has; run `make lock`."
    ]


HEADER = "struct Y {\n  int a;\n};\nint one();\n"


def record(**changed: object) -> dict[str, object]:
    return {
        "kind": "excerpt", "cell": 2, "target": "Y", "symbol": "Y", "upstream": "y.h",
        "file": "torch/include/y.h", "lines": [1, 2], "defined": [1, 3], "signature": "struct Y",
        "sha256": fingerprint(HEADER.split("int one")[0].strip(), "cpp"), **changed,
    }  # fmt: skip


def tree() -> Tree:
    return Tree("2.13.0", "", frozenset({"torch/include/y.h"}), False, lambda _: HEADER.encode())


def test_excerpts_of_one_thing_are_one_anchor() -> None:
    records = [record(), record(cell=7, lines=[3, 3])]
    (anchor,) = gather([Source("notebooks/a", [], records)], tree())
    assert anchor.cells == (2, 7)
    assert anchor.shown == ((1, 2), (3, 3))


def test_an_excerpt_of_another_torch_is_refused() -> None:
    with pytest.raises(BookError, match="code cell 2: the excerpt of Y was not made from torch 2"):
        gather([Source("notebooks/a", [], [record(sha256="0" * 64)])], tree())


def test_what_is_not_shipped_and_what_is_ours() -> None:
    records = [
        record(target="e.cpp:E::f", file=None, upstream="torch/csrc/e.cpp", symbol="E::f",
               sha256=None, lines=None, defined=None, signature=None),
        record(file="miniatures/autograd_engine/engine.py", upstream=None),
    ]  # fmt: skip
    (anchor,) = gather([Source("notebooks/a", [], records)], tree())
    assert (anchor.file, anchor.sha256) == ("torch/csrc/e.cpp", "")


def test_a_lock_line_is_json() -> None:
    assert json.loads(dump(LOCK).splitlines()[0]) == {
        "schema": SCHEMA, "torch": "2.13.0", "commit": "c0ffee",
    }  # fmt: skip


def test_an_attribute_that_only_instances_have_keeps_its_anchor() -> None:
    from insidetorch.drift.anchors import _declared

    assert _declared("torch.nn.Linear.weight")
    assert not _declared("torch.nn.Linear.height")
    assert not _declared("torch.nowhere.at_all")
