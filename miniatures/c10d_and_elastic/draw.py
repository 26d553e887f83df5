"""Pictures: keys that appear, groups, the ring, bytes between ranks, records, lives of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 4.9


def _cell(
    ax: Axes, x: float, y: float, text: str, role: str, wide: float = 1, size: int = 10
) -> None:
    from matplotlib.patches import FancyBboxPatch

    for face, alpha in ((COLOURS[role], 0.2), ("none", 1.0)):
        ax.add_patch(
            FancyBboxPatch(
                (x + 0.05, y + 0.1), wide - 0.1, 0.8, fc=face, alpha=alpha, lw=1.3,
                boxstyle="round,pad=0,rounding_size=0.08",
                ec="none" if alpha < 1 else COLOURS[role],
            )
        )  # fmt: skip
    ax.text(x + wide / 2, y + 0.5, text, ha="center", va="center", fontsize=size)


def _canvas(wide: float, high: float, across: float, down: float) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(wide, high))
    ax.set(xlim=(0, across), ylim=(down, 0))
    ax.axis("off")
    return fig, ax


def table_filling(
    keys: Sequence[str], written: Mapping[str, int], read: Mapping[int, Sequence[str]],
    waits: Mapping[int, str], size: int, **picture: Any,
) -> Display:  # fmt: skip
    """Draw the store: which keys are there, which rank has read which, and which one waits.

    :param written: for each key that is there, the rank that wrote it.
    :param read: for each rank, the keys it has read.
    :param waits: the key for which a rank waits.
    """
    with style():
        fig, ax = _canvas(WIDE, 0.46 * (len(keys) + 1.4), size + 2.2, len(keys) + 1.35)
        ax.text(1.05, 0.8, "key in the store", ha="center", fontsize=10, color=COLOURS["soft"])
        for rank in range(size):
            ax.text(rank + 2.65, 0.8, f"rank {rank}", ha="center", fontsize=10)
        for row, key in enumerate(keys, 1):
            _cell(ax, 0, row, key, "b" if key in written else "line", 2.1)
            for rank in range(size):
                if waits.get(rank) == key:
                    _cell(ax, rank + 2.15, row, "waits", "f")
                elif key in read.get(rank, ()):
                    _cell(ax, rank + 2.15, row, "wrote" if written[key] == rank else "read",
                          "b" if written[key] == rank else "a")  # fmt: skip
    told = ", ".join(f"{key} written by rank {rank}" for key, rank in written.items()) or "no key"
    stuck = "; ".join(f"rank {rank} waits for {key}" for rank, key in waits.items())
    return figure(fig, alt=f"The store has {told}. {stuck or 'Nobody waits'}.", **picture)


def groups(members: Mapping[str, Sequence[int]], size: int, **picture: Any) -> Display:
    """Draw which rank has which number in which group."""
    with style():
        fig, ax = _canvas(WIDE, 0.46 * (len(members) + 1.1), size + 2.2, len(members) + 1.05)
        for rank in range(size):
            ax.text(rank + 2.65, 0.6, f"rank {rank}", ha="center", fontsize=10)
        for row, (name, ranks) in enumerate(members.items(), 1):
            ax.text(0, row + 0.5, name, va="center", fontsize=10)
            for rank in range(size):
                if rank in ranks:
                    _cell(ax, rank + 2.15, row, str(list(ranks).index(rank)), "abcdef"[row - 1])
    told = "; ".join(f"{name}: ranks {', '.join(map(str, r))}" for name, r in members.items())
    return figure(fig, alt=f"Groups and their members. {told}.", **picture)


def ring(states: Sequence[Sequence[Sequence[int]]], step: int, **picture: Any) -> Display:
    """Draw the parts of each rank after some steps; what came in with the last one is marked."""
    now, before = states[step], states[max(0, step - 1)]
    size = len(now)
    whole = max(part for parts in states[-1] for part in parts)
    with style():
        fig, ax = _canvas(WIDE, 0.46 * (size + 1.1), size + 1.4, size + 1.05)
        for part in range(size):
            ax.text(part + 1.9, 0.6, f"part {part}", ha="center", fontsize=10)
        for rank, parts in enumerate(now):
            ax.text(0, rank + 1.5, f"rank {rank}", va="center", fontsize=10)
            for part, value in enumerate(parts):
                new = before[rank][part] != value
                role = "b" if new else "c" if value == whole else "line"
                _cell(ax, part + 1.4, rank + 1, f"{value:0{size}d}", role)
    return figure(
        fig,
        alt=f"After {step} steps: "
        + "; ".join(f"rank {r} has {', '.join(map(str, p))}" for r, p in enumerate(now))
        + ".",
        **picture,
    )


def traffic(found: Mapping[str, Sequence[Sequence[int]]], unit: int, **picture: Any) -> Display:
    """Draw for each collective who sent to whom, and how much of one tensor.

    :param found: bytes from each rank to each rank.
    :param unit: the bytes of one rank's tensor.
    """
    import matplotlib.pyplot as plt

    with style():
        rows = (len(found) + 2) // 3
        fig, axes = plt.subplots(rows, 3, figsize=(WIDE, 1.72 * rows), squeeze=False)
        for ax in axes.flat:
            ax.axis("off")
        for ax, (name, matrix) in zip(axes.flat, found.items(), strict=False):
            size = len(matrix)
            ax.set(xlim=(-1.5, 1.5), ylim=(-1.55, 1.5), aspect="equal")
            most = max(map(sum, matrix)) / unit
            ax.set_title(f"{name}\n{most:.2f} at most", fontsize=10, loc="center")
            turn = {r: pi / 2 - 2 * pi * r / size for r in range(size)}
            for one, row in enumerate(matrix):
                for other, count in enumerate(row):
                    if count < unit / 50:
                        continue
                    ends = [(cos(turn[r]), sin(turn[r])) for r in (one, other)]
                    arrow = {
                        "arrowstyle": "-|>", "color": COLOURS["a"], "alpha": 0.85,
                        "lw": 0.7 + 1.3 * count / unit, "shrinkA": 9, "shrinkB": 9,
                        "connectionstyle": "arc3,rad=0.12",
                    }  # fmt: skip
                    ax.annotate("", ends[1], ends[0], arrowprops=arrow)
            for rank, angle in turn.items():
                ax.plot([cos(angle)], [sin(angle)], "o", ms=15, color=COLOURS["line"], alpha=0.35)
                ax.text(cos(angle), sin(angle), str(rank), ha="center", va="center", fontsize=10)
    told = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{a} to {b} {count / unit:.2f}"
            for a, row in enumerate(matrix)
            for b, count in enumerate(row)
            if count >= unit / 50
        )
        for name, matrix in found.items()
    )
    return figure(fig, alt=f"Tensors sent, from rank to rank. {told}.", **picture)


def records(lanes: Sequence[Sequence[tuple[int, str, Any]]], **picture: Any) -> Display:
    """Draw what each rank's Flight Recorder says; the first place where they differ is marked."""
    numbers = sorted({entry[0] for lane in lanes for entry in lane})
    by_rank = [{entry[0]: entry[1:] for entry in lane} for lane in lanes]
    odd = next((n for n in numbers if len({str(lane.get(n)) for lane in by_rank}) > 1), None)
    with style():
        across = len(numbers) * 1.7 + 1
        fig, ax = _canvas(WIDE, 0.5 * (len(lanes) + 1.1), across, len(lanes) + 1.05)
        for column, number in enumerate(numbers):
            ax.text(1.85 + 1.7 * column, 0.6, f"no. {number}", ha="center", fontsize=10)
        for rank, lane in enumerate(by_rank):
            ax.text(0, rank + 1.5, f"rank {rank}", va="center", fontsize=10)
            for column, number in enumerate(numbers):
                if number in lane:
                    name, shape = lane[number][:2]
                    role = "f" if number == odd else "a"
                    _cell(ax, 1 + 1.7 * column, rank + 1, f"{name}\n{list(shape)}", role, 1.7, 9)
    told = "; ".join(
        f"rank {rank}: " + ", ".join(f"{n} {lane[n][0]} {list(lane[n][1])}" for n in sorted(lane))
        for rank, lane in enumerate(by_rank)
    )
    return figure(fig, alt=f"The last collectives of each rank. {told}.", **picture)


def lives(log: Sequence[Mapping[str, Any]], **picture: Any) -> Display:
    """Draw the life of each worker: from its first line to its last, and how it ended."""
    import matplotlib.pyplot as plt

    by_pid = dict[int, list[Mapping[str, Any]]]()
    for line in log:
        by_pid.setdefault(int(line["pid"]), []).append(line)
    lanes = sorted({(line["agent"], line["LOCAL_RANK"]) for line in log})
    zero = min(line["at"] for line in log)
    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 0.72 * len(lanes) + 0.8))
        ax.set(ylim=(len(lanes), -0.1), xlabel="seconds since the first worker began")
        ax.grid(visible=False)
        ax.spines["left"].set_visible(False)
        ax.margins(x=0.08)
        ax.set_yticks([row + 0.5 for row in range(len(lanes))])
        ax.set_yticklabels([f"agent {agent},\nworker {local}" for agent, local in lanes])
        ax.tick_params(axis="y", length=0)
        for lines in by_pid.values():
            row = lanes.index((lines[0]["agent"], lines[0]["LOCAL_RANK"]))
            start, end = lines[0]["at"] - zero, lines[-1]["at"] - zero
            role = "abcdef"[int(lines[0]["WORLD_SIZE"]) - 1]
            ax.barh(row + 0.66, max(end - start, 0.05), left=start, height=0.42, alpha=0.35,
                    color=COLOURS[role])  # fmt: skip
            text = f"rank {lines[0]['RANK']} of {lines[0]['WORLD_SIZE']}"
            ax.text(start, row + 0.26, text, va="center", fontsize=10)
            last = str(lines[-1]["what"])
            if last in {"killed", "stopped"}:
                mark, colour = ("X", "f") if last == "killed" else ("s", "e")
                ax.plot([end], [row + 0.66], mark, ms=9, color=COLOURS[colour])
    told = "; ".join(
        f"agent {lines[0]['agent']} worker {lines[0]['LOCAL_RANK']}: rank {lines[0]['RANK']} of "
        f"{lines[0]['WORLD_SIZE']}, {lines[-1]['what']}"
        for lines in by_pid.values()
    )
    return figure(fig, alt=f"Workers of a job, one after another. {told}.", **picture)


def cost(points: Mapping[str, Sequence[tuple[int, float]]], **picture: Any) -> Display:
    """Draw milliseconds against bytes, these on a scale of powers of ten."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(WIDE, 3.1))
        for (name, measured), mark in zip(points.items(), "os^D", strict=False):
            sizes, seconds = zip(*measured, strict=True)
            ax.semilogx(sizes, [s * 1e3 for s in seconds], marker=mark, label=name, ms=5)
        ax.minorticks_off()
        ax.set(xlabel="bytes of the tensor", ylabel="ms", ylim=(0, None))
        ax.legend(frameon=False)
    told = "; ".join(
        f"{name}: {measured[0][1] * 1e3:.2g} ms for {measured[0][0]} bytes, "
        f"{measured[-1][1] * 1e3:.2g} ms for {measured[-1][0]}"
        for name, measured in points.items()
    )
    return figure(fig, alt=f"Time of an all-reduce against size. {told}.", **picture)
