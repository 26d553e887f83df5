"""A profile becomes a drawing, words, and a trace that the site's own viewer opens."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import tarfile
import threading
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser
from tiny_book import TinyBook
from tools import lack

from insidetorch import timeline
from insidetorch.errors import BookError
from insidetorch.publish import viewer
from insidetorch.show import timelines
from insidetorch.show.traces import MAX_TRACE, TRACE_MIME, events, files, link_viewer, packed, plain


def complete(name: str, start: float, duration: float, tid: int = 1, cat: str = "cpu_op") -> Any:
    return {
        "ph": "X", "name": name, "cat": cat, "pid": 7, "tid": tid, "ts": start, "dur": duration,
    }  # fmt: skip


TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 9, "args": {"name": "stream 7"}},
        complete("inner", 1020, 30),
        complete("outer", 1000, 100, cat="user_annotation"),
        complete("after", 1100, 50),
        complete("kernel", 1200, 500, tid=9, cat="kernel"),
        {"ph": "i", "name": "mark", "pid": 7, "tid": 1, "ts": 1001},
        complete("the profiler", 0, 5000, cat="Trace"),
    ],
}


class TestTraces:
    def test_events_are_nested_in_their_lanes(self) -> None:
        found = [(e.name, e.lane, e.start, e.duration, e.depth) for e in events(TRACE)]
        assert found == [
            ("outer", "thread 1", 0, 100, 0), ("inner", "thread 1", 20, 30, 1),
            ("after", "thread 1", 100, 50, 0), ("kernel", "stream 7", 200, 500, 0),
        ]  # fmt: skip

    def test_a_trace_travels_in_its_output(self) -> None:
        content = json.dumps(TRACE).encode()
        small = packed(content, "a-step")
        assert small == packed(content, "a-step"), "the same bytes each time"
        sha = hashlib.sha256(content).hexdigest()[:8]
        notebook = {"cells": [
            {"cell_type": "code", "outputs": [{"data": {TRACE_MIME: small}}, {"text": "x"}]},
            {"cell_type": "markdown"},
        ]}  # fmt: skip
        path = f"traces/a-step-{sha}"
        assert files([notebook]) == {
            f"{path}.json": content, f"{path}.events.json": plain(TRACE),
        }  # fmt: skip

    def test_the_viewers_copy_has_the_events_alone(self) -> None:
        again = json.loads(plain(TRACE))
        assert [(e.name, e.lane, e.start, e.depth) for e in events(again)] == [
            (e.name, e.lane, e.start, e.depth) for e in events(TRACE)
        ]
        assert {e["ph"] for e in again["traceEvents"]} == {"M", "X"}

    @pytest.mark.parametrize("name", ["../up", "a/b", "", "-a", "x.json"])
    def test_a_name_is_no_path(self, name: str) -> None:
        with pytest.raises(BookError, match="letters, digits"):
            packed(b"{}", name)
        small = {**packed(b"{}", "a"), "file": f"{name}-12345678.json"}
        if name in ("", "-a", "../up", "a/b"):
            output = {"data": {TRACE_MIME: small}}
            assert not files([{"cells": [{"cell_type": "code", "outputs": [output]}]}])

    def test_a_large_trace_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("insidetorch.show.traces.MAX_TRACE", 10)
        with pytest.raises(BookError, match="trace fewer steps"):
            packed(b"{}", "a")
        assert MAX_TRACE > 2**20

    def test_the_viewer_is_offered_or_not_mentioned(self) -> None:
        html = 'a<span class="it-viewer" data-trace="traces/a-1.json" data-title="a"></span>b'
        assert link_viewer(html, None) == "ab"
        link = link_viewer(html, "_static/speedscope")
        assert (
            'href="../_static/speedscope/index.html#profileURL=../../traces/a-1.events.json&amp;title=a"'
            in link
        )


class TestTimeline:
    def test_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({**TRACE, "host_name": "mine", "traceName": str(path)}))
        shown = timeline(path, name="a-step")
        assert shown.text.startswith("Timeline of 700 µs on 2 threads or streams, 4 events.")
        assert "kernel  stream 7      1  500 µs" in shown.text
        assert 'aria-label="[figure' not in shown.html and "kernel" in shown.html
        assert shown.html.count("<svg") == 1 and "<script" not in shown.html
        kept = shown._repr_mimebundle_()[TRACE_MIME]
        assert json.loads(gzip.decompress(b64decode(kept["gzip"]))) == TRACE
        assert f'href="../traces/{kept["file"]}" download' in shown.html

    def test_of_a_profile(self) -> None:
        a = torch.ones(8, 8)
        with torch.profiler.profile() as profile:
            a @ a
        shown = timeline(profile, name="a-product", alt="One product.")
        assert {"aten::matmul", "aten::mm"} <= {event.name for event in shown.events}
        (outer,) = [e for e in shown.events if e.name == "aten::matmul"]
        (inner,) = [e for e in shown.events if e.name == "aten::mm"]
        assert outer.start <= inner.start <= inner.end <= outer.end
        assert (outer.depth, inner.depth) == (0, 1) and "One product." in shown.html

    def test_what_is_no_trace_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BookError, match="there is no such file"):
            timeline(tmp_path / "none.json", name="a")
        for content, said in (("[1]", "no trace"), ("{", "no trace"), ("{}", "no events")):
            (tmp_path / "bad.json").write_text(content)
            with pytest.raises(BookError, match=said):
                timeline(tmp_path / "bad.json", name="a")


class TestViewer:
    def test_that_there_is_none_is_said_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        monkeypatch.setattr(viewer, "SECONDS", 0.2)
        monkeypatch.setattr(shutil, "which", lambda _: None)
        assert viewer.viewer(tmp_path, said.append) is None
        assert len(said) == 1 and "npm is not installed" in said[0]
        assert viewer.viewer(tmp_path, said.append) is None
        assert len(said) == 1

        npm = tmp_path / "npm"
        npm.write_text(f"#!/bin/sh\necho >> {tmp_path}/tried\nexec sleep 600\n")
        npm.chmod(0o755)
        monkeypatch.setattr(shutil, "which", lambda _: str(npm))
        assert viewer.viewer(tmp_path, said.append) is None
        assert len(said) == 3 and "npm could not fetch speedscope" in said[2]
        assert viewer.viewer(tmp_path, said.append) is None
        assert len(said) == 3 and (tmp_path / "tried").read_text() == "\n"
        os.utime(tmp_path / "no-viewer", (0, 0))
        assert viewer.viewer(tmp_path, said.append) is None
        assert (tmp_path / "tried").read_text() == "\n\n"

    def test_another_package_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        npm = tmp_path / "npm"
        npm.write_text('#!/bin/sh\necho data > x.tgz\necho \'[{"filename": "x.tgz"}]\'\n')
        npm.chmod(0o755)
        monkeypatch.setattr(shutil, "which", lambda _: str(npm))
        assert viewer.viewer(tmp_path / "cache", print) is None
        npm.write_text("#!/bin/sh\nexit 1\n")
        assert viewer.viewer(tmp_path / "other", print) is None

    def test_only_the_viewer_is_unpacked(self, tmp_path: Path) -> None:
        names = ["dist/release/index.html", "LICENSE", "bin/cli.js",
                 "dist/release/perf-vertx-stacks-1.txt"]  # fmt: skip
        for name in names:
            path = tmp_path / "package" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        with tarfile.open(tmp_path / "x.tgz", "w:gz") as archive:
            archive.add(tmp_path / "package", "package")
        viewer.unpack(tmp_path / "x.tgz", tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
            "LICENSE", "index.html",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    book = TinyBook(tmp_path_factory.mktemp("book"))
    book.cells(
        "notebooks/one",
        "import torch\nfrom insidetorch import timeline\na = torch.ones(64, 64)\n"
        "with torch.profiler.profile() as profile:\n    for _ in range(3):\n        a @ a\n"
        "timeline(profile, name='three-products')",
    )
    status, said = book.build()
    assert not status, said
    return book.root / "_build" / "html"


@pytest.fixture
def address(built: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=built)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
class TestSite:
    def test_the_trace_lies_beside_the_page(self, built: Path) -> None:
        (trace,) = (p for p in (built / "traces").iterdir() if ".events." not in p.name)
        assert any(e["name"] == "aten::mm" for e in json.loads(trace.read_text())["traceEvents"])
        page = (built / "notebooks/one.html").read_text(encoding="utf-8")
        assert f'href="../traces/{trace.name}"' in page and "it-viewer" not in page
        given = (built / "_sources/notebooks/one.ipynb").read_text(encoding="utf-8")
        assert TRACE_MIME not in given

    def test_the_viewer_opens_it_and_asks_no_other_host(
        self, browser: Browser, address: str, built: Path
    ) -> None:
        if not (built / viewer.PLACE).is_dir():
            lack("npm did not bring the viewer, so the site has none")
        page = browser.new_page()
        asked: list[str] = []
        wrong: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/notebooks/one.html")
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.get_by_text("open in speedscope").click()
        page.wait_for_function("document.title.includes('three-products')", timeout=30_000)
        page.wait_for_selector("canvas")
        assert any("/traces/three-products-" in url for url in asked)
        assert not wrong
        assert not [u for u in asked if not u.startswith((address, "data:", "blob:"))]
        page.close()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::mm", "mm"),
        ("autograd::engine::evaluate_function: MmBackward0", "MmBackward0"),
        ("void at::native::kernel<4, at::native::Add<float>>(int)", "kernel"),
        ("channels last", "channels last"),
        ("## Call CompiledFxGraph f00 ##", "Call CompiledFxGraph f00"),
    ],
)
def test_bars_are_named_by_what_tells_them_apart(name: str, short: str) -> None:
    assert timelines._short(name) == short
