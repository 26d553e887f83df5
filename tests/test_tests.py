"""The tests' own machinery: tools that are missing, the order of the files, the account."""

from __future__ import annotations

import pytest
from costs import account, kind, longest_first
from tools import need


@pytest.mark.parametrize("ci", ["", "0", "false"])
def test_without_its_tool_a_test_is_skipped(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    need("sh", "cc")
    with pytest.raises(pytest.skip.Exception, match=r"not on this machine: no-such-tool"):
        need("sh", "no-such-tool")


@pytest.mark.parametrize("ci", ["true", "1"])
def test_where_tools_are_expected_it_fails(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match=r"no-such-tool; where CI is set"):
        need("no-such-tool")


def test_no_test_skips_on_its_own_for_want_of_a_tool(pytestconfig: pytest.Config) -> None:
    """A skip that nobody sees is a test that nobody has: `tools` decides."""
    telling = [
        f"{path.name}: {way}"
        for path in sorted((pytestconfig.rootpath / "tests").glob("*.py"))
        if path.name not in ("tools.py", "test_tests.py")
        for way in ("pytest.skip(", "importorskip(")
        if way in path.read_text(encoding="utf-8")
    ]
    assert telling == []


def test_the_longest_file_is_first_and_stays_together() -> None:
    seconds = {"a1": 1.0, "a2": 1.0, "b1": 5.0, "c1": 0.5, "c2": 9.0}
    items = ["a1", "b1", "c1", "a2", "c2", "d1"]

    def order(took: dict[str, float]) -> list[str]:
        return longest_first(items, lambda item: item[0], lambda item: took.get(item, 2.0))

    assert order(seconds) == ["c1", "c2", "b1", "a1", "a2", "d1"]
    assert order({}) == ["a1", "a2", "c1", "c2", "b1", "d1"]


def test_the_account_has_the_slowest_and_every_kind() -> None:
    spent = {f"tests/test_x.py::test_{i}": i / 10 for i in range(30)}
    spent |= {"tests/test_site_y.py::t": 7.0, "tests/test_miniature_z.py::t[a::b]": 50.0}
    lines = account(spent)
    assert "50.0 s  test_miniature_z.py::t[a::b]" in lines[0] and "7.0 s" in lines[1]
    assert lines.index("") == 20
    assert [line.split("s  ")[1] for line in lines[21:]] == [
        "miniatures, 1 tests", "toolkit, 30 tests", "site, 1 tests", "in all, over all processes",
    ]  # fmt: skip


def test_a_kind_is_told_by_the_file() -> None:
    names = ["drift_names", "notebooks_elsewhere", "miniature_amp", "site_ways", "claims"]
    kinds = [kind(f"tests/test_{name}.py::TestX::test_site") for name in names]
    assert kinds == ["drift", "notebooks", "miniatures", "site", "toolkit"]


def test_a_file_goes_to_one_process_when_several_share(request: pytest.FixtureRequest) -> None:
    """Tests of a file share what they install; pytest and pytest-xdist have to agree on names."""
    shared = hasattr(request.config, "workerinput")
    assert request.node.nodeid.endswith("@test_tests") == shared
