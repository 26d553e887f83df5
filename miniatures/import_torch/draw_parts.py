"""Pictures of single questions: who is found, who answers, what came when, who is called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style
from miniatures.import_torch.draw import bar, box, canvas, legend

INK, SOFT, LINE = (COLOURS[role] for role in ("ink", "soft", "line"))


def found_first(
    layouts: Mapping[str, tuple[Sequence[str], str]], caption: str = "", name: str = ""
) -> Display:
    """Draw what lies first on Python's path, what it has in it, and what the import says."""
    step = 0.9
    axes = canvas(5.2, step * len(layouts))
    for at, (what, (there, said)) in enumerate(layouts.items()):
        y = step * (len(layouts) - 1 - at)
        good = said.startswith("torch is")
        axes.text(0, y + 0.8, what, fontsize=11, weight="bold", va="center")
        for place, file in enumerate(there):
            lacks = file.startswith("no ")
            box(axes, 1.3 * place, y + 0.36, 1.22, 0.3, "" if lacks else "a", not lacks)
            axes.text(
                1.3 * place + 0.61, y + 0.51, file.removeprefix("no "), fontsize=10, ha="center",
                va="center", color=SOFT if lacks else INK,
            )  # fmt: skip
            if lacks:
                axes.plot(
                    [1.3 * place + 0.04, 1.3 * place + 1.18], [y + 0.51] * 2, color=LINE, lw=1.2
                )
        axes.annotate(
            "", (2.95, y + 0.51), (1.3 * len(there) + 0.05, y + 0.51),
            arrowprops={"arrowstyle": "->", "color": SOFT},
        )  # fmt: skip
        box(axes, 3.0, y + 0.1, 2.2, 0.72, "c" if good else "b", True)
        axes.text(
            4.1, y + 0.46, "\n".join(_wrapped(said.rstrip(": "), 24)),
            fontsize=10, ha="center", va="center", linespacing=1.1,
        )  # fmt: skip
    told = "; ".join(f"{what}, with {', '.join(there)}: {said}"
                     for what, (there, said) in layouts.items())  # fmt: skip
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"What is first on the path, and what comes of the import. {told}.",
        caption=caption,
        name=name,
    )


def libraries(
    turns: Sequence[str], sizes: Mapping[str, float], needs: Mapping[str, Sequence[str]],
    caption: str = "", name: str = "",
) -> Display:  # fmt: skip
    """Draw PyTorch's libraries with the turn of each, its size, and whom it needs."""
    place = {one: turn for turn, one in enumerate(turns, start=1)}
    boxes = [
        f'{place[one]} [label="{place[one]}  {one.split(".cpython")[0].removesuffix(".so")}\\n'
        f'{_size(sizes[one])}"'
        + (f' color="{COLOURS["b"]}" penwidth=2' if sizes[one] > 100 else "")
        + "]"
        for one in turns
    ]
    arrows = [f"{place[one]} -> {place[need]}" for one in turns for need in needs[one]]
    said = "; ".join(
        f"{place[one]}, {one}, needs {', '.join(needs[one]) or 'no other'}" for one in turns
    )
    return graph(
        "digraph {nodesep=0.25; ranksep=0.3; node [shape=box style=rounded]; "
        + "; ".join(boxes + arrows) + "}",
        alt=f"Libraries in the order of their constructors: {said}.",
        caption=caption,
        name=name,
    )  # fmt: skip


def _size(megabytes: float) -> str:
    return f"{megabytes:,.0f} MB" if megabytes >= 1 else f"{megabytes * 1e3:,.0f} kB"


def answers(
    grids: Mapping[str, Mapping[tuple[str, str], int]],
    askers: Sequence[str],
    givers: Sequence[str],
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw who got how many names from whom, a grid for each way of loading.

    :param grids: title → (asker, giver) → how many names.
    """
    wide, high, left = 1.18, 0.36, 1.62
    block = high * (len(askers) + 1) + 0.5
    axes = canvas(left + wide * len(givers), block * len(grids) + 0.1)
    for place, (title, counts) in enumerate(grids.items()):
        top = block * (len(grids) - place)
        axes.text(0, top - 0.18, title, fontsize=11, weight="bold", va="center")
        for column, giver in enumerate(givers):
            axes.text(
                left + wide * (column + 0.5), top - 0.5, giver, fontsize=10, color=SOFT,
                ha="center", va="center",
            )  # fmt: skip
        for row, asker in enumerate(askers):
            y = top - 0.62 - high * (row + 1)
            axes.text(0, y + high / 2, asker, fontsize=10.5, va="center")
            for column, giver in enumerate(givers):
                count = counts.get((asker, giver), 0)
                stranger = row == len(askers) - 1 and column < len(givers) - 1 and count
                role = "b" if stranger else "a" if count else ""
                x = left + wide * column
                box(axes, x + 0.03, y + 0.03, wide - 0.06, high - 0.06, role, bool(count))
                axes.text(
                    x + wide / 2, y + high / 2, f"{count:,}" if count else "–", fontsize=10.5,
                    ha="center", va="center", color=INK if count else SOFT,
                )  # fmt: skip
    said = ". ".join(
        f"{title}: "
        + "; ".join(
            f"{asker} get {counts.get((asker, giver), 0):,} from {giver}"
            for asker in askers
            for giver in givers
        )
        for title, counts in grids.items()
    )
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"Names asked for and who answered. {said}.",
        caption=caption,
        name=name,
    )


def spaces(counts: Mapping[str, tuple[int, int]], caption: str = "", name: str = "") -> Display:
    """Draw for each namespace how many operators constructors registered, and how many Python.

    :param counts: namespace → by constructors, later.
    """
    axes = canvas(5.2, 0.34 * len(counts) + 0.35)
    most = max(sum(pair) for pair in counts.values())
    top = 0.34 * len(counts)
    legend(axes, top + 0.1, [("a", "by constructors"), ("b", "later, by Python")], 1.7)
    for at, (space, (early, late)) in enumerate(counts.items()):
        y = top - 0.34 * (at + 1)
        axes.text(1.15, y + 0.15, space, fontsize=10.5, ha="right", va="center")
        width = 3.1 * early / most
        bar(axes, 1.25, y + 0.03, width, 0.24, "a")
        bar(axes, 1.25 + width, y + 0.03, 3.1 * late / most, 0.24, "b")
        text = f"{early:,}" + (f" + {late:,}" if late else "")
        axes.text(
            1.32 + 3.1 * (early + late) / most, y + 0.15, text, fontsize=10, va="center"
        )  # fmt: skip
    said = "; ".join(f"{space}: {early:,} and {late:,}" for space, (early, late) in counts.items())
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"Operators by namespace, registered by constructors and later by Python. {said}.",
        caption=caption,
        name=name,
    )


def classes(
    order: Sequence[type], kinds: Mapping[str, Mapping[str, int]], caption: str = "", name: str = ""
) -> Display:
    """Draw the classes in the order of look-up, what each has, and the class of each class."""
    lines, said = [], []
    for at, one in enumerate(order):
        counts = kinds.get(one.__name__, {})
        detail = "\\n".join(f"{count} {kind}" for kind, count in counts.items() if count)
        colour = COLOURS["a"] if at < 2 and counts.get("functions") else COLOURS["c"]
        colour = COLOURS["line"] if one is object else colour
        lines.append(
            f'c{at} [label="{one.__name__}' + (f"\\n{detail}" if detail else "")
            + f'" color="{colour}" penwidth=1.8];'
        )  # fmt: skip
        meta = type(one).__name__
        lines.append(f'm{at} [label="{meta}" style="rounded,dashed" color="{COLOURS["soft"]}"];')
        lines.append(
            f'c{at} -> m{at} [style=dashed label=" its class"]; {{rank=same; c{at}; m{at}}}'
        )
        if at:
            lines.append(f'c{at - 1} -> c{at} [label=" derives from"];')
        parts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        said.append(f"{one.__name__}, of class {meta}" + (f", with {parts}" if parts else ""))
    return graph(
        "digraph { nodesep=0.5; ranksep=0.45; node [shape=box style=rounded]; "
        + " ".join(lines) + " }",
        alt=f"Classes in the order of look-up: {'; '.join(said)}.",
        caption=caption,
        name=name,
    )  # fmt: skip


def bars(
    rows: Sequence[tuple[str, float, str]],
    unit: str,
    meaning: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Display:
    """Draw horizontal bars.

    :param rows: title, value, and the colour's role.
    :param unit: what the values count; in the alternative text.
    :param meaning: what a colour says.
    """
    room = 0.3 if meaning else 0
    axes = canvas(5.2, 0.34 * len(rows) + room)
    most, top = max(value for _, value, _ in rows), 0.34 * len(rows)
    if meaning:
        legend(axes, top + 0.08, [*meaning.items()], 2.3)
    for at, (title, value, role) in enumerate(rows):
        y = top - 0.34 * (at + 1)
        axes.text(2.2, y + 0.15, title, fontsize=10.5, ha="right", va="center")
        bar(axes, 2.3, y + 0.03, 2.3 * value / most, 0.24, role)
        axes.text(2.37 + 2.3 * value / most, y + 0.15, f"{value:,.0f}", fontsize=10, va="center")
    said = "; ".join(f"{title} {value:,.0f}" for title, value, _ in rows)
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"{unit}: {said}.",
        caption=caption,
        name=name,
    )


def doors(
    rows: Mapping[str, Sequence[tuple[str, str]]], caption: str = "", name: str = ""
) -> Display:
    """Draw boxes in rows, in the order of time from left to right.

    :param rows: title → (what, the colour's role).
    """
    step = 0.95
    axes = canvas(5.2, step * len(rows))
    for at, (title, cells) in enumerate(rows.items()):
        y, wide = step * (len(rows) - 1 - at), 5.2 / len(cells)
        axes.text(0, y + 0.76, title, fontsize=10.5, weight="bold", va="center")
        for place, (what, role) in enumerate(cells):
            x = wide * place
            box(axes, x + 0.02, y + 0.06, wide - 0.18, 0.54, role, bool(role))
            axes.text(
                x + wide / 2 - 0.07, y + 0.33, what, fontsize=10, ha="center", va="center",
                linespacing=1.1, color=INK if role else SOFT,
            )  # fmt: skip
            if place:
                axes.annotate(
                    "", (x + 0.02, y + 0.33), (x - 0.16, y + 0.33),
                    arrowprops={"arrowstyle": "->", "color": SOFT, "shrinkA": 0, "shrinkB": 0},
                )  # fmt: skip
    said = ". ".join(
        f"{title}: {', then '.join(' '.join(what.split()) for what, _ in cells)}"
        for title, cells in rows.items()
    )
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"{said}.", caption=caption, name=name,
    )  # fmt: skip


def marks(
    rows: Mapping[str, Collection[str]], columns: Sequence[str], caption: str = "", name: str = ""
) -> Display:
    """Draw a grid: in which columns something of each row happens."""
    wide, high, left = 0.98, 0.42, 2.26
    axes = canvas(left + wide * len(columns), high * len(rows) + 0.48)
    top = high * len(rows)
    for column, title in enumerate(columns):
        axes.text(
            left + wide * (column + 0.5), top + 0.24, title, fontsize=10, color=SOFT, ha="center",
            va="center", linespacing=1.1,
        )  # fmt: skip
    for row, (title, where) in enumerate(rows.items()):
        y = top - high * (row + 1)
        axes.text(0, y + high / 2, title, fontsize=10, va="center", linespacing=1.1)
        for column, one in enumerate(columns):
            there = one in where
            x = left + wide * column
            box(axes, x + 0.03, y + 0.03, wide - 0.06, high - 0.06, "a" if there else "", there)
            axes.text(
                x + wide / 2, y + high / 2, "runs" if there else "–", fontsize=10, ha="center",
                va="center", color=INK if there else SOFT,
            )  # fmt: skip
    said = "; ".join(
        f"{_flat(title)}: {', '.join(map(_flat, where)) or 'nowhere'}"
        for title, where in rows.items()
    )
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"What runs where. {said}.",
        caption=caption,
        name=name,
    )


def when_read(
    rows: Mapping[str, str], moments: Sequence[str], caption: str = "", name: str = ""
) -> Display:
    """Draw at which moment each environment variable is read.

    :param rows: variable → moment.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(5.2, 0.26 * len(rows) + 0.7))
        for at, moment in enumerate(rows.values()):
            x = moments.index(moment)
            ax.plot([x], [-at], "o", color=COLOURS["abcdef"[x]], ms=8)
            ax.axhline(-at, color=LINE, lw=0.5, alpha=0.5, zorder=0)
        ax.set_yticks([-at for at in range(len(rows))], [*rows], fontsize=10)
        ax.set_xticks(range(len(moments)), [_broken(one) for one in moments], fontsize=10)
        ax.xaxis.tick_top()
        ax.set_xlim(-0.5, len(moments) - 0.5)
        ax.grid(False)
        for side in ("left", "bottom", "top"):
            ax.spines[side].set_visible(False)
        ax.tick_params(length=0)
    said = "; ".join(f"{variable}: {moment}" for variable, moment in rows.items())
    return figure(fig, alt=f"When each variable is read. {said}.", caption=caption, name=name)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    lines = textwrap.wrap(text, width)
    return [*lines[:2], lines[2] + " …"] if len(lines) > 3 else lines


def _broken(text: str) -> str:
    """Return a text on two lines: its first two words, then the rest."""
    words = text.split()
    return "\n".join([" ".join(words[:2]), " ".join(words[2:])])
