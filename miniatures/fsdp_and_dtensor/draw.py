"""Pictures: who has which numbers, what a change sends, and what `fully_shard` holds when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from miniatures.fsdp_and_dtensor.watch import Moment

_KINDS = {"shard": "a", "gathered": "b", "full gradient": "d", "gradient shard": "c"}


def placements(found: Mapping[str, Sequence[Any]], **picture: Any) -> Display:
    """Draw what each rank has of a small matrix, a row of matrices for each placement.

    :param found: for each placement each rank's numbers, as nested lists in the whole's shape;
        None where a rank has nothing.
    """
    import matplotlib.pyplot as plt

    ranks = max(map(len, found.values()))
    with style():
        fig, axes = plt.subplots(len(found), ranks, figsize=(4.9, 1.0 * len(found) + 0.2))
        for row, (name, values) in zip(axes, found.items(), strict=True):
            for rank, (ax, value) in enumerate(zip(row, values, strict=True)):
                _matrix(ax, value, "d" if name.startswith("Partial") else "a")
                if rank == 0:
                    ax.text(-0.5, -0.85, name, fontsize=10, ha="left")
        for rank, ax in enumerate(axes[-1]):
            ax.text(1.5, 3.7, f"rank {rank}", fontsize=10, ha="center", va="top")
    alt = "; ".join(
        f"{name}: " + ", ".join(f"rank {r} {_told(v)}" for r, v in enumerate(values))
        for name, values in found.items()
    )
    return figure(fig, alt=f"What four ranks have of a matrix. {alt}.", **picture)


def _told(value: Any) -> str:
    rows = [[x for x in row if x is not None] for row in value]
    return " / ".join(" ".join(f"{x:g}" for x in row) for row in rows if row) or "nothing"


def _matrix(ax: Axes, value: Sequence[Sequence[float | None]], role: str) -> None:
    from matplotlib.patches import Rectangle

    ax.set(xlim=(-0.55, len(value[0]) - 0.45), ylim=(len(value) - 0.45, -0.55))
    ax.axis("off")
    for y, line in enumerate(value):
        for x, number in enumerate(line):
            has = number is not None
            box = Rectangle((x - 0.5, y - 0.5), 1, 1, lw=0.8, ec=COLOURS["line"], fc="none")
            if has:
                fill = Rectangle((x - 0.5, y - 0.5), 1, 1, lw=0, fc=COLOURS[role], alpha=0.25)
                ax.add_patch(fill)
                ax.text(x, y, f"{number:g}", ha="center", va="center", fontsize=10)
            ax.add_patch(box)


def choices(results: Mapping[tuple[str, str], tuple[str, str]], **picture: Any) -> Display:
    """Draw which placement a product has, for each pair of placements, and what was sent.

    :param results: for the placements of both factors, that of the result, and what was sent.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    lines = list(dict.fromkeys(a for a, _ in results))
    columns = list(dict.fromkeys(b for _, b in results))
    roles = {"": "c", "all-gather": "b", "all-reduce": "f", "reduce-scatter": "d",
             "all-to-all": "e"}  # fmt: skip
    used = {sent for _, sent in results.values()}
    with style():
        fig, ax = plt.subplots(figsize=(4.9, 3.0))
        ax.set(xlim=(-1.1, len(columns) - 0.5), ylim=(len(lines) - 0.5, -1.0))
        ax.axis("off")
        for (a, b), (where, sent) in results.items():
            x, y = columns.index(b), lines.index(a)
            colour = COLOURS[next(role for name, role in roles.items() if name == sent)]
            ax.add_patch(Rectangle((x - 0.46, y - 0.42), 0.92, 0.84, fc=colour, alpha=0.25, lw=0))
            ax.text(x, y, where, ha="center", va="center", fontsize=12)
        for x, name in enumerate(columns):
            ax.text(x, -0.6, f"@ {name}", ha="center", va="center", fontsize=11)
        for y, name in enumerate(lines):
            ax.text(-0.75, y, name, ha="center", va="center", fontsize=11)
        shown = [Patch(fc=COLOURS[role], alpha=0.4, label=name or "nothing sent")
                 for name, role in roles.items() if name in used]  # fmt: skip
        fig.legend(handles=shown, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    told = "; ".join(
        f"{a} @ {b} gives {where}, {sent or 'nothing'} sent"
        for (a, b), (where, sent) in results.items()
    )
    return figure(fig, alt=f"Products of placed matrices: {told}.", **picture)


def moment(now: Moment, most: int) -> Display:
    """Draw what each group holds at one moment of a step, in bytes.

    :param most: how many bytes the axis reaches to.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 0.42 * len(now.held) + 1.25))
        for y, (name, kinds) in enumerate(now.held.items()):
            left = 0.0
            for kind, role in _KINDS.items():
                size = kinds[kind] / 2**10
                ax.barh(y, size, left=left, height=0.62, color=COLOURS[role], alpha=0.75)
                left += size
            weight = "bold" if name == now.who else "normal"
            ax.text(-1, y, name, ha="right", va="center", fontsize=10, weight=weight)
        ax.set(xlim=(0, most / 2**10), ylim=(len(now.held) - 0.5, -0.5), yticks=[])
        ax.set_xlabel("KiB on a rank", fontsize=10)
        ax.tick_params(labelsize=10)
        ax.grid(visible=False, axis="y")
        shown = [Patch(fc=COLOURS[role], alpha=0.75, label=kind) for kind, role in _KINDS.items()]
        fig.legend(handles=shown, loc="outside upper left", ncols=2, frameon=False, fontsize=10)
    told = "; ".join(
        f"{name}: "
        + ", ".join(f"{kind} {size / 2**10:.1f} KiB" for kind, size in kinds.items() if size)
        for name, kinds in now.held.items()
    )
    return figure(fig, alt=f"What a rank holds. {told}.")


def sentence(now: Moment) -> str:
    """Say in words what happened at a moment."""
    name, by = now.who, f" ({now.by})" if now.by else ""
    total = sum(sum(kinds.values()) for kinds in now.held.values()) / 2**10
    what = {
        "asks": f"The all-gather of {name} is started{by}.",
        "has": f"The parameters of {name} are whole{by}.",
        "full": f"The gradients of {name} are complete, and whole.",
        "frees": f"The parts of others in {name} are freed{by}.",
        "reduces": f"Reduce-scatter of {name}: each rank keeps its part of the average.",
    }[now.what]
    return f"{what} Held: {total:.1f} KiB."


def courses(found: Mapping[str, Sequence[float]], **picture: Any) -> Display:
    """Draw the bytes that are held at each moment of a step, a line for each way to group.

    :param found: for each way the KiB after each event.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.9, 3.1))
        for line, (name, sizes) in zip(("-", "--", ":"), found.items(), strict=False):
            at = [i / (len(sizes) - 1) for i in range(len(sizes))]
            ax.step(at, sizes, line, where="post", label=name)
        ax.set(xticks=[0, 1], ylim=(0, None))
        ax.set_xticklabels(["forward begins", "backward ends"])
        ax.set_ylabel("KiB of parameters, gradients", fontsize=10)
        ax.tick_params(labelsize=10)
        ax.get_xticklabels()[0].set_ha("left")  # type: ignore[attr-defined]
        ax.get_xticklabels()[1].set_ha("right")  # type: ignore[attr-defined]
        fig.legend(loc="outside upper left", frameon=False, fontsize=10)
    told = "; ".join(f"{name}: at most {max(sizes):.0f} KiB" for name, sizes in found.items())
    return figure(fig, alt=f"Bytes held in the course of a step. {told}.", **picture)


def by_ranks(found: Sequence[tuple[int, int, int, int]], **picture: Any) -> Display:
    """Draw the bytes that a rank keeps, and those it gathers in a step, against ranks.

    :param found: ranks, bytes kept, bytes gathered, messages.
    """
    import matplotlib.pyplot as plt

    ranks, kept, gathered, _ = zip(*found, strict=True)
    with style():
        fig, ax = plt.subplots(figsize=(4.9, 3.1))
        ax.loglog(ranks, gathered, "s--", label="gathered in a step")
        ax.loglog(ranks, kept, "o-", label="kept")
        ax.set_xticks(ranks, [f"{count:,}" for count in ranks])
        ax.minorticks_off()
        ax.set_xlabel("ranks", fontsize=10)
        ax.set_ylabel("bytes of parameters", fontsize=10)
        ax.tick_params(labelsize=10)
        fig.legend(loc="outside upper left", frameon=False, fontsize=10)
    told = "; ".join(
        f"{count:,} ranks: {here:,} kept, {came:,} gathered" for count, here, came, _ in found
    )
    return figure(fig, alt=f"Bytes against the number of ranks. {told}.", **picture)
