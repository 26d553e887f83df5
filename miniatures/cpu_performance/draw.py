"""Pictures of the CPU: the five questions, chunks, rates beside their ceilings, bars, a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, PALETTE, figure, graph, style
from miniatures.cpu_performance.parallel_for import Chunk

QUESTIONS = {
    "calls": ("1. Many short calls? Or the first\\nhalf of the data as slow as all?", "yes",
              "you pay for calls", "cpu-calls"),
    "threads": ("2. If it runs on several threads:\\nis one as fast, or faster?", "yes",
                "threads", "cpu-parallel-for"),
    "kernel": ("3. Did the kernels run that you\\nmeant, so large, and no others?", "no",
               "whose kernel, a format,\\nor needless work", "cpu-kernels"),
    "pages": ("4. Does each call touch\\nnew pages?", "yes",
              "new memory", "cpu-allocator"),
    "limit": ("5. Is it near the limit\\nof its bytes?", "yes",
              "fewer passes,\\nor rows at once", "cpu-compile"),
}  # fmt: skip
"""Each question, the answer that leads aside, where it leads, and the label there."""


def draw_questions(*, caption: str, name: str, page: str = "cpu-performance.html") -> Display:
    """Draw the way from a slow line to its cause; the boxes at the side are links."""
    lines = ['slow [label="a slow line: find it with the profiler"];']
    before, label = "slow", ""
    for key, (asks, ends, says, anchor) in QUESTIONS.items():
        lines.append(f'{key} [label="{asks}", shape=plain];')
        lines.append(
            f'{key}_to [label="{says}", URL="{page}#{anchor}", style="rounded,filled", '
            f'fillcolor="{COLOURS["a"]}33", color="{COLOURS["a"]}"];'
        )
        lines.append(f"{{rank=same; {key}; {key}_to}}")
        lines.append(f'{before} -> {key} [label="{label}"];')
        lines.append(f'{key} -> {key}_to [label="{ends}"];')
        before, label = key, "no" if ends == "yes" else "yes"
    lines.append(
        f'numbers [label="the numbers, the\\nstrides, the index", URL="{page}#cpu-inference", '
        f'style="rounded,filled", fillcolor="{COLOURS["a"]}33", color="{COLOURS["a"]}"];'
    )
    lines.append('limit -> numbers [label="no"];')
    source = 'digraph { node [shape=box, style=rounded, margin="0.1,0.05"]; '
    source += "ranksep=0.22; nodesep=0.35; " + "\n".join(lines) + "}"
    said = "; ".join(
        f"{asks.replace(chr(92) + 'n', ' ')} If {ends}: {says}"
        for asks, ends, says, _ in QUESTIONS.values()
    )
    alt = f"Five questions, one below the other. {said}; if all fail: the numbers, the strides"
    alt += " or the index."
    return graph(source, alt=alt, caption=caption, name=name)


def draw_chunks(
    cut: Mapping[str, Sequence[Chunk]], threads: int, *, caption: str, name: str
) -> Display:
    """Draw which thread takes which part of a loop, a row for each loop, by share of its length."""
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.42 * len(cut) + 0.75))
        for at, chunks in enumerate(cut.values()):
            end = max(last for _, _, last in chunks)
            for thread, first, last in chunks:
                ax.barh(-at, (last - first) / end, left=first / end, height=0.66,
                        color=PALETTE[thread % 6], alpha=0.8,
                        edgecolor=COLOURS["pane"])  # fmt: skip
                ax.text((first + last) / 2 / end, -at, f"{last - first:,}", ha="center",
                        va="center", fontsize=10.5, color=COLOURS["ink"])  # fmt: skip
        ax.set_yticks([-at for at in range(len(cut))], list(cut))
        ax.set_xticks([])
        ax.grid(visible=False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        marks = [Patch(color=PALETTE[n % 6], alpha=0.8)
                 for n in range(threads)]  # fmt: skip
        ax.legend(marks, [f"thread {n}" for n in range(threads)], ncols=threads, frameon=False,
                  loc="lower left", bbox_to_anchor=(-0.25, 1), fontsize=10.5, handlelength=0.9,
                  columnspacing=1.2)  # fmt: skip
    said = "; ".join(
        f"{loop}: " + ", ".join(f"thread {n} takes {last - first:,}" for n, first, last in chunks)
        for loop, chunks in cut.items()
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_rates(
    sizes: Sequence[int], lines: Mapping[str, Sequence[float]],
    points: Mapping[str, Sequence[float]], caches: Mapping[str, int], *, caption: str, name: str,
) -> Display:  # fmt: skip
    """Draw bytes per second by size: ceilings as lines, operators as points.

    :param sizes: bytes of an array.
    :param caches: bytes of each cache, marked where two arrays fill it.
    """
    with style():
        fig, ax = plt.subplots()
        for at, (label, rates) in enumerate(lines.items()):
            ax.plot(sizes, [r / 1e9 for r in rates], color=PALETTE[at], label=label)
        for at, (label, rates) in enumerate(points.items()):
            ax.plot(sizes, [r / 1e9 for r in rates], color=PALETTE[at], linestyle="", label=label,
                    marker="os"[at % 2])  # fmt: skip
        top = max(max(rates) for rates in lines.values()) / 1e9
        for label, size in caches.items():
            ax.axvline(size / 2, linestyle=":", color=COLOURS["line"])
            ax.text(size / 2, top, f" ½ {label}", va="top", fontsize=10.5, color=COLOURS["soft"])
        ax.set_xscale("log", base=2)
        ax.set_xticks([2**14, 2**18, 2**22, 2**26], ["16 KiB", "256 KiB", "4 MiB", "64 MiB"])
        ax.set(xlabel="bytes of an array", ylabel="GB/s", ylim=(0, None))
        ax.legend(frameon=False, fontsize=10.5, ncols=2, loc="lower left",
                  bbox_to_anchor=(-0.05, 1))  # fmt: skip
    said = "; ".join(
        f"{label}: "
        + ", ".join(f"{s} B {r / 1e9:.0f} GB/s" for s, r in zip(sizes, rates, strict=True))
        for label, rates in (*lines.items(), *points.items())
    )
    return figure(fig, alt=f"{said}.", caption=caption, name=name)


def draw_series(
    rows: Mapping[str, Sequence[float]], *, x: str, y: str, caption: str, name: str,
    ticks: Sequence[object] = (), log: bool = False,
) -> Display:  # fmt: skip
    """Draw a line with points for each row, by call or by size.

    :param ticks: what stands below the points; 1, 2, 3 … unless given.
    """
    count = max(map(len, rows.values()))
    ticks = list(ticks) or list(range(1, count + 1))
    with style():
        fig, ax = plt.subplots()
        for at, (label, values) in enumerate(rows.items()):
            ax.plot(range(len(values)), values, marker="os^D"[at % 4], label=label,
                    color=PALETTE[at % 6])  # fmt: skip
        if log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(0, None)
        ax.set_xticks(range(count), [str(tick) for tick in ticks])
        ax.set(xlabel=x, ylabel=y)
        ax.legend(frameon=False, fontsize=10.5, ncols=2, loc="lower left",
                  bbox_to_anchor=(-0.05, 1))  # fmt: skip
    said = "; ".join(
        f"{label}: " + ", ".join(f"{t} {v:.3g}" for t, v in zip(ticks, values, strict=False))
        for label, values in rows.items()
    )
    return figure(fig, alt=f"{y} by {x}. {said}.", caption=caption, name=name)


def draw_bars(
    bars: Mapping[str, Sequence[tuple[str, float, str]]], *, x: str, caption: str, name: str,
    keys: Mapping[str, str],
) -> Display:  # fmt: skip
    """Draw a row of pieces for each bar.

    :param bars: pieces of each bar: what stands in it, how long it is, the role of its colour.
    :param keys: role of a colour → what it means.
    """
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.5 * len(bars) + 1.2))
        for at, pieces in enumerate(bars.values()):
            start = 0.0
            for says, length, role in pieces:
                ax.barh(-at, length, left=start, height=0.66, color=COLOURS[role], alpha=0.75,
                        edgecolor=COLOURS["pane"])  # fmt: skip
                if says:
                    ax.text(start + length / 2, -at, says, ha="center", va="center", fontsize=10.5)
                start += length
        ax.set_yticks([-at for at in range(len(bars))], list(bars))
        ax.set(xlabel=x)
        ax.grid(axis="y", visible=False)
        marks = [Patch(color=COLOURS[role], alpha=0.75) for role in keys]
        ax.legend(marks, list(keys.values()), ncols=len(keys), frameon=False, loc="lower left",
                  bbox_to_anchor=(-0.2, 1), fontsize=10.5, handlelength=0.9)  # fmt: skip
    said = "; ".join(
        f"{bar}: " + ", ".join(f"{keys[role]} {says} {length:.3g}" for says, length, role in pieces)
        for bar, pieces in bars.items()
    )
    return figure(fig, alt=f"{x}. {said}.", caption=caption, name=name)
