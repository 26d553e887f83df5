"""Pictures of operators' tables: what fills their places, how they fill, how kernels pile up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.private.tables import computed_table, registrations
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.dispatcher.draw_grid import Kind, grid, in_words

ONE = Kind("a", "one", "a kernel for this place alone")
MANY = Kind("c", "many", "one kernel that fills many places")
COMPOSITE = Kind("d", "parts", "one that fills many, and calls other operators")
ALL = Kind("e", "all", "one function for all operators")
ASIDE = Kind("", "↷", "falls through")


def place(operator: str, key: str) -> Kind | None:
    """Return what fills a place of an operator's table; None if it is empty."""
    where, rule = computed_table(operator).get(key, ("", ""))
    if not where:
        return None
    if where.startswith("fallthrough"):
        return ASIDE
    return {"kernel": ONE, "backend fallback": ALL, "math kernel": COMPOSITE}.get(rule, MANY)


def table_grid(operators: Sequence[str], keys: Sequence[str], **picture: Any) -> Display:
    """Draw places of operators' tables: a row for each key, a column for each operator."""
    names = {operator.removeprefix("aten::").replace(".", " ."): operator for operator in operators}

    def cell(key: str, column: str) -> Kind | None:
        return place(names[column], key)

    columns = list(names)
    return grid(keys, columns, cell, alt=in_words(keys, columns, cell), wide=0.78, **picture)


def filling(states: Mapping[str, Mapping[str, Kind | None]], **picture: Any) -> Display:
    """Draw one table after each registration.

    :param states: by what was registered last, what fills each place.
    """
    keys = list(next(iter(states.values())))

    def cell(key: str, column: str) -> Kind | None:
        return states[column][key]

    columns = list(states)
    return grid(keys, columns, cell, alt=in_words(keys, columns, cell), wide=1.05, **picture)


def shares(tables: Mapping[str, Mapping[str, tuple[str, str]]], **picture: Any) -> Display:
    """Draw by which rule places are filled, over all operators.

    :param tables: `computed_table` of each operator.
    """
    import matplotlib.pyplot as plt

    keys = ["Python", "FuncTorchBatched", "AutocastCPU", "AutogradCPU", "ADInplaceOrView",
            "Meta", "SparseCPU", "CPU"]  # fmt: skip
    ways = ["kernel", "default backend kernel", "math kernel", "autograd kernel",
            "batched kernel", "backend fallback"]  # fmt: skip
    share = {
        key: Counter(filled[key][1] for filled in tables.values() if key in filled) for key in keys
    }
    with style():
        fig, ax = plt.subplots(figsize=(5.6, 4.2))
        left = [0.0] * len(keys)
        for way, hatch in zip(ways, ["", "//", "xx", "--", r"\\", "++"], strict=True):
            width = [100 * share[key][way] / len(tables) for key in keys]
            ax.barh(keys, width, left=left, label=way, hatch=hatch)
            left = [a + b for a, b in zip(left, width, strict=True)]
        ax.set(xlabel="percent of operators", ylim=(len(keys) - 0.5, -0.5))
        ax.grid(axis="y", visible=False)
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    said = "; ".join(f"{key}: {dict(counts)}" for key, counts in share.items())
    return figure(fig, alt=f"By which rule places are filled, by operators. {said}.", **picture)


def used(counts: Mapping[str, int], total: int, **picture: Any) -> Display:
    """Draw for how many operators a key does something, and does not step aside."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.6, 2.6))
        bars = ax.barh(list(counts), list(counts.values()))
        ax.bar_label(bars, [f"{count:,}" for count in counts.values()], padding=4)
        ax.set(xlabel="operators that use the key", xlim=(0, total * 1.12))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
    said = ", ".join(f"{key} {count:,}" for key, count in counts.items())
    alt = f"Of {total:,} operators, how many use a key: {said}."
    return figure(fig, alt=alt, **picture)


def pile(states: Mapping[str, Sequence[str]], **picture: Any) -> Display:
    """Draw the kernels that one place has had, the newest on top, in several states.

    :param states: by the state's words, the kernels there, the newest first.
    """
    deepest = max(map(len, states.values()))
    rows = ["this one runs", *(["kept below"] if deepest > 1 else [])]
    top, below = Kind("b", "", "the kernel that a call runs"), Kind("", "", "kept, not run")
    chosen = {
        (row, column): Kind(kind.role, kernels[n], kind.says)
        for column, kernels in states.items()
        for n, (row, kind) in enumerate(zip(rows, (top, below), strict=False))
        if n < len(kernels)
    }

    def cell(row: str, column: str) -> Kind | None:
        return chosen.get((row, column))

    columns = list(states)
    said = "; ".join(f"{column}: {', then '.join(kernels)}" for column, kernels in states.items())
    return grid(
        rows, columns, cell, alt=f"Kernels in one place, the newest first. {said}.", wide=2.0,
        legend=[top, below], **picture,
    )  # fmt: skip


def kernels_at(operator: str, key: str) -> list[str]:
    """Return where the kernels of one place were registered, the newest first."""
    return [where for at, where, _ in registrations(operator) if at == key]


def conventions(arguments: Sequence[tuple[str, str, str]], size: int, **picture: Any) -> Display:
    """Draw one call's arguments unboxed, each of its own type, and boxed, all of one.

    :param arguments: name, C++ type and tag of each.
    :param size: bytes of a boxed value.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    high = 0.75 + 0.42 * len(arguments)
    with style():
        fig = plt.figure(figsize=(5.6, high))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 5.6), ylim=(high, 0))
        ax.axis("off")

        def cell(x: float, y: float, across: float, text: str, role: str) -> None:
            ax.add_patch(
                Rectangle((x, y), across, 0.34, facecolor=COLOURS[role], alpha=0.85,
                          edgecolor=COLOURS["line"])
            )  # fmt: skip
            ax.text(x + across / 2, y + 0.17, text, ha="center", va="center",
                    color=COLOURS["pane"], fontsize=10.5)  # fmt: skip

        for x, text in ((0.75, "unboxed: C++ types"), (3.0, f"boxed: {size} bytes each")):
            ax.text(x, 0.3, text, color=COLOURS["soft"], fontsize=10.5, va="bottom")
        for n, (name, kind, tag) in enumerate(arguments):
            y = 0.42 + 0.42 * n
            ax.text(0.65, y + 0.17, name, ha="right", va="center", fontsize=10.5)
            cell(0.75, y, 1.75, kind, "abcd"[n % 4])
            cell(3.0, y, 0.95, f"tag {tag}", "e")
            cell(3.95, y, 1.5, "payload", "abcd"[n % 4])
    said = "; ".join(f"{name}: {kind}, or tag {tag}" for name, kind, tag in arguments)
    return figure(fig, alt=f"Arguments unboxed and boxed. {said}.", **picture)


def bars(times: Mapping[str, float], unit: str, **picture: Any) -> Display:
    """Draw one measured value for each path."""
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.6, 0.45 * len(times) + 0.9))
        drawn = ax.barh(list(times), list(times.values()), color=COLOURS["a"])
        ax.bar_label(drawn, [f"{value:,.0f}" for value in times.values()], padding=4)
        ax.set(xlabel=unit, xlim=(0, max(times.values()) * 1.15))
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
    said = "; ".join(f"{path}: {value:,.0f} {unit}" for path, value in times.items())
    return figure(fig, alt=f"{said}.", **picture)
