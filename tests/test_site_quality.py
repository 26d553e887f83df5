"""Gates for the built site that only Node.js programs check: Lighthouse and the HTML itself."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from built_site import ROOT, SITE

from insidetorch import facts

pytestmark = [pytest.mark.site, pytest.mark.slow, pytest.mark.usefixtures("site")]

TOOLS = ROOT / "tests" / "web"
INSTALLED = ROOT / "_build" / "web"
# A short page, a long chapter, and the three pages that grow with the book.
PAGES = ["book/index", "notebooks/autograd-engine"]
LISTS = ["book/references", "book/verdicts", "book/still-true"]
LEAST = {"accessibility": 1.0, "best-practices": 0.98, "seo": 0.98}
# Of its score for speed, what is no time: a loaded machine measures others.
SPEED = ["cumulative-layout-shift", "total-byte-weight", "network-requests"]
KILOBYTES, REQUESTS = 400, 40
COMPRESSED = (".html", ".css", ".js", ".svg", ".json")


@pytest.fixture(scope="module")
def tools() -> Path:
    """Return the folder of the programs, installed as their lock file says."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is not on PATH; install Node.js 20 or newer.", False)
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock = (TOOLS / "package-lock.json").read_bytes()
    for name in ("package.json", "package-lock.json", ".htmlvalidate.json"):
        shutil.copy2(TOOLS / name, INSTALLED)
    done = INSTALLED / "installed"
    if not done.is_file() or done.read_bytes() != lock:
        command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True)
        done.write_bytes(lock)
    return INSTALLED / "node_modules" / ".bin"


class Compressing(SimpleHTTPRequestHandler):
    """Serves files as the hosts of static sites do: compressed, over one connection."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def send_head(self) -> Any:
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes())
        self.send_response(200)
        self.send_header("Content-Type", f"{self.guess_type(str(path))}; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = partial(Compressing, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def pages() -> list[Path]:
    return sorted(p for p in SITE.rglob("*.html") if "_static" not in p.relative_to(SITE).parts)


def test_the_pages_are_valid_html(tools: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [tools / "html-validate", "--config", INSTALLED / ".htmlvalidate.json"]
    command += ["--formatter", f"json={report}", *map(str, pages())]
    subprocess.run(command, cwd=INSTALLED, capture_output=True)
    said = json.loads(report.read_text(encoding="utf-8"))
    found = [
        f"{Path(page['filePath']).name}:{message['line']}: {message['message']}"
        for page in said
        for message in page["messages"]
    ]
    assert found == []


@pytest.mark.parametrize("page", [*PAGES, *LISTS])
def test_lighthouse_finds_a_page_light_and_sound(tools: Path, address: str, page: str) -> None:
    # Its judge of access is axe, which visits every page; of a list it takes a minute.
    least = {name: LEAST[name] for name in LEAST if page in PAGES or name != "accessibility"}
    report = lighthouse(tools, f"{address}/{page}.html", least)
    scores = {name: report["categories"][name]["score"] for name in least}
    assert {name: score for name, score in scores.items() if score < least[name]} == {}
    shift, weight, requests = (report["audits"][name] for name in SPEED)
    assert shift["numericValue"] <= 0.05
    assert weight["numericValue"] <= KILOBYTES * 1024
    assert 5 < len(requests["details"]["items"]) <= REQUESTS


def lighthouse(tools: Path, url: str, judged: Iterable[str]) -> dict[str, Any]:
    """Return the report of one run, as a phone on a slow network would load the page."""
    program = facts.chromium()
    if program is None:
        pytest.fail("No Chromium is on PATH; install the package `chromium`.", False)
    flags = "--headless=new --no-sandbox --disable-gpu --disable-background-networking"
    done = subprocess.run(
        [tools / "lighthouse", url, "--quiet", "--output=json", f"--chrome-flags={flags}",
         f"--only-categories={','.join(judged)}", f"--only-audits={','.join(SPEED)}"],
        env={**os.environ, "CHROME_PATH": program},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
