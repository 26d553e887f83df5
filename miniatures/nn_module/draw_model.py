"""Pictures of models and files: the flag on a tree, names that meet, bytes over time, a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle
from torch import nn

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style
from miniatures.nn_module.watch import Record


def flag_tree(
    net: nn.Module, strays: Mapping[str, nn.Module] | None = None, **picture: Any
) -> Display:
    """Draw a model's modules and the value of ``training`` on each.

    :param strays: modules that the model holds and does not know of, by how you reach them.
    """
    lines, said = [], []
    names = {"": type(net).__name__}
    for path, module in net.named_modules():
        names.setdefault(path, f"{path}: {type(module).__name__}")
        lines.append(_flagged(path or "root", names[path], module))
        said.append(f"{names[path]} {'training' if module.training else 'evaluating'}")
        if path:
            parent = path.rpartition(".")[0] or "root"
            lines.append(f'"{parent}" -> "{path}";')
    for path, module in (strays or {}).items():
        lines.append(_flagged(path, f"{path}: {type(module).__name__}", module))
        lines.append(f'"root" -> "{path}" [style=dashed];')
        said.append(f"{path}, not known, {'training' if module.training else 'evaluating'}")
    return graph(
        "digraph { rankdir=LR; nodesep=0.12; ranksep=0.3; edge [arrowsize=0.6]; "
        + "node [shape=box style=rounded penwidth=1.6];\n" + "\n".join(lines) + "\n}",
        alt=f"A tree of modules: {'; '.join(said)}.", **picture,
    )  # fmt: skip


def _flagged(node: str, label: str, module: nn.Module) -> str:
    colour = COLOURS["b" if module.training else "a"]
    flag = "training=True" if module.training else "training=False"
    return f'"{node}" [label="{label}\\n{flag}" color="{colour}" fontcolor="{colour}"];'


def names_meet(
    state: Mapping[str, Sequence[int]], model: Mapping[str, Sequence[int]], **picture: Any
) -> Display:
    """Draw the names of a state dict beside those of a model: which are loaded, which are not.

    :param state: name → shape in the state dict.
    :param model: name → shape in the model.
    """
    names = [*state, *(name for name in model if name not in state)]
    row, high = 0.36, 0.27
    kinds = {name: _kind(name, state, model) for name in names}
    roles = {"loaded": "c", "size mismatch": "f", "unexpected": "b", "missing": "d"}
    with style():
        fig = plt.figure(figsize=(5.2, row * (len(names) + 1)))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 5.2), ylim=(row * len(names), -row))
        ax.axis("off")
        for x, head in ((0.98, "state dict"), (4.2, "model")):
            ax.text(
                x, -row / 2, head, ha="center", va="center", color=COLOURS["soft"], fontsize=10.5
            )
        for at, name in enumerate(names):
            y, colour = at * row + row / 2, COLOURS[roles[kinds[name]]]
            for x, side in ((0.05, state), (3.3, model)):
                if name not in side:
                    continue
                shape = "×".join(map(str, side[name])) or "scalar"
                ax.add_patch(
                    Rectangle((x, y - high / 2), 1.85, high, fc=colour, ec=colour, alpha=0.15)
                )
                ax.text(x + 0.06, y, name, va="center", fontsize=10.5)
                ax.text(x + 1.8, y, shape, va="center", ha="right", fontsize=10.5,
                        color=COLOURS["soft"])  # fmt: skip
            ax.text(
                2.6, y + 0.01, kinds[name], ha="center", va="center", fontsize=10.5, color=colour
            )
            if kinds[name] == "loaded":
                arrow = {"arrowstyle": "->", "color": colour}
                ax.annotate("", (3.28, y), (2.95, y), arrowprops=arrow)
                ax.plot([1.92, 2.28], [y, y], color=colour, lw=1.3)
    said = "; ".join(f"{name}: {kind}" for name, kind in kinds.items())
    return figure(fig, alt=f"Names of a state dict and of a model. {said}.", **picture)


def _kind(name: str, state: Mapping[str, Sequence[int]], model: Mapping[str, Sequence[int]]) -> str:
    if name not in model:
        return "unexpected"
    if name not in state:
        return "missing"
    return "loaded" if tuple(state[name]) == tuple(model[name]) else "size mismatch"


def levels(runs: Mapping[str, tuple[int, Sequence[int]]], unit: int, **picture: Any) -> Display:
    """Draw how many bytes are held during each conversion, event by event.

    :param runs: by name, the bytes held at the start, and those asked for and given back.
    :param unit: the bytes of one layer, which the axis counts in.
    """
    with style():
        fig, ax = plt.subplots(figsize=(5.2, 2.7))
        said = []
        for (name, (start, events)), mark in zip(runs.items(), ("-", "--", ":"), strict=False):
            held = [level / unit for level in accumulate(events, initial=start)]
            ax.step(range(len(held)), held, where="post", ls=mark, label=name)
            said.append(f"{name}: from {held[0]:g} over {max(held):g} to {held[-1]:g}")
        ax.set(
            xlabel="allocations and releases, one by one",
            ylabel="layers of float32",
            ylim=(0, None),
        )
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    alt = f"Memory held while a model is converted, in layers: {'; '.join(said)}."
    return figure(fig, alt=alt, **picture)


def file_map(records: Sequence[Record], **picture: Any) -> Display:
    """Draw the records of a checkpoint in their order: where each begins, and how long it is."""
    row = 0.32
    with style():
        fig = plt.figure(figsize=(5.2, row * (len(records) + 1)))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 5.2), ylim=(row * len(records), -row))
        ax.axis("off")
        heads = ((0.75, "begins at", "right"), (0.95, "record", "left"), (5.1, "bytes", "right"))
        for x, head, align in heads:
            ax.text(x, -row / 2, head, ha=align, va="center", fontsize=10.5, color=COLOURS["soft"])
        for at, record in enumerate(records):
            y = at * row
            role = "c" if "/data/" in record.name else "b" if "pkl" in record.name else "line"
            for fill, alpha in ((COLOURS[role], 0.16), ("none", 1.0)):
                ax.add_patch(
                    Rectangle((0.87, y + 0.03), 4.28, row - 0.06, fc=fill, ec=COLOURS[role],
                              alpha=alpha, lw=1.2)
                )  # fmt: skip
            ax.text(0.75, y + row / 2, f"{record.offset:,}", ha="right", va="center", fontsize=10.5)
            ax.text(0.95, y + row / 2, record.name, va="center", fontsize=10.5)
            ax.text(5.1, y + row / 2, f"{record.size:,}", ha="right", va="center", fontsize=10.5)
    said = "; ".join(f"{r.name} at {r.offset}, {r.size} bytes" for r in records)
    return figure(fig, alt=f"The records of a file, in order: {said}.", **picture)
