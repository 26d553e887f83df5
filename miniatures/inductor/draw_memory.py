"""More pictures of "Inductor": who walks which rows, who keeps what, where seconds go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.patches import Patch, Rectangle

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, PALETTE, figure, style

_WIDE = 5.2


def dealt_out(cases: Mapping[str, bool], *, caption: str, name: str) -> Display:
    """Draw which part of a matrix each of two threads walks.

    :param cases: a matrix by its shape, with whether its columns are dealt out, not its rows.
    """
    with style():
        fig, axes = plt.subplots(1, len(cases), figsize=(_WIDE, 1.75))
        for ax, (title, columns) in zip(axes, cases.items(), strict=True):
            ax.set(xlim=(0, 1), ylim=(0, 1))
            ax.axis("off")
            ax.set_title(title, loc="center", fontsize=10.5)
            for at, role in enumerate("ab"):
                corner, wide, high = (
                    ((at / 2, 0), 0.5, 1) if columns else ((0, 0.5 - at / 2), 1, 0.5)
                )
                ax.add_patch(
                    Rectangle(corner, wide, high, fc=COLOURS[role], ec=COLOURS[role], alpha=0.35)
                )
                ax.text(corner[0] + wide / 2, corner[1] + high / 2, f"thread {at}", ha="center",
                        va="center", fontsize=10)  # fmt: skip
    told = "; ".join(
        f"{title}: {'columns' if columns else 'rows'} are dealt out"
        for title, columns in cases.items()
    )
    return figure(fig, alt=f"Two threads. {told}.", caption=caption, name=name)


def lives(wrapper: str, *, caption: str, name: str) -> Display:
    """Draw the buffers of a wrapper over its lines: memory from allocation to release.

    :param wrapper: the text of the function that Inductor wrote around its kernels.
    """
    rows, calls = _lives(wrapper)
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, 0.55 * len(rows) + 0.95))
        for y, row in enumerate(rows):
            for buffer, start, end in row:
                role = "ab"[row.index((buffer, start, end)) % 2]
                ax.barh(-y, end - start, left=start, height=0.6, color=COLOURS[role], alpha=0.35)
                ax.text((start + end) / 2, -y, buffer, ha="center", va="center", fontsize=10.5)
        ax.set(yticks=[-y for y in range(len(rows))], xlabel="call of the wrapper")
        ax.set_yticklabels([f"memory {y + 1}" for y in range(len(rows))])
        ax.set_xticks([at + 0.5 for at in range(len(calls))], calls)
        ax.set_xlim(0, len(calls))
        ax.tick_params(length=0)
    told = "; ".join(
        f"memory {y + 1}: " + ", then ".join(f"{b} in calls {s + 1} to {e}" for b, s, e in row)
        for y, row in enumerate(rows)
    )
    return figure(fig, alt=f"{told}.", caption=caption, name=name)


def _lives(wrapper: str) -> tuple[list[list[tuple[str, int, int]]], list[str]]:
    """Return, for each piece of memory, its buffers with first and last call; and the calls."""
    calls: list[str] = []
    place: dict[str, int] = {}
    began: dict[str, int] = {}
    rows: list[list[tuple[str, int, int]]] = []

    def end(buffer: str) -> None:
        if buffer in began:
            rows[place[buffer]].append((buffer, began.pop(buffer), len(calls)))

    for line in wrapper.splitlines():
        made = re.match(r"\s*(buf\d+) = (empty_strided_cpu|(buf\d+); del)", line)
        if made and made[3]:
            end(made[3])
            place[made[1]], began[made[1]] = place[made[3]], len(calls)
        elif made:
            place[made[1]], began[made[1]] = len(rows), len(calls)
            rows.append([])
        elif call := re.match(r"\s*(?:extern_kernels\.)?(\w+)\(.*buf\d", line):
            if not call[1].startswith("assert"):
                calls.append(f"{len(calls) + 1}: {call[1]}")
        elif gone := re.match(r"\s*del (buf\d+)", line):
            end(gone[1])
    for buffer in list(began):
        end(buffer)
    return rows, calls


def bars(
    rows: Mapping[str, Sequence[float]],
    parts: Sequence[str],
    *,
    unit: str,
    caption: str,
    name: str,
) -> Display:
    """Draw one bar for each row, made of parts, from left to right.

    :param rows: a bar's name and the lengths of its parts.
    :param parts: what each part is.
    :param unit: of the lengths, as the axis says it.
    """
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, 0.6 * len(rows) + 0.95 + 0.2 * (len(parts) > 3)))
        for y, values in enumerate(rows.values()):
            left = 0.0
            for value, colour in zip(values, PALETTE, strict=False):
                ax.barh(-y, value, left=left, height=0.55, color=colour)
                left += value
        ax.set(yticks=[-y for y in range(len(rows))], xlabel=unit)
        ax.set_yticklabels(list(rows))
        ax.grid(axis="y", visible=False)
        if len(parts) > 1:
            handles = [Patch(fc=c, label=part) for part, c in zip(parts, PALETTE, strict=False)]
            ax.legend(handles=handles, ncols=3, loc="lower left", bbox_to_anchor=(-0.05, 1),
                      frameon=False, fontsize=10, handlelength=0.9)  # fmt: skip
    told = "; ".join(
        f"{title}: " + ", ".join(f"{part} {value:.3g}" for part, value in zip(parts, values,
                                                                            strict=False))
        for title, values in rows.items()
    )  # fmt: skip
    return figure(fig, alt=f"In {unit}: {told}.", caption=caption, name=name)


def errors(rows: Mapping[str, Sequence[float]], *, unit: str, caption: str, name: str) -> Display:
    """Draw the errors of several ways of computing the same numbers, each sorted.

    :param rows: a way's name and its errors, one for each number.
    :param unit: of the errors, as the axis says it.
    """
    with style():
        fig, ax = plt.subplots(figsize=(_WIDE, 2.5))
        for title, values in rows.items():
            ax.plot(sorted(values), label=title)
        ax.set(xlabel="numbers, sorted by error", ylabel=unit)
        ax.legend(frameon=False)
    told = "; ".join(
        f"{title}: half of them below {sorted(values)[len(values) // 2]:.2g}, at most "
        f"{max(values):.2g}"
        for title, values in rows.items()
    )
    return figure(fig, alt=f"{unit}. {told}.", caption=caption, name=name)
