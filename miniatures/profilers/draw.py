"""Pictures of traces: lanes of lines, the stack that nests them, memory, steps, bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.profilers.cases_device import Part
from miniatures.profilers.reading import Node, by_time, contains
from miniatures.profilers.steps import NONE, RECORD, SAVE, WARMUP, Schedule


@dataclass(frozen=True)
class Bar:
    """One line in a lane.

    :param level: how deep it hangs in its lane, from 0.
    :param role: a colour of the book.
    """

    lane: str
    name: str
    start: float
    end: float
    level: int = 0
    role: str = "a"
    faint: bool = False


def lanes(
    bars: Sequence[Bar], arrows: Sequence[tuple[int, int]] = (), *, alt: str, axis: str = "µs",
    key: Mapping[str, str] | None = None, width: float = 4.7, apart: float = 0.5,
    **picture: Any,
) -> Display:  # fmt: skip
    """Draw lines in lanes over time, deeper ones below, and arrows from one line to another.

    :param arrows: places in `bars`, from and to.
    :param key: what the colours mean, by role.
    :param apart: room between two lanes, in levels.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    order = list(dict.fromkeys(bar.lane for bar in bars))
    deep = {lane: 1 + max(bar.level for bar in bars if bar.lane == lane) for lane in order}
    tops, top = {}, 0.0
    for lane in order:
        tops[lane] = top
        top += deep[lane] + apart
    last = max(bar.end for bar in bars)
    with style():
        fig, ax = plt.subplots(figsize=(width, 0.3 * top + (0.95 if key else 0.55)))
        for bar in bars:
            low = tops[bar.lane] + bar.level
            ax.barh(low + 0.5, bar.end - bar.start, left=bar.start, height=0.86,
                    facecolor="none" if bar.faint else COLOURS[bar.role],
                    edgecolor=COLOURS[bar.role], linewidth=0.8)  # fmt: skip
            room = int((bar.end - bar.start) / last * width * 10.5)
            if bar.name and room >= min(len(bar.name), 4):
                name = bar.name if len(bar.name) <= room else bar.name[: room - 1] + "…"
                ax.text((bar.start + bar.end) / 2, low + 0.5, name, ha="center", va="center",
                        fontsize=10, color=COLOURS["ink" if bar.faint else "pane"])  # fmt: skip
        for source, target in arrows:
            first, second = bars[source], bars[target]
            ax.annotate("", (second.start, tops[second.lane] + second.level + 0.1),
                        (first.start, tops[first.lane] + first.level + 0.9),
                        arrowprops={"arrowstyle": "->", "color": COLOURS["ink"],
                                    "linewidth": 1.1})  # fmt: skip
        named = [lane for lane in order if lane]
        ax.set_yticks([tops[lane] + deep[lane] / 2 for lane in named], named)
        ax.set(xlim=(0, last), ylim=(top - apart + 0.1, -0.1), xlabel=axis)
        ax.grid(visible=False)
        if key:
            ax.legend(handles=[Patch(facecolor=COLOURS[role], label=said)
                               for role, said in key.items()],
                      loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False,
                      fontsize=10, handlelength=1.1, columnspacing=0.8)  # fmt: skip
    return figure(fig, alt=alt, **picture)


def device(parts: Sequence[Part], **picture: Any) -> Display:
    """Draw described events: operators, calls into CUDA, the GPU, and the links between them."""
    names = {"CPU": "operators", "CUDA call": "CUDA", "GPU": "GPU"}
    roles = {"CPU": "a", "CUDA call": "b", "GPU": "c"}
    bars, arrows = [], []
    for lane in names:
        inside: list[Part] = []
        for part in sorted((p for p in parts if p.lane == lane), key=lambda p: (p.start, -p.end)):
            while inside and inside[-1].end <= part.start:
                inside.pop()
            short = part.name.split("::")[-1]
            bars.append(Bar(names[lane], short, part.start, part.end, len(inside), roles[lane]))
            inside.append(part)
    calls = [at for at, bar in enumerate(bars) if bar.lane == "CUDA" and "Sync" not in bar.name]
    works = [at for at, bar in enumerate(bars) if bar.lane == "GPU"]
    arrows = list(zip(calls, works, strict=True))
    said = "; ".join(f"{b.lane}: {b.name} from {b.start:g} to {b.end:g} µs" for b in bars)
    return lanes(bars, arrows, alt=f"{said}. Arrows lead from a call to its work.", **picture)


def nested(nodes: Sequence[Node], *, deepest: int = 9, **picture: Any) -> Display:
    """Draw a tree as it hangs in time.

    :param deepest: how many levels are drawn.
    """
    first = min(node.start for node in nodes)
    bars = [
        Bar("", node.name.split("::")[-1], node.start - first, node.end - first, node.depth,
            "abcdef"[node.depth % 6])
        for node in nodes
        if node.depth < deepest
    ]  # fmt: skip
    outer = [node for node in nodes if node.depth < deepest][:40]
    alt = ", ".join(f"{node.name} at depth {node.depth}" for node in outer)
    return lanes(bars, alt=f"Lines in time: {alt}.", **picture)


def nesting(nodes: Sequence[Node]) -> list[tuple[Display, str]]:
    """Return the states of `reading.tree` over one thread: the stack as each line is taken."""
    states, inside = [], list[Node]()
    first = min(node.start for node in nodes)
    order = sorted(nodes, key=by_time)
    for at, node in enumerate(order):
        left = 0
        while inside and not contains(inside[-1], node):
            inside.pop()
            left += 1
        short = node.name.split("::")[-1]
        where = f"lies in `{inside[-1].name.split('::')[-1]}`" if inside else "lies in nothing"
        gone = f"{left} ended before it. " if left else ""
        inside.append(node)
        bars = [
            Bar("stack" if one in inside else "done" if order.index(one) <= at else "later",
                one.name.split("::")[-1] if one in inside else "",
                one.start - first, one.end - first,
                inside.index(one) if one in inside else 0,
                "a" if one in inside else "c", one not in inside)
            for one in order
        ]  # fmt: skip
        bars.sort(key=lambda bar: ("stack", "done", "later").index(bar.lane))
        said = ", ".join(one.name for one in inside)
        states.append(
            (lanes(bars, alt=f"On the stack: {said}.", axis="ticks"), f"{gone}`{short}` {where}.")
        )
    return states


def links(events: Sequence[Any], **picture: Any) -> Display:
    """Draw forward and backward lines in their order, and arrows between equal sequence numbers.

    :param events: of a profile; those without a number are left out.
    """
    numbered = [e for e in events if e.sequence_nr >= 0 and "evaluate" not in e.name]
    made = {e.sequence_nr: e.name for e in numbered if e.name.endswith("Backward0")}
    bars, at = [], {}
    order = sorted(numbered, key=lambda e: e.time_range.start)
    innermost = [e for e in order if not any(c in numbered for c in e.cpu_children)]
    for place, event in enumerate(innermost):
        back = event.name.endswith("Backward0")
        short = event.name.split("::")[-1].replace("Backward0", "′")
        at[event.sequence_nr, back] = place
        bars.append(Bar("backward" if back else "forward", short, place, place + 1, 0,
                        "b" if back else "a"))  # fmt: skip
    arrows = [(at[n, False], at[n, True]) for n in made if (n, False) in at and (n, True) in at]
    said = "; ".join(f"{bars[a].name} made {bars[b].name}" for a, b in arrows)
    return lanes(bars, arrows, alt=f"{said}.", axis="lines in their order", apart=1.6, **picture)


def strip(states: Sequence[str], at: int, roles: Mapping[str, str], alt: str) -> Display:
    """Draw steps as boxes, up to `at` filled by what was done in them."""
    bars = [
        Bar("step", str(n), n, n + 1, 0, roles.get(one, "soft"), n > at or one == NONE)
        for n, one in enumerate(states)
    ]
    return lanes(bars, alt=alt, axis="steps", key={"e": "warm up", "a": "record", "c": "last"})


def running(made: Schedule, count: int) -> list[tuple[Display, str]]:
    """Return the states of a schedule as the program steps through it."""
    says = {
        NONE: "Nothing is on. The observer is not there, and costs nothing.",
        WARMUP: "The profiler gets ready. Nothing of this step is kept.",
        RECORD: "The lines of this step are kept.",
        SAVE: "The last step of the cycle. At the next `step()` the trace is handed over.",
    }
    roles = {WARMUP: "e", RECORD: "a", SAVE: "c"}
    actions = [made.action(step) for step in range(count)]
    return [
        (strip(actions, at, roles, f"step {at}: {action}"), f"Step {at}. {says[action]}")
        for at, action in enumerate(actions)
    ]


def memory(rows: Sequence[tuple[str, int]], **picture: Any) -> Display:
    """Draw what was allocated and given back, one after the other, and the sum.

    :param rows: where it happened, and the bytes: positive for an allocation.
    """
    import matplotlib.pyplot as plt

    total, totals = 0, []
    for _, size in rows:
        total += size
        totals.append(total)
    with style():
        fig, ax = plt.subplots(figsize=(4.7, 0.28 * len(rows) + 0.8))
        for at, (_, size) in enumerate(rows):
            ax.barh(at, size, height=0.7, color=COLOURS["a" if size > 0 else "b"])
        ax.plot(totals, range(len(rows)), color=COLOURS["c"], marker="o", markersize=4)
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="bytes; line: the sum so far")
        ax.axvline(0, color=COLOURS["line"], linewidth=0.8)
    said = "; ".join(f"{name} {size:+}" for name, size in rows)
    return figure(fig, alt=f"{said}.", **picture)


def bars(values: Mapping[str, float], unit: str, **picture: Any) -> Display:
    """Draw one bar for each value, with its number."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.7, 0.34 * len(values) + 0.8))
        for at, value in enumerate(values.values()):
            ax.barh(at, value, height=0.66, color=COLOURS["a"])
            ax.text(value, at, f" {value:,.0f}", va="center", fontsize=10)
        ax.set_yticks(range(len(values)), list(values))
        ax.set(ylim=(len(values) - 0.4, -0.6), xlim=(0, 1.2 * max(values.values())), xlabel=unit)
        ax.grid(visible=False, axis="y")
    return figure(fig, alt="; ".join(f"{k}: {v:,.0f}" for k, v in values.items()) + ".", **picture)
