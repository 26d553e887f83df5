"""The boxes and arrows of the book's drawings, in the colours of `figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from insidetorch.show.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def box(
    ax: Axes, at: tuple[float, float], size: tuple[float, float], text: str, role: str, *,
    tint: float = 0.18, fontsize: float = 10,
) -> None:  # fmt: skip
    """Draw a rounded box with words in its middle.

    :param at: the middle, in the units of the axes.
    :param size: width and height, in the same.
    :param role: a key of `COLOURS`, for the rim and the ground.
    :param tint: how much of the colour the ground has, from 0 to 1.
    """
    (x, y), (wide, high) = at, size
    plate(ax, (x - wide / 2, y - high / 2), size, role, tint=tint)
    ax.text(x, y, text, ha="center", va="center", fontsize=fontsize, linespacing=1.25)


def plate(
    ax: Axes, corner: tuple[float, float], size: tuple[float, float], role: str, *,
    tint: float = 0.18,
) -> None:  # fmt: skip
    """Draw a rounded box without words; `corner` is its lower left one."""
    from matplotlib.patches import FancyBboxPatch

    shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.07"}
    colour = COLOURS[role]
    ax.add_patch(FancyBboxPatch(corner, *size, fc=colour, ec="none", alpha=tint, **shape))
    ax.add_patch(FancyBboxPatch(corner, *size, fc="none", ec=colour, lw=1.4, **shape))


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], role: str, *, bend: float = 0
) -> None:
    """Draw an arrow from `start` to `end`; `bend` is its rise over its length, 0 for straight."""
    line = {
        "arrowstyle": "->", "color": COLOURS[role], "lw": 1.4, "shrinkA": 0, "shrinkB": 0,
        "connectionstyle": f"arc3,rad={bend}",
    }  # fmt: skip
    ax.annotate("", end, start, arrowprops=line)
