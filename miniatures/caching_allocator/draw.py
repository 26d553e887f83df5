"""Pictures of memory: segments and their blocks, step by step, and a step's memory over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.caching_allocator.allocator import Allocator, Block, MiB

Names = Mapping[int, str]
LEGEND = {"ncols": 3, "frameon": False, "fontsize": 10, "handlelength": 1.0, "columnspacing": 0.9}


def memory(
    allocator: Allocator, names: Names | None = None, *, rows: int = 0, title: str = "",
    **picture: Any,
) -> Display:  # fmt: skip
    """Draw each segment as a bar, its blocks as parts, and below them what the device has left.

    :param names: what is written on blocks, by their address.
    :param rows: leave room for so many segments, so that the states of a replay have one size.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    held = [[b for b in s.blocks if b.mapped] for s in allocator.segments]
    held = [row for row in held if row]
    scale = allocator.capacity / MiB
    count = max(rows, len(held))
    with style():
        fig, ax = plt.subplots(figsize=(4.95, 0.36 * (count + 1) + 0.75))
        for at, row in enumerate(held):
            for block in row:
                _box(ax, at, (block.address - row[0].address) / MiB, block, scale, names or {})
        left = scale - allocator.reserved / MiB
        ax.barh(count, left, height=0.66, facecolor="none", edgecolor=COLOURS["soft"],
                linestyle=":", linewidth=1)  # fmt: skip
        ax.text(left + scale * 0.01 if left < scale / 2 else scale * 0.01, count,
                f"{left:g} MiB left", va="center", fontsize=10, color=COLOURS["soft"])  # fmt: skip
        ax.set_yticks(
            [*range(len(held)), count],
            [*(_title(row) for row in held), "device"],
        )
        ax.set(xlim=(0, scale), ylim=(count + 0.6, -0.6), xlabel="MiB")
        ax.grid(visible=False)
        if title:
            ax.set_title(title)
        marks = [
            Patch(facecolor=COLOURS["a"], label="handed out"),
            Patch(facecolor="none", edgecolor=COLOURS["b"], label="free, kept"),
            Patch(facecolor=COLOURS["e"], hatch="//", label="waits for a stream"),
        ]
        waits = any(b.marks or (b.uses and not b.allocated) for row in held for b in row)
        ax.legend(handles=marks if waits else marks[:2], loc="lower right", ncols=3,
                  bbox_to_anchor=(1, 1), frameon=False, fontsize=10, handlelength=1.2,
                  columnspacing=0.9)  # fmt: skip
    return figure(fig, alt=in_words(allocator, names or {}), **picture)


def _title(row: Sequence[Block]) -> str:
    stream, small, owner = row[0].segment.key
    words = [owner or "", f"stream {stream}" if stream else "", "small" if small else "segment"]
    return " ".join(filter(None, words))


def _box(ax: Any, at: int, left: float, block: Block, scale: float, names: Names) -> None:
    wide = block.size / MiB
    if block.free:
        ax.barh(at, wide, left=left, height=0.66, facecolor="none", edgecolor=COLOURS["b"],
                linewidth=1.1)  # fmt: skip
    else:
        waits = not block.allocated
        ax.barh(at, wide, left=left, height=0.66, facecolor=COLOURS["e" if waits else "a"],
                hatch="//" if waits else "", edgecolor=COLOURS["pane"], linewidth=0.8)  # fmt: skip
    text = names.get(block.address, "") if not block.free else ""
    text = f"{text} {wide:g}".strip() if wide > scale * 0.085 else text
    if text and wide > scale * 0.03:
        ax.text(left + wide / 2, at, text, ha="center", va="center", fontsize=10,
                color=COLOURS["b"] if block.free else COLOURS["pane"])  # fmt: skip


def in_words(allocator: Allocator, names: Names) -> str:
    """Return what the picture of an allocator shows, as text."""
    parts = []
    for segment in allocator.segments:
        row = [block for block in segment.blocks if block.mapped]
        said = [
            f"{names.get(b.address, '')} {b.size / MiB:g} MiB ".lstrip()
            + ("free" if b.free else "handed out" if b.allocated else "waiting")
            for b in row
        ]
        if row:
            parts.append(f"{_title(row)}: {', '.join(said)}")
    left = (allocator.capacity - allocator.reserved) / MiB
    return "; ".join([*parts, f"the device has {left:g} MiB left"]) + "."


def states(
    allocator: Allocator, program: Sequence[tuple[str, str]], *, rows: int
) -> list[tuple[Display, str]]:
    """Run a program of sizes in MiB, and draw the memory after each line.

    :param program: lines such as ``a = 8``, ``a = 8 on 1`` (a stream), ``del a, b``,
        ``empty_cache``, ``record_stream a 1``, ``finish 1``, ``capture g``; and what is seen then.
    """
    held: dict[str, Block] = {}
    drawn = []
    for line, said in program:
        failed = ""
        for part in line.split("; "):
            try:
                _do(part, allocator, held)
            except MemoryError:
                failed = "Out of memory: "
        names = {block.address: name for name, block in held.items()}
        drawn.append((memory(allocator, names, rows=rows), f"`{line}` {failed}{said}"))
    return drawn


def _do(line: str, allocator: Any, held: dict[str, Block]) -> None:
    name, _, size = line.partition(" = ")
    words = line.split()
    if size:
        amount, _, stream = size.partition(" on ")
        held[name] = allocator.malloc(int(float(amount) * MiB), int(stream or 0))
    elif words[0] == "del":
        for each in line.removeprefix("del ").split(", "):
            allocator.free(held.pop(each))
    elif words[0] == "record_stream":
        allocator.record_stream(held[words[1]], int(words[2]))
    elif words[0] == "finish":
        allocator.finish(int(words[1]))
    elif words[0] in ("capture", "reset"):
        getattr(allocator, words[0])(words[1])
    else:
        getattr(allocator, line)()


def rounding(sizes: Sequence[int], of_block: Callable[[int], int],
             of_segment: Callable[[int], int], **picture: Any) -> Display:  # fmt: skip
    """Draw, for requests of some sizes in bytes, the block and the segment that they bring."""
    import matplotlib.pyplot as plt

    blocks = [of_block(size) for size in sizes]
    segments = [of_segment(block) for block in blocks]
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 3.0))
        ax.plot(sizes, segments, color=COLOURS["b"], drawstyle="steps-pre",
                label="asked from the device")  # fmt: skip
        ax.plot(sizes, blocks, color=COLOURS["a"], label="the block")
        ax.set(xscale="log", yscale="log", xlabel="request, bytes", ylabel="bytes")
        ax.set_xticks([1, 512, MiB, 10 * MiB, 100 * MiB], ["1", "512", "1 MiB", "10", "100 MiB"])
        ax.set_yticks([512, 2 * MiB, 20 * MiB], ["512", "2 MiB", "20 MiB"])
        ax.minorticks_off()
        ax.legend(frameon=False)
    alt = "Requests of up to 1 MiB bring a segment of 2 MiB, from there to 10 MiB one of 20 MiB, "
    return figure(fig, alt=alt + "larger ones as much as they need, in steps of 2 MiB.", **picture)


def over_time(
    alive: Mapping[str, Sequence[int]], marks: Mapping[str, int], line: Sequence[int] = (),
    **picture: Any,
) -> Display:  # fmt: skip
    """Draw bytes that are alive, by kind, after each allocation or release of a training step.

    :param alive: for each kind its bytes after each event.
    :param marks: a name for some places of the events.
    :param line: what was reserved after each event, drawn as a line.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.95, 3.2))
        values = [[size / MiB for size in sizes] for sizes in alive.values()]
        ax.stackplot(range(len(values[0])), *values, labels=list(alive), step="post",
                     colors=[COLOURS[role] for role in "abcdef"])  # fmt: skip
        if line:
            ax.plot([size / MiB for size in line], color=COLOURS["ink"], linewidth=1.2,
                    label="reserved")  # fmt: skip
        top = max([sum(each) for each in zip(*values, strict=True)] + [s / MiB for s in line])
        for row, (name, at) in enumerate(marks.items()):
            ax.axvline(at, color=COLOURS["line"], linewidth=0.8)
            # In two rows, as two marks may be near each other.
            ax.text(at, top * (1.03 + 0.09 * (row % 2)), f" {name}", fontsize=10,
                    color=COLOURS["soft"])  # fmt: skip
        ax.set(xlabel="allocations and releases", ylabel="MiB", ylim=(0, top * 1.22))
        fig.legend(loc="outside lower left", **LEGEND)
    peaks = [f"{kind} up to {max(sizes) / MiB:.0f} MiB" for kind, sizes in alive.items()]
    return figure(fig, alt=f"Memory of one training step: {', '.join(peaks)}.", **picture)


def stacked(rows: Mapping[str, Mapping[str, float]], **picture: Any) -> Display:
    """Draw bars made of named parts, each in MiB; a part called free or tried is an outline."""
    import matplotlib.pyplot as plt

    colours = dict(zip(
        dict.fromkeys(part for parts in rows.values() for part in parts), "abcdef", strict=False
    ))  # fmt: skip
    with style():
        fig, ax = plt.subplots(figsize=(4.95, 0.5 * len(rows) + 0.9))
        for at, parts in enumerate(rows.values()):
            left = 0.0
            for part, size in parts.items():
                open_ = part in ("free", "tried")
                ax.barh(at, size, left=left, height=0.6, linewidth=1,
                        facecolor="none" if open_ else COLOURS[colours[part]],
                        edgecolor=COLOURS["soft" if open_ else "pane"],
                        label=part if part not in _labels(ax) else None)  # fmt: skip
                ax.text(left + size / 2, at, f"{size:g}", ha="center", va="center", fontsize=10,
                        color=COLOURS["soft" if open_ else "pane"])  # fmt: skip
                left += size
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel="MiB")
        ax.grid(visible=False)
        fig.legend(loc="outside upper left", **LEGEND)
    said = [
        f"{name}: " + ", ".join(f"{part} {size:g} MiB" for part, size in parts.items())
        for name, parts in rows.items()
    ]
    return figure(fig, alt="; ".join(said) + ".", **picture)


def _labels(ax: Any) -> list[str]:
    return [str(label) for label in ax.get_legend_handles_labels()[1]]
