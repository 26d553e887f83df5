"""Pictures of the chip: its memories, its threads, sectors, tiles, banks and waves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from miniatures.gpu_performance.watch_access import Access, Turn

Box = tuple[float, float, float, float, str, str]
"""Left, top, width, height in inches, what stands inside, and a colour or nothing."""


def boxes(
    cells: Sequence[Box], *, alt: str, texts: Sequence[tuple[float, float, str, str]] = (),
    wide: float = 5.6, **picture: Any,
) -> Display:  # fmt: skip
    """Draw boxes, and texts at places (left, middle, words, how they are aligned)."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    high = max([y + h for _, y, _, h, _, _ in cells] + [y + 0.12 for _, y, *_ in texts]) + 0.06
    with style():
        fig = plt.figure(figsize=(wide, high))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, wide), ylim=(high, 0))
        ax.axis("off")
        for x, y, w, h, inside, role in cells:
            ax.add_patch(Rectangle(
                (x, y), w, h, facecolor=COLOURS[role] if role else "none", alpha=0.9 if role else 1,
                edgecolor=COLOURS["line"], linewidth=0.9))  # fmt: skip
            if inside:
                ax.text(x + w / 2, y + h / 2, inside, ha="center", va="center", fontsize=10.5,
                        color=COLOURS["pane" if role else "ink"])  # fmt: skip
        for x, y, words, side in texts:
            ax.text(x, y, words, ha=side, va="center", fontsize=10.5, color=COLOURS["soft"])
    return figure(fig, alt=alt, **picture)


def chip(facts: Mapping[str, str], **picture: Any) -> Display:
    """Draw HBM, L2 and the multiprocessors with what is kept where.

    :param facts: texts for ``name``, ``hbm``, ``l2``, ``sms``, ``shared``, ``registers``.
    """
    cells: list[Box] = [
        (0.1, 0.3, 5.4, 0.5, f"HBM, the GPU's main memory: {facts['hbm']}", "a"),
        (0.1, 1.05, 5.4, 0.5, f"L2, the cache of all: {facts['l2']}", "c"),
        (0.1, 1.8, 5.4, 1.62, "", ""),
    ]
    for n, name in enumerate(["SM", "SM", "SM", "…", "SM"]):
        x = 0.25 + n * 1.04
        cells.append((x, 2.1, 0.92, 1.2, "" if name == "SM" else "…", ""))
        if name == "SM":
            cells += [(x + 0.06, 2.16, 0.8, 0.34, "shared", "b"),
                      (x + 0.06, 2.55, 0.8, 0.34, "registers", "d"),
                      (x + 0.06, 2.94, 0.8, 0.3, "units", "e")]  # fmt: skip
    texts = [(0.1, 0.14, facts["name"], "left"), (2.8, 0.92, "↕", "center"),
             (2.8, 1.67, "↕", "center"),
             (0.2, 1.95, f"{facts['sms']}, each with {facts['shared']} and {facts['registers']}",
              "left")]  # fmt: skip
    said = ", ".join(f"{key} {value}" for key, value in facts.items())
    return boxes(
        cells, alt=f"Memories of the chip, from far to near: {said}.", texts=texts, **picture
    )


def threads(blocks: int, each: int, numbers: int, **picture: Any) -> Display:
    """Draw a grid of blocks, one block's warps, one warp's threads."""
    warps = each // 32
    cells: list[Box] = [(0.9 + n * 0.62, 0.05, 0.55, 0.32, f"{n}", "a" if n == 2 else "")
                        for n in range(5)]  # fmt: skip
    cells += [(4.35, 0.05, 0.75, 0.32, f"{blocks - 1:,}", "")]
    cells += [(0.9 + n * 1.05, 0.72, 0.98, 0.32, f"warp {n}", "c" if n == 1 else "")
              for n in range(warps)]  # fmt: skip
    cells += [(0.9 + n * 0.138, 1.39, 0.125, 0.32, "", "d" if n == 5 else "") for n in range(32)]
    cells += [(0.9 + n * 0.42, 2.06, 0.39, 0.32, f"{n}", "e") for n in range(numbers)]
    texts = [(0.05, 0.21, "grid", "left"), (4.17, 0.21, "…", "center"),
             (0.05, 0.88, "block 2", "left"), (0.05, 1.55, "warp 1", "left"),
             (0.05, 2.22, "thread 5", "left"),
             (0.9, 0.53, f"{blocks:,} blocks; one of them:", "left"),
             (0.9, 1.2, f"{warps} warps; one of them:", "left"),
             (0.9, 1.87, f"32 threads; one of them has {numbers} numbers:", "left")]  # fmt: skip
    alt = (f"A grid of {blocks:,} blocks; a block of {warps} warps; a warp of 32 threads; a thread "
           f"with {numbers} numbers.")  # fmt: skip
    return boxes(cells, alt=alt, texts=texts, **picture)


def sectors(access: Access, **picture: Any) -> Display:
    """Draw 64 float32 in memory: those asked for, and the sectors of eight that are moved."""
    asked, moved = set(access.at), {at // 8 for at in access.at}
    cells: list[Box] = []
    for number in range(64):
        row, column = divmod(number, 32)
        role = "b" if number in asked else "a" if number // 8 in moved else ""
        x = 0.1 + column * 0.165 + column // 8 * 0.04
        cells.append((x, 0.05 + row * 0.34, 0.155, 0.26, "", role))
    alt = f"Of 64 numbers {len(asked)} are asked for, in {len(moved)} sectors of eight."
    return boxes(cells, alt=alt, wide=5.6, **picture)


def matrices(
    sizes: Mapping[str, tuple[int, int]], touched: Mapping[str, set[int]],
    now: Mapping[str, set[int]], **picture: Any,
) -> Display:  # fmt: skip
    """Draw matrices, each number a cell: touched before, touched now, or not yet."""
    cells: list[Box] = []
    texts: list[tuple[float, float, str, str]] = []
    x, step = 0.15, 0.19
    for name, (rows, columns) in sizes.items():
        texts.append((x, 0.12, name, "left"))
        for at in range(rows * columns):
            row, column = divmod(at, columns)
            role = "b" if at in now.get(name, ()) else "a" if at in touched.get(name, ()) else ""
            cells.append((x + column * step, 0.26 + row * step, step - 0.02, step - 0.02, "", role))
        x += columns * step + 0.3
    said = "; ".join(f"{name}: {len(now.get(name, ()))} now, {len(touched.get(name, ()))} in all"
                     for name in sizes)  # fmt: skip
    return boxes(cells, alt=f"Numbers touched. {said}.", texts=texts, **picture)


def waves(tiles: int, places: int, **picture: Any) -> Display:
    """Draw one wave: the places of a chip, and those that have a tile."""
    across = 22
    cells: list[Box] = [
        (
            0.15 + n % across * 0.24,
            0.05 + n // across * 0.24,
            0.21,
            0.21,
            "",
            "c" if n < tiles else "",
        )
        for n in range(places)
    ]
    return boxes(cells, alt=f"{tiles} of {places} multiprocessors have a tile.", **picture)


def orders(groups: Mapping[str, Sequence[tuple[int, int]]], side: int, **picture: Any) -> Display:
    """Draw which tiles of two inputs some tiles of a product need, for several orders."""
    cells: list[Box] = []
    texts: list[tuple[float, float, str, str]] = []
    step = 0.135
    for n, (title, places) in enumerate(groups.items()):
        top = 0.3 + n * (side * step + 0.5)
        rows, columns = {row for row, _ in places}, {column for _, column in places}
        need = side * (len(rows) + len(columns))
        texts.append((0.15, top - 0.14, f"{title}: {need} tiles of the inputs", "left"))
        parts = {"left": {(r, c) for r in rows for c in range(side)},
                 "right": {(r, c) for r in range(side) for c in columns},
                 "product": set(places)}  # fmt: skip
        for m, (name, wanted) in enumerate(parts.items()):
            for at in range(side * side):
                row, column = divmod(at, side)
                role = ("b" if name == "product" else "a") if (row, column) in wanted else ""
                cells.append(
                    (0.15 + m * 1.8 + column * step, top + row * step, step, step, "", role)
                )
            sign = {"left": "×", "right": "="}.get(name)
            if sign:
                texts.append(
                    (0.15 + m * 1.8 + side * step + 0.27, top + side * step / 2, sign, "center")
                )
    alt = "; ".join(
        f"{title}: {side * (len({r for r, _ in p}) + len({c for _, c in p}))} tiles of the inputs"
        for title, p in groups.items()
    )
    return boxes(cells, alt=f"{alt}.", texts=texts, **picture)


def banks(layouts: Mapping[str, Sequence[int]], **picture: Any) -> Display:
    """Draw how many of a warp's numbers lie in each of the 32 banks, for several layouts.

    :param layouts: for each, the words that the 32 threads ask for.
    """
    import matplotlib.pyplot as plt

    with style():
        fig, axes = plt.subplots(len(layouts), 1, figsize=(5.6, 1.35 * len(layouts)), sharex=True)
        for ax, (title, words), colour in zip(axes, layouts.items(), "bc", strict=False):
            counts = Counter(word % 32 for word in words)
            ax.bar(range(32), [counts[bank] for bank in range(32)], color=COLOURS[colour])
            ax.set(ylabel="numbers", ylim=(0, 34))
            ax.set_title(f"{title}: {max(counts.values())} rounds")
        axes[-1].set(xlabel="bank")
    said = "; ".join(f"{title}: at most {max(Counter(w % 32 for w in words).values())} in a bank"
                     for title, words in layouts.items())  # fmt: skip
    return figure(fig, alt=f"Numbers of one warp by bank. {said}.", **picture)


def turns(seen: Sequence[Turn], block: int) -> list[tuple[Display, str]]:
    """Return a picture and a sentence for each turn of attention's loop."""
    states = []
    count = len(seen) * block
    known = [score for turn in seen for score in turn.scores]
    for n, turn in enumerate(seen):
        cells: list[Box] = []
        for key in range(count):
            role = "b" if key // block == n else "a" if key < n * block else ""
            said = f"{known[key]:g}" if key < (n + 1) * block else ""
            cells.append((1.3 + key * 0.5, 0.05, 0.46, 0.32, said, role))
        kept = (("best so far", f"{turn.best:g}"), ("old sum ×", f"{turn.shrink:.3f}"),
                ("sum", f"{turn.total:.3f}"))  # fmt: skip
        cells += [
            (1.3 + m * 1.4, 0.78, 1.25, 0.32, value, "c") for m, (_, value) in enumerate(kept)
        ]
        texts = [(0.05, 0.21, "scores", "left"), (0.05, 0.94, "kept", "left")]
        texts += [(1.3 + m * 1.4, 0.63, name, "left") for m, (name, _) in enumerate(kept)]
        says = (f"Block {n + 1}: scores {', '.join(f'{s:g}' for s in turn.scores)}. The best is "
                f"{turn.best:g}, the sum so far is multiplied by {turn.shrink:.3f}, and the sum is "
                f"now {turn.total:.3f}.")  # fmt: skip
        states.append((boxes(cells, alt=says, texts=texts), says))
    return states
