"""Settings of all tests, and what several of them start: the built site, a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from built_site import SITE
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from insidetorch import facts

# A property is tested for what it returns, not for its speed.
settings.register_profile("book", deadline=None)
settings.load_profile("book")

_QUIET = ["background-networking", "component-update", "sync", "quic"]
_FLAGS = ["--no-sandbox", *(f"--disable-{name}" for name in _QUIET)]


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
