"""The anchors over the releases, and the stored data beside an independent comparison."""

from __future__ import annotations

import json
import os
from pathlib import Path

import independent_drift
import pytest

from insidetorch.drift import lockfile
from insidetorch.drift.anchors import Anchor
from insidetorch.drift.book import installed
from insidetorch.drift.compare import compare
from insidetorch.drift.definitions import OPERATORS, definitions
from insidetorch.drift.findings import Derivative
from insidetorch.drift.history import History, Row, dump, parse, shares, trace, version
from insidetorch.drift.trees import Tree, open_wheel
from insidetorch.errors import BookError
from insidetorch.locate.yamls import FILES

ROOT = Path(__file__).parents[1]
DERIVATIVES = FILES["derivatives.yaml"]
CHECKED = ROOT / "tests" / "data" / "drift_checked.json"
RELEASES = {"2.11.0", "2.12.1", "2.14.1", "2.15.0"}
STATES = {"same": "same", "other": "other", "moved": "away", "absent": "away"}


def tree(release: str, **files: str) -> Tree:
    stored = {f"torch/{name}.py": text.encode() for name, text in files.items()}
    return Tree(release, "", frozenset(stored), False, stored.__getitem__)


def test_an_anchor_is_traced_through_releases_in_order() -> None:
    one, two = "def f(x):\n    y = x\n    z = y\n    return z\n", "def f(x):\n    return 2\n"
    pinned = tree("2.10.0", a=one)
    past = [
        tree("2.9.1", a=two, b=""), tree("2.2.0", b=""), tree("2.11.0", b=one),
        tree("2.10.1", a=one, b=""),
    ]  # fmt: skip
    (found,) = definitions(pinned, "torch/a.py", "f")
    anchor = Anchor("notebooks/a", "excerpt", "f", (1,), "torch/a.py", "f", (1, 4), (),
                    found.sha256[:32], "def f(x):")  # fmt: skip
    history = trace([anchor], pinned, past)
    assert history.releases == ("2.2.0", "2.9.1", "2.10.0", "2.10.1", "2.11.0")
    (row,) = history.rows
    assert history.states(row) == ["absent", "other", "same", "same", "moved"]
    assert history.since(row) == "2.10.0"
    assert parse(dump(history)) == history
    assert shares(history, [row])["2.11.0"] == {"same": 0, "moved": 1, "other": 0, "absent": 0}


def test_the_age_reaches_back_over_a_move() -> None:
    row = Row(
        "c", "api", "t", (("1.0", "aa", "x.py"), ("1.1", "aa", "y.py"), ("1.2", "bb", "y.py"))
    )
    history = History(("1.0", "1.1", "1.2"), "1.1", (row,))
    assert history.since(row) == "1.0"
    assert history.states(row) == ["moved", "same", "other"]


def test_releases_sort_by_number() -> None:
    assert sorted(["2.10.0", "2.9.1", "2.9.0"], key=version) == ["2.9.0", "2.9.1", "2.10.0"]


@pytest.mark.parametrize(
    "text", ["", "{", '{"schema": 9}', '{"schema": 1, "releases": ["1.0"], "pinned": "1.0"}\n{}']
)
def test_damaged_or_newer_data_is_refused(text: str) -> None:
    with pytest.raises(BookError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_the_stored_verdicts_agree_with_an_independent_comparison() -> None:
    checked: dict[str, dict[str, str]] = json.loads(CHECKED.read_text(encoding="utf-8"))
    path = ROOT / "data" / "drift" / "history.jsonl"
    history = parse(path.read_text(encoding="utf-8"))
    assert set(checked) == RELEASES
    rows = {" ".join(row.id): history.states(row) for row in history.rows}
    compared = 0
    for release, verdicts in checked.items():
        index = history.releases.index(release)
        both = rows.keys() & verdicts.keys()
        compared += len(both)
        wrong = {key for key in both if STATES[rows[key][index]] != verdicts[key]}
        assert not wrong, f"{release}: {wrong}"
    assert compared >= 120


@pytest.mark.slow
@pytest.mark.skipif(
    "INSIDETORCH_WHEELS" not in os.environ, reason="INSIDETORCH_WHEELS names no folder of wheels"
)
def test_verdicts_agree_with_an_independent_comparison_of_wheels() -> None:
    lock = lockfile.read(ROOT / lockfile.NAME)
    anchors = [anchor for anchor in lock.anchors if anchor.sha256]
    pinned, here = installed(), independent_drift.installed()
    for path in sorted(Path(os.environ["INSIDETORCH_WHEELS"]).glob("torch-*.whl")):
        release, there = independent_drift.wheel(path)
        for finding in compare(anchors, pinned, open_wheel(path)):
            anchor = finding.anchor
            if finding.verdict == "unseen":
                continue
            if anchor.file == OPERATORS:
                derivative = independent_drift.verdict(here, there, DERIVATIVES, anchor.symbol)
                changed = isinstance(finding, Derivative)
                assert not changed or derivative in ("other", "away"), f"{release}: {anchor.target}"
                if finding.verdict in ("unchanged", "moved", "restyled"):
                    assert derivative in ("same", "unread"), f"{release}: {anchor.target}"
                if changed:
                    continue
            away = finding.verdict == "gone" or finding.moved_file
            same = finding.verdict in ("unchanged", "moved")
            mine = "away" if away else "same" if same else "other"
            other = independent_drift.verdict(here, there, anchor.file, anchor.symbol)
            assert other in (mine, "unread"), f"{release}: {anchor.target}"
