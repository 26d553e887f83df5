"""Settings of all tests, and what several of them start: the built site, a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built_site import SITE
from costs import account, file_of, longest_first, seconds_by
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright
from tools import need

from insidetorch import facts

# A property is tested for what it returns, not for its speed.
settings.register_profile("book", deadline=None)
settings.load_profile("book")

_QUIET = ["background-networking", "component-update", "sync", "quic"]
_FLAGS = ["--no-sandbox", *(f"--disable-{name}" for name in _QUIET)]
_SECONDS = "book/seconds"
"""Where pytest's cache keeps what each test took when it last ran."""


@pytest.fixture(scope="module")
def site() -> Path:
    """Return the folder of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.fail("There is no site to test in _build/html; run `make book` first.", False)
    return SITE


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium."""
    program = facts.chromium()
    if program is None:
        pytest.fail("No Chromium is on PATH; install the package `chromium`.", False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield browser
        browser.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--weekly", action="store_true", help="run what is marked weekly, too")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let one process run the tests of a file, which share fixtures, unless a mark parts them."""
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(file_of(item.nodeid)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    weekly = [item for item in items if item.get_closest_marker("weekly")]
    if weekly and not config.getoption("--weekly"):
        config.hook.pytest_deselected(items=weekly)
        items[:] = [item for item in items if not item.get_closest_marker("weekly")]
    if hasattr(config, "workerinput"):  # one of several processes that share the tests
        last = config.cache.get(_SECONDS, {})
        items[:] = longest_first(items, _group, lambda item: last.get(_name(item), _guess(item)))


def _group(item: pytest.Item) -> str:
    return str(item.get_closest_marker("xdist_group").args[0])


def _name(item: pytest.Item) -> str:
    return item.nodeid.removesuffix(f"@{_group(item)}")  # which pytest-xdist appends


def _guess(item: pytest.Item) -> float:
    """Return the seconds that a test is held to take that has not run here yet."""
    marks = {mark.name for mark in item.iter_markers()}
    return 20.0 if {"site", "slow"} <= marks else 3.0 if marks & {"site", "slow"} else 0.1


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        need(*mark.args)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    spent = seconds_by((report.nodeid, report.duration) for report in reports)
    if spent:
        terminalreporter.section("slowest tests, and seconds by kind")
        for line in account(spent):
            terminalreporter.write_line(line)
        config.cache.set(_SECONDS, {**config.cache.get(_SECONDS, {}), **spent})
