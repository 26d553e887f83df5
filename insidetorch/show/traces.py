"""Traces in Chrome's format: read, nested, and carried inside a cell's own output to the site."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insidetorch.errors import BookError

TRACE_MIME = "application/vnd.insidetorch.trace+json"
"""A trace travels in its output's bundle under this type; the build puts it beside the site."""
MAX_TRACE = 2 * 2**20
"""Bytes that one trace may have, compressed."""
FOLDER = "traces"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}-[0-9a-f]{8}\.json")
_MARKER = re.compile(r'<span class="it-viewer" data-trace="([^"]+)" data-title="([^"]*)"></span>')


@dataclass(frozen=True)
class Event:
    """A complete event: something that began and ended on one thread or stream.

    :param lane: where, in words.
    :param start: microseconds since the first event.
    :param duration: microseconds.
    :param depth: how many other events of the lane it lies in.
    """

    name: str
    kind: str
    lane: str
    start: float
    duration: float
    depth: int = 0

    @property
    def end(self) -> float:
        """Microseconds since the first event."""
        return self.start + self.duration


def events(trace: Mapping[str, Any]) -> list[Event]:
    """Return the complete events of a trace, outermost first, with their depth.

    :param trace: what ``export_chrome_trace`` wrote, as JSON.
    :raises BookError: there are none.
    """
    found = trace.get("traceEvents", ())
    names = {
        (event.get("pid"), event.get("tid")): str(event["args"]["name"])
        for event in found
        if event.get("ph") == "M" and event.get("name") == "thread_name"
    }
    whole = [
        event
        for event in found
        if event.get("ph") == "X" and event.get("cat") not in (None, "Trace", "overhead")
    ]
    if not whole:
        raise BookError("The trace has no events: run something inside the profiler.")
    first = min(float(event["ts"]) for event in whole)
    lanes: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for event in whole:
        lanes[event.get("pid"), event.get("tid")].append(event)
    order = sorted(lanes, key=lambda place: min(float(event["ts"]) for event in lanes[place]))
    return [
        event
        for number, place in enumerate(order, start=1)
        for event in _nested(lanes[place], _lane(names.get(place, ""), number), first)
    ]


def _nested(found: Sequence[Mapping[str, Any]], lane: str, first: float) -> Iterator[Event]:
    open_until: list[float] = []
    for event in sorted(found, key=lambda e: (float(e["ts"]), -float(e.get("dur", 0)))):
        start, duration = float(event["ts"]) - first, float(event.get("dur", 0))
        while open_until and open_until[-1] <= start:
            open_until.pop()
        yield Event(str(event["name"]), str(event["cat"]), lane, start, duration, len(open_until))
        open_until.append(start + duration)


def _lane(name: str, number: int) -> str:
    return name if name.startswith("stream") else f"thread {number}"


def packed(content: bytes, name: str) -> dict[str, str]:
    """Return what an output carries of a trace: the name of its file, and the file.

    :raises BookError: the name has unusual characters, or the trace is too large.
    """
    if not _NAME.fullmatch(name):
        raise BookError(
            f"timeline(…, name={name!r}): name the file with letters, digits, - and _ alone."
        )
    small = gzip.compress(content, mtime=0)
    if len(small) > MAX_TRACE:
        raise BookError(
            f"timeline(…, name={name!r}): the trace has {len(small) / 2**20:.1f} MiB compressed, "
            f"and may have {MAX_TRACE // 2**20}; trace fewer steps."
        )
    sha = hashlib.sha256(content).hexdigest()[:8]
    return {"file": f"{name}-{sha}.json", "gzip": base64.b64encode(small).decode("ascii")}


def unpacked(file: str, small: bytes) -> dict[str, str]:
    """Return what `packed` did, from the file that a recording keeps of it.

    :param file: the name that `packed` gave.
    :param small: the compressed trace.
    :raises BookError: it is no trace, or not the one of that name.
    """
    try:
        content = gzip.decompress(small)
        plain(json.loads(content))
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
        raise BookError(f"{file} holds no trace; record the cell again.") from None
    kept = packed(content, file[: -len("-00000000.json")])
    if not _FILE.fullmatch(file) or kept["file"] != file:
        raise BookError(f"{file} holds another trace than its name says; record the cell again.")
    return kept


def files(notebooks: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """Return the traces in the outputs of executed notebooks: path below the site → content.

    Each comes twice: as it was written, and with nothing but its events, for the viewer.
    """
    found: dict[str, bytes] = {}
    for notebook in notebooks:
        for cell in notebook["cells"]:
            for output in cell.get("outputs", ()):
                data = output.get("data", {}).get(TRACE_MIME)
                if isinstance(data, Mapping) and _FILE.fullmatch(str(data.get("file"))):
                    content = gzip.decompress(base64.b64decode(data["gzip"]))
                    path = f"{FOLDER}/{data['file']}"
                    found |= {path: content, _for_viewer(path): plain(json.loads(content))}
    return found


def plain(trace: Mapping[str, Any]) -> bytes:
    """Return a trace with its events and the names of its lanes alone: what every viewer reads."""
    found = events(trace)
    lanes = {lane: tid for tid, lane in enumerate(dict.fromkeys(e.lane for e in found), start=1)}
    names = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": lane}}
        for lane, tid in lanes.items()
    ]
    whole = [
        {
            "ph": "X", "name": event.name, "cat": event.kind, "pid": 1, "tid": lanes[event.lane],
            "ts": round(event.start, 3), "dur": round(event.duration, 3),
        }
        for event in found
    ]  # fmt: skip
    return json.dumps({"traceEvents": names + whole}, separators=(",", ":")).encode()


def _for_viewer(path: str) -> str:
    return path.removesuffix(".json") + ".events.json"


def link_viewer(html: str, viewer: str | None) -> str:
    """Return a page whose timelines offer the viewer, or do not mention it.

    :param viewer: the folder of the viewer below the site, or None if the site has none.
    """

    def link(found: re.Match[str]) -> str:
        if viewer is None:
            return ""
        up = "../" * (viewer.count("/") + 1)
        target = f"#profileURL={up}{_for_viewer(found[1])}&amp;title={found[2]}"
        return f' · <a href="../{viewer}/index.html{target}">open in speedscope</a>'

    return _MARKER.sub(link, html)
