"""Pictures of who is busy when: lanes of a CPU, a GPU and its copies; and a roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.gpu_performance.launch_queue import COPY, CPU, GPU, Span, waiting

ROLES = {"launch": "a", "wait": "b", "host": "e", "kernel": "c"}
_SAYS = {"launch": "launches", "wait": "waits", "host": "does something else", "kernel": "runs"}
_SIGNS = {"launch": "", "wait": "//", "host": r"\\", "kernel": ""}


def lanes(
    runs: Mapping[str, Sequence[Span]], *, until: float | None = None, names: bool = False,
    scale: float | None = None, **picture: Any,
) -> Display:  # fmt: skip
    """Draw programs, each as a lane for the CPU and one for the GPU, over microseconds.

    :param until: draw what has happened by then, and no more.
    :param names: write each kernel's name into its box.
    :param scale: microseconds of the whole picture; each program has its own unless given.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    order = [
        (title, lane) for title, spans in runs.items()
        for lane in (CPU, COPY, GPU) if lane == GPU or any(s.lane == lane for s in spans)
    ]  # fmt: skip
    with style():
        fig, ax = plt.subplots(figsize=(5.6, 0.36 * len(order) + 0.95))
        kinds = set()
        for row, (title, lane) in enumerate(order):
            whole = scale or max(span.end for span in runs[title])
            for span in runs[title]:
                end = span.end if until is None else min(span.end, until)
                if span.lane != lane or end <= span.start:
                    continue
                kinds.add(span.kind)
                long = (end - span.start) / whole * 100
                ax.barh(row, long, left=span.start / whole * 100, height=0.62,
                        color=COLOURS[ROLES[span.kind]], hatch=_SIGNS[span.kind],
                        edgecolor=COLOURS["pane"], linewidth=0.6)  # fmt: skip
                if names and long > 2.2 * len(span.name):
                    ax.text(span.start / whole * 100 + long / 2, row, span.name, ha="center",
                            va="center", fontsize=10.5, color=COLOURS["pane"])  # fmt: skip
        ax.set_yticks(
            range(len(order)),
            [f"{title}: {lane}" if title and lane == CPU else lane for title, lane in order],
        )
        ax.set(xlim=(0, 100), ylim=(len(order) - 0.5, -0.6), xlabel="time →")
        ax.set_xticks([])
        ax.grid(visible=False)
        marks = [Patch(facecolor=COLOURS[ROLES[k]], hatch=_SIGNS[k], label=_SAYS[k])
                 for k in ROLES if k in kinds]  # fmt: skip
        ax.legend(handles=marks, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False,
                  fontsize=10.5, handlelength=1.2, columnspacing=0.9)  # fmt: skip
    return figure(fig, alt=_in_words(runs, until), **picture)


def _in_words(runs: Mapping[str, Sequence[Span]], until: float | None) -> str:
    parts = []
    for title, spans in runs.items():
        whole = max(span.end for span in spans)
        for lane in (CPU, COPY, GPU):
            busy = sum(
                min(s.end, until or s.end) - s.start
                for s in spans
                if s.lane == lane and s.start < (until or s.end) and s.kind != "wait"
            )
            if any(span.lane == lane for span in spans):
                parts.append(f"{title or 'the run'}, {lane}: works {busy:.0f} of {whole:.0f} µs")
    return "; ".join(parts) + "."


def queue_states(spans: Sequence[Span], times: Sequence[float]) -> list[tuple[Display, str]]:
    """Return a picture and a sentence for each time: what has run, and what the queue holds."""
    whole, states = max(span.end for span in spans), []
    for time in times:
        held = waiting(spans, time)
        running = [s.name for s in spans if s.lane == GPU and s.start <= time < s.end]
        host = [s for s in spans if s.lane == CPU and s.start <= time < s.end]
        cpu = {"launch": "launches", "wait": "waits in", "host": "is in"}
        doing = f"the CPU {cpu[host[0].kind]} {host[0].name}" if host else "the CPU is done"
        says = (
            f"{time:g} µs: {doing}; in the queue: {', '.join(held) or 'nothing'}; the GPU "
            f"{'runs ' + running[0] if running else 'is idle'}."
        )
        states.append((lanes({"": spans}, until=time, names=True, scale=whole), says))
    return states


def bars(values: Mapping[str, Mapping[str, float]], unit: str, **picture: Any) -> Display:
    """Draw stacked bars, one for each key, with parts by name; the sum stands at the end."""
    import matplotlib.pyplot as plt

    parts = list(dict.fromkeys(part for each in values.values() for part in each))
    signs = dict(zip(parts, ["", "//", r"\\", "xx", "--", "++"] * 3, strict=False))
    with style():
        fig, ax = plt.subplots(figsize=(5.6, 0.42 * len(values) + 1.05))
        for n, part in enumerate(parts):
            left = [sum(list(each.values())[: list(each).index(part)]) if part in each else 0
                    for each in values.values()]  # fmt: skip
            ax.barh(list(values), [each.get(part, 0) for each in values.values()], left=left,
                    label=part, color=COLOURS["abcdef"[n % 6]], hatch=signs[part],
                    edgecolor=COLOURS["pane"])  # fmt: skip
        for row, each in enumerate(values.values()):
            total = sum(each.values())
            ax.text(total, row, f" {total:,.0f}" if total >= 100 else f" {total:.3g}", va="center")
        ax.set(xlabel=unit, xlim=(0, max(sum(v.values()) for v in values.values()) * 1.14))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        if len(parts) > 1:
            ax.legend(
                loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=10.5
            )
    said = "; ".join(f"{key}: " + ", ".join(f"{part} {value:.3g}" for part, value in each.items())
                     for key, each in values.items())  # fmt: skip
    return figure(fig, alt=f"{unit}. {said}.", **picture)


def roofline(
    chips: Mapping[str, tuple[float, float]], points: Mapping[str, float],
    measured: Mapping[str, tuple[float, float]] | None = None, **picture: Any,
) -> Display:  # fmt: skip
    """Draw the rate that a chip allows over the FLOP for each byte.

    :param chips: bytes and FLOP a second, by name.
    :param points: the FLOP for each byte of operations; they are marked on the axis below.
    :param measured: intensity and FLOP a second of what was measured.
    """
    import matplotlib.pyplot as plt

    across = [2 ** (e / 2) for e in range(-6, 29)]
    with style():
        fig, ax = plt.subplots(figsize=(5.6, 3.6))
        for n, (name, (memory, compute)) in enumerate(chips.items()):
            ax.plot(across, [min(memory * x, compute) / 1e12 for x in across], label=name,
                    linestyle=("-", "--", "-.", ":")[n % 4])  # fmt: skip
            ax.plot(compute / memory, compute / 1e12, "|", color=f"C{n}", ms=13, mew=2)
        low = min(memory for memory, _ in chips.values()) * across[0] / 1e12
        for name, x in points.items():
            ax.axvline(x, color=COLOURS["line"], linewidth=0.8, linestyle=":")
            ax.text(x, low * 1.15, name, rotation=90, fontsize=10.5, ha="right", va="bottom")
        for name, (x, rate) in (measured or {}).items():
            ax.plot(x, rate / 1e12, "o", color=COLOURS["f"], label=f"measured: {name}")
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="FLOP for each byte",
            ylabel="TFLOP/s at most",
            xlim=(across[0], across[-1]),
            ylim=(low, None),
        )
        ax.legend(loc="upper left", frameon=False, fontsize=10.5)
    said = "; ".join(f"{name}: rises with {m / 1e12:.2f} TB/s to {c / 1e12:.0f} TFLOP/s, from "
                     f"{c / m:.0f} FLOP a byte on" for name, (m, c) in chips.items())  # fmt: skip
    at = ", ".join(f"{name} at {x:.2g}" for name, x in points.items())
    return figure(fig, alt=f"Roofline. {said}. Operations: {at}.", **picture)
