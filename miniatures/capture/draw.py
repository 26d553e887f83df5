"""Pictures: where each way listens, what became of programs, and lists of lines side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, plate

if TYPE_CHECKING:
    from miniatures.capture.cases import Outcome

Line = tuple[str, str]
"""A text and the role of its colour."""


def layers(rows: Sequence[tuple[str, str, str]], **picture: Any) -> Display:
    """Draw the forms that one line takes on its way down, and who listens where.

    :param rows: name of the form, the line in that form, and who listens there.
    """
    import matplotlib.pyplot as plt

    step = 0.55
    with style():
        fig, ax = plt.subplots(figsize=(4.9, step * len(rows)))
        ax.set(xlim=(0, 4.9), ylim=(0, step * len(rows)))
        ax.axis("off")
        for at, (name, line, who) in enumerate(rows):
            y = step * (len(rows) - 1 - at)
            plate(ax, (0.05, y + 0.08), (2.85, 0.38), "e" if who else "ink")
            ax.text(0.12, y + 0.27, name, va="center", fontsize=10, color=COLOURS["soft"])
            ax.text(1.35, y + 0.27, line, va="center", fontsize=10)
            if at:
                arrow(ax, (0.6, y + 0.64), (0.6, y + 0.45), "line")
            if who:
                arrow(ax, (2.92, y + 0.27), (3.2, y + 0.27), "a")
                ax.text(3.24, y + 0.27, who, va="center", fontsize=10.5, color=COLOURS["a"])
    told = "; ".join(f"{name}, {line}: {who or 'nobody'}" for name, line, who in rows)
    return figure(fig, alt=f"From top to bottom, with who listens there: {told}.", **picture)


MARKS = {"follows": ("✓", "c"), "differs": ("≠", "b"), "refused": ("×", "d"), "raises": ("×", "d")}


def matrix(found: Mapping[str, Mapping[str, Outcome]], **picture: Any) -> Display:
    """Draw what became of each program (rows) in each way (columns)."""
    import matplotlib.pyplot as plt

    ways = list(next(iter(found.values())))
    rows, left = len(found), 2.0
    width, step = (4.85 - left) / len(ways), 0.31
    with style():
        fig, ax = plt.subplots(figsize=(4.9, step * rows + 1.35))
        ax.set(xlim=(0, 4.9), ylim=(-0.3, step * rows + 1.05))
        ax.axis("off")
        for column, way in enumerate(ways):
            x = left + width * (column + 0.5)
            ax.text(x, step * rows + 0.08, way, ha="center", va="bottom", fontsize=10,
                    rotation=90)  # fmt: skip
        for row, (name, outcomes) in enumerate(found.items()):
            y = step * (rows - 1 - row)
            ax.text(left - 0.1, y + step / 2, name, ha="right", va="center", fontsize=10)
            for column, one in enumerate(outcomes.values()):
                mark, role = MARKS[one.word]
                plate(
                    ax, (left + width * column + 0.04, y + 0.03), (width - 0.08, step - 0.06), role
                )
                warned = "!" if one.detail == "warned" else ""
                ax.text(left + width * (column + 0.5), y + step / 2 - 0.01, mark + warned,
                        ha="center", va="center", fontsize=11, color=COLOURS[role])  # fmt: skip
        legend = (("✓ follows", "c"), ("≠ otherwise", "b"), ("≠! with a warning", "b"),
                  ("× error", "d"))  # fmt: skip
        for (text, role), x in zip(legend, (0.2, 1.2, 2.45, 4.0), strict=True):
            ax.text(x, -0.17, text, va="center", fontsize=10, color=COLOURS[role])
    told = "; ".join(
        f"{name}: " + ", ".join(f"{way} {one.word}" for way, one in outcomes.items())
        for name, outcomes in found.items()
    )
    return figure(fig, alt=f"A table of marks. {told}.", **picture)


def columns(
    parts: Mapping[str, Sequence[Line]], legend: Sequence[Line] = (), high: int = 0, **picture: Any
) -> Display:
    """Draw lists of lines of code, side by side, each line in the colour of its role.

    :param parts: for each heading its lines; a line of role "soft" has no background.
    :param legend: what the colours say.
    :param high: draw as high as for this many lines, so that the states of a replay are alike.
    """
    import matplotlib.pyplot as plt

    letters = [max([len(text) for text, _ in lines] + [len(name) + 2, 12])
               for name, lines in parts.items()]  # fmt: skip
    rows, step, letter = max(high, *(len(lines) for lines in parts.values())), 0.235, 0.0842
    gap = 0.22
    wide = sum(letters) * letter + gap * (len(parts) - 1) + 0.12 * len(parts)
    top = step * (rows + 1) + (0.32 if legend else 0.05)
    with style():
        fig, ax = plt.subplots(figsize=(max(wide, 3.4), top))
        ax.set(xlim=(0, max(wide, 3.4)), ylim=(0, top))
        ax.axis("off")
        x = 0.0
        for count, (name, lines) in zip(letters, parts.items(), strict=True):
            broad = count * letter + 0.12
            ax.text(x + 0.05, top - step / 2, name, va="center", fontsize=10.5,
                    color=COLOURS["soft"])  # fmt: skip
            for row, (text, role) in enumerate(lines):
                y = top - step * (row + 2)
                inside = letter * (len(text) - len(text.lstrip()))  # an SVG drops leading spaces
                if role not in {"soft", "ink"}:
                    plate(ax, (x + inside, y + 0.02), (broad - inside, step - 0.04), role)
                ax.text(x + inside + 0.06, y + step / 2, text.lstrip(), va="center", fontsize=10,
                        color=COLOURS["soft" if role == "soft" else "ink"])  # fmt: skip
            x += broad + gap
        at = 0.05
        for text, role in legend:
            ax.text(at, 0.12, "■ " + text, va="center", fontsize=10, color=COLOURS[role])
            at += 0.085 * (len(text) + 3)
    told = ". ".join(
        f"{name}: " + "; ".join(text.strip() for text, _ in lines) for name, lines in parts.items()
    )
    return figure(fig, alt=told + ".", **picture)
