"""Pictures of one chapter: the frame of a step, the calls of its forms, moments, who is whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, box

if TYPE_CHECKING:
    from miniatures.optimizers.watch_moments import Moment


def frame(numbers: Mapping[str, str], **picture: Any) -> Display:
    """Draw a step of an optimizer: where state, rate and decay enter.

    :param numbers: what a real step had: grad, numerator, denominator, move.
    """
    import matplotlib.pyplot as plt

    boxes = {
        "grad": ((1.05, 4.0), f"gradient g\n{numbers['grad']}", "a"),
        "state": ((3.1, 4.0), "state\nkept between steps", "c"),
        "over": ((1.05, 2.75), f"numerator\n{numbers['numerator']}", "a"),
        "under": ((3.1, 2.75), f"denominator\n{numbers['denominator']}", "a"),
        "move": ((2.07, 1.55), f"lr × numerator / denominator\n{numbers['move']}", "e"),
        "weight": ((2.07, 0.4), f"weight\n{numbers['weight']}", "ink"),
    }
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 4.3))
        ax.set(xlim=(0, 5.2), ylim=(0, 4.4))
        ax.axis("off")
        for name, (at, text, role) in boxes.items():
            box(ax, at, (2.6 if name == "move" else 1.75, 0.62), text, role)
        for start, end, role in (
            ((1.95, 4.0), (2.2, 4.0), "a"), ((1.05, 3.67), (1.05, 3.08), "a"),
            ((3.1, 3.67), (3.1, 3.08), "c"), ((2.6, 3.67), (1.7, 3.08), "c"),
            ((1.05, 2.42), (1.5, 1.88), "a"), ((3.1, 2.42), (2.65, 1.88), "a"),
            ((2.07, 1.22), (2.07, 0.73), "e"),
        ):  # fmt: skip
            arrow(ax, start, end, role)
        decay: dict[str, Any] = {"color": COLOURS["b"], "fontsize": 10.5, "linespacing": 1.25}
        ax.text(4.1, 0.4, "decay in AdamW:\nthe weight, times\n1 − lr · λ", va="center", **decay)
        arrow(ax, (4.05, 0.4), (2.98, 0.4), "b")
        ax.text(4.1, 3.2, "decay in Adam,\nSGD: λ times\nthe weight is\nadded to g", va="center",
                **decay)  # fmt: skip
        ax.plot([4.55, 4.55, 1.05], [3.7, 4.38, 4.38], color=COLOURS["b"], lw=1.5)
        arrow(ax, (1.05, 4.385), (1.05, 4.31), "b")
    said = ", ".join(f"{name}: {value}" for name, value in numbers.items())
    return figure(
        fig,
        alt="The gradient goes into the state and, with it, into a numerator and a denominator. "
        "Their quotient times the learning rate is taken from the weight. Decay is added to the "
        "gradient, as in Adam and SGD, or multiplies the weight, as in AdamW. Numbers of the run: "
        f"{said}.",
        **picture,
    )


def moments(moment: Moment, names: Sequence[str]) -> Display:
    """Draw what Adam has for each weight after one step."""
    import matplotlib.pyplot as plt

    kinds = (("g", moment.grads, "ink"), ("m̂", moment.means, "a"),
             ("√v̂", moment.roots, "c"), ("step", moment.moves, "b"))  # fmt: skip
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 3.0))
        for row, (label, values, role) in enumerate(kinds):
            places = [at * 5 + row for at in range(len(names))]
            drawn = ax.barh(places, values, color=COLOURS[role], height=0.8, label=label)
            ax.bar_label(drawn, [f"{v:.2f}" for v in values], padding=3, fontsize=10.5)
        ax.set(xlim=(-1.45, 1.45), xticks=[-1, 0, 1])
        ax.set_yticks([at * 5 + 1.5 for at in range(len(names))], names)
        ax.axvline(0, color=COLOURS["line"], lw=1)
        ax.invert_yaxis()
        ax.grid(visible=False)
        ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False,
                  handlelength=0.9)  # fmt: skip
    said = "; ".join(
        f"{name}: " + ", ".join(f"{label} {values[at]:.2f}" for label, values, _ in kinds)
        for at, name in enumerate(names)
    )
    return figure(fig, alt=f"Step {moment.step}. {said}.")


def calls(kernels: Mapping[str, Sequence[str]], tensors: int, **picture: Any) -> Display:
    """Draw each call of a step as a column, over the tensors that it touches.

    :param kernels: for each form, the operators of one step, in order.
    :param tensors: how many parameters there are.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    most = max(len(names) for names in kernels.values())
    with style():
        fig, axes = plt.subplots(len(kernels), 1, figsize=(5.2, 1.25 * len(kernels) + 0.3))
        for ax, (form, names) in zip(axes, kernels.items(), strict=True):
            kinds = list(dict.fromkeys(names))
            each = len(names) // tensors
            for at, name in enumerate(names):
                whole = name.startswith("_f")
                low, high = (0, tensors) if whole else (at // each, 1)
                colour = COLOURS["abcdef"[kinds.index(name) % 6]]
                ax.add_patch(
                    Rectangle((at + 0.08, low + 0.06), 0.84, high - 0.12, fc=colour, alpha=0.75)
                )
            ax.set(xlim=(0, most), ylim=(tensors, 0), xticks=[], yticks=[])
            ax.set_ylabel(f"{tensors} tensors", fontsize=10.5)
            ax.set_title(f"{form}: {len(names)} calls", fontsize=10.5)
            ax.grid(visible=False)
        axes[-1].set_xlabel("calls, in order →", fontsize=10.5)
    said = "; ".join(f"{form}: {len(names)} calls" for form, names in kernels.items())
    return figure(
        fig, alt=f"One step of Adam with {tensors} tensors. {said}. A call of the loop touches one "
        "tensor, a call of the other forms all of them.", **picture,
    )  # fmt: skip


def stacked(rows: Mapping[str, tuple[float, float]], **picture: Any) -> Display:
    """Draw the bytes that training holds for each parameter: itself, gradient, state, peak.

    :param rows: for each optimizer the bytes of its state and, for a moment, of its temporaries.
    """
    import matplotlib.pyplot as plt

    names = list(rows)
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.36 * len(names) + 1.1))
        left = [0.0] * len(names)
        for label, role, values in (
            ("weight", "ink", [4.0] * len(names)), ("gradient", "a", [4.0] * len(names)),
            ("state", "b", [state for state, _ in rows.values()]),
            ("for a moment", "d", [peak for _, peak in rows.values()]),
        ):  # fmt: skip
            ax.barh(names, values, left=left, color=COLOURS[role], label=label, height=0.66)
            left = [at + value for at, value in zip(left, values, strict=True)]
        for at, total in enumerate(left):
            ax.text(total + 0.25, at, f"{total:g}", va="center", fontsize=10.5)
        ax.set(xlabel="bytes for each parameter in float32", xlim=(0, max(left) * 1.12))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.4, 1), frameon=False,
                  handlelength=0.9, columnspacing=1.0, fontsize=10.5)  # fmt: skip
    said = "; ".join(f"{n}: state {s:g}, for a moment {p:g}" for n, (s, p) in rows.items())
    return figure(fig, alt=f"Bytes for each parameter, beside 4 for the weight and 4 for its "
                  f"gradient. {said}.", **picture)  # fmt: skip


def matched(
    left: tuple[str, Sequence[str]],
    right: tuple[str, Sequence[str]],
    pairs: Sequence[tuple[int, int, bool]],
    **picture: Any,
) -> Display:
    """Draw two columns and who goes to whom.

    :param left: what the column is, and its entries.
    :param right: the same.
    :param pairs: places left and right, and whether they belong together.
    """
    import matplotlib.pyplot as plt

    rows = max(len(left[1]), len(right[1]))
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.52 * rows + 0.55))
        ax.set(xlim=(0, 5.2), ylim=(-rows * 0.5, 0.5))
        ax.axis("off")
        for x, (title, entries) in ((1.15, left), (4.05, right)):
            ax.text(x, 0.33, title, ha="center", va="center", fontsize=10.5)
            joined = {pair[0 if x < 2 else 1] for pair in pairs}
            for at, text in enumerate(entries):
                box(ax, (x, -at * 0.5 - 0.2), (2.1, 0.4), text, "a" if at in joined else "line")
        for one, other, fits in pairs:
            arrow(ax, (2.22, -one * 0.5 - 0.2), (2.98, -other * 0.5 - 0.2), "c" if fits else "b")
    said = "; ".join(
        f"{left[1][one]} → {right[1][other]}{'' if fits else ' (wrong)'}"
        for one, other, fits in pairs
    )
    alone = [
        text for side, entries in ((0, left[1]), (1, right[1])) for at, text in enumerate(entries)
        if at not in {pair[side] for pair in pairs}
    ]  # fmt: skip
    more = f" Nobody's: {', '.join(alone)}." if alone else ""
    return figure(fig, alt=f"{left[0]} and {right[0]}: {said}.{more}", **picture)


def curves(
    lines: Mapping[str, Sequence[float]], across: str, up: str, high: float = 2.7, **picture: Any
) -> Display:
    """Plot values over steps, a line for each name."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.2, high))
        for at, (name, values) in enumerate(lines.items()):
            ax.plot(values, ("-", "--", ":", "-.")[at % 4], label=name, lw=2.2)
        ax.set(xlabel=across, ylabel=up)
        ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, fontsize=10.5
        )
    said = "; ".join(
        f"{name}: {values[0]:.3g} at first, {values[-1]:.3g} at last"
        for name, values in lines.items()
    )
    return figure(fig, alt=f"{up} over {across}. {said}.", **picture)


def places(rows: Mapping[str, Sequence[tuple[str, str]]], **picture: Any) -> Display:
    """Draw rows of cells: where each number of a step lives.

    :param rows: for each form its cells: what it says, and its colour's role.
    """
    import matplotlib.pyplot as plt

    step = 0.78
    with style():
        fig, ax = plt.subplots(figsize=(5.2, len(rows) * step + 0.1))
        ax.set(xlim=(0, 5.2), ylim=(-len(rows) * step, 0.1))
        ax.axis("off")
        for at, (title, cells) in enumerate(rows.items()):
            top = -at * step
            ax.text(0.02, top - 0.1, title, fontsize=10.5, va="center")
            wide = 5.2 / len(cells)
            for place, (text, role) in enumerate(cells):
                centre = (place + 0.5) * wide
                box(ax, (centre, top - 0.45), (wide - 0.08, 0.46), text, role)
    said = "; ".join(
        f"{title}: {', '.join(' '.join(text.split()) for text, _ in cells)}"
        for title, cells in rows.items()
    )
    return figure(fig, alt=f"{said}.", **picture)
