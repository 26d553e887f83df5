"""`timeline`: a profile as a drawing with a text alternative, and as a trace to take or open."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insidetorch.display import Display, escape, seconds, table
from insidetorch.errors import BookError
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.traces import FOLDER, TRACE_MIME, Event, events, packed

LANES, LEVELS, ROWS = 5, 4, 8
"""How many lanes and levels are drawn, and how many rows the table has."""

_COLOUR = {"cpu_op": "a", "user_annotation": "b", "kernel": "c", "python_function": "e"}
_OF_THE_MACHINE = ("host_name", "traceName")
_WIDTH = 42
"""Characters that fit beside each other in the drawing."""


@dataclass(frozen=True, repr=False)
class Timeline(Display):
    """What `timeline` shows, and the trace that goes with it.

    :param events: the complete events of the trace.
    :param trace: the file's name, and the file, compressed and in base64.
    """

    events: tuple[Event, ...] = ()
    trace: dict[str, str] | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(include, exclude)
        if self.trace is not None:
            bundle[TRACE_MIME] = self.trace
        return bundle


def timeline(profile: Any, *, name: str, alt: str = "") -> Timeline:
    """Return a profile as a timeline: drawn, in words, to download, and to open in the site.

    :param profile: a `torch.profiler.profile` that has ended, or the path of a trace that
        ``export_chrome_trace`` wrote.
    :param name: of the trace's file, unique in the book.
    :param alt: what the drawing says, in words; the longest events unless given.
    :raises BookError: there is no such file, it is no trace, or it is empty or too large.
    """
    content = _content(profile)
    try:
        trace = json.loads(content)
        found = events(trace)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"timeline(…, name={name!r}): this is no trace in Chrome's format ({error}); "
            "give a profile that has ended, or a file that export_chrome_trace wrote."
        ) from None
    # The machine's name and the file's place then are nobody else's concern.
    content = json.dumps({k: v for k, v in trace.items() if k not in _OF_THE_MACHINE}).encode()
    kept = packed(content, name)
    drawn = _lanes(found)
    words = _words(found)
    picture = figure(_draw(drawn), alt=alt or f"{_span(found)} {words.text}")
    path = f"{FOLDER}/{kept['file']}"
    size = f"{len(content) / 2**20:.1f} MiB" if len(content) >= 2**20 else f"{len(content)} bytes"
    offer = (
        f'<p class="it it-trace"><a href="../{path}" download>{escape(kept["file"])}</a> '
        f"<span>({size}, {len(found):,} events)</span>"
        f'<span class="it-viewer" data-trace="{path}" data-title="{escape(name)}"></span></p>'
    )
    html = (
        f'{picture.html}<details class="it"><summary>{escape(_span(found))} '
        f"The longest, as a table</summary>{words.html}</details>{offer}"
    )
    text = f"{_span(found)}\n{words.text}\n{path} ({size}, {len(found):,} events)"
    return Timeline(html, text, None, tuple(found), kept)


def _content(profile: Any) -> bytes:
    if hasattr(profile, "export_chrome_trace"):
        with tempfile.TemporaryDirectory(prefix="it-") as scratch:
            path = Path(scratch) / "trace.json"
            profile.export_chrome_trace(str(path))
            return path.read_bytes()
    path = Path(profile)
    if not path.is_file():
        raise BookError(f"timeline({str(profile)!r}, …): there is no such file; write it first.")
    return path.read_bytes()


def _lanes(found: Sequence[Event]) -> dict[str, list[Event]]:
    """Return the events to draw, by lane: the busiest lanes, in the order of their start."""
    lanes: dict[str, list[Event]] = defaultdict(list)
    for event in found:
        lanes[event.lane].append(event)
    busy = {lane: sum(e.duration for e in its if not e.depth) for lane, its in lanes.items()}
    most = sorted(busy, key=lambda lane: -busy[lane])[:LANES]
    return {
        lane: [event for event in its if event.depth < LEVELS]
        for lane, its in lanes.items()
        if lane in most
    }


def _draw(lanes: dict[str, list[Event]]) -> Any:
    import matplotlib.pyplot as plt

    last = max(event.end for its in lanes.values() for event in its)
    unit, of_unit = ("ms", 1e3) if last >= 1e3 else ("µs", 1.0)
    heights = {lane: 1 + max(event.depth for event in its) for lane, its in lanes.items()}
    total = sum(heights.values()) + 0.6 * (len(heights) - 1)
    with style():
        fig, axis = plt.subplots(figsize=(5.2, 0.75 + 0.28 * total))
        top, ticks = 0.0, []
        for lane, its in lanes.items():
            for event in its:
                colour = COLOURS[_COLOUR.get(event.kind, "d")]
                place = (event.start / of_unit, event.duration / of_unit)
                axis.broken_barh([place], (top + event.depth + 0.06, 0.88), facecolor=colour)
                room = int(_WIDTH * event.duration / last)
                if room >= 3:
                    label = _short(event.name)
                    axis.text(
                        (event.start + event.duration / 2) / of_unit,
                        top + event.depth + 0.5,
                        label if len(label) <= room else label[: room - 1] + "…",
                        ha="center", va="center", size=11, color=COLOURS["pane"],
                    )  # fmt: skip
            ticks.append((top + heights[lane] / 2, lane))
            top += heights[lane] + 0.6
        axis.set(ylim=(total, 0), xlim=(0, last / of_unit), xlabel=unit)
        axis.set_yticks([y for y, _ in ticks], [lane for _, lane in ticks])
        axis.grid(False, axis="y")
    return fig


def _short(name: str) -> str:
    """Return a name without namespaces, types and template arguments, if it is one of C++."""
    if "::" not in name:
        return name.strip("# ") or name
    return name.split("<")[0].split(": ")[-1].split("::")[-1].split(" ")[-1] or name


def _span(found: Sequence[Event]) -> str:
    lanes = len({event.lane for event in found})
    span = max(event.end for event in found) - min(event.start for event in found)
    where = f"{lanes} threads or streams" if lanes > 1 else "one thread"
    return f"Timeline of {seconds(span / 1e6)} on {where}, {len(found):,} events."


def _words(found: Sequence[Event]) -> Display:
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in found:
        sums[event.name, event.lane].append(event.duration)
    longest = sorted(sums, key=lambda key: -sum(sums[key]))[:ROWS]
    rows = [
        [event, lane, len(sums[event, lane]), seconds(sum(sums[event, lane]) / 1e6)]
        for event, lane in longest
    ]
    return table(["event", "where", "times", "in all"], rows, numeric=(2, 3))
