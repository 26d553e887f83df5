"""The pictures of "PyTorch in ten minutes": the layers, a step in memory, who reads a storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style
from miniatures.ten_minutes.watch import FREED, Numbers, State, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch.fx import GraphModule

INK, SOFT, LINE = (COLOURS[role] for role in ("ink", "soft", "line"))
FORWARD, BACKWARD, BESIDE = (COLOURS[role] for role in "abc")

SAID = {
    "": "Two parameters, with no gradient.",
    "output": "`addmm` multiplies and adds. Its node keeps `x`, from which the weight's gradient "
    "will be made.",
    "error": "The difference to `y`. The derivative of a difference needs no number: its node "
    "keeps none.",
    "squares": "The squares. This node keeps the errors.",
    "loss": "Their mean is the loss. Each result has its node, tied to the one before.",
    "loss.grad": "`backward` starts at the loss, with the gradient 1.",
    "squares.grad": "Each square has half a share in the mean.",
    "error.grad": "Twice the error times ½. The node of the squares has run, and lets go of what "
    "it kept.",
    "output.grad": "A difference hands its gradient on to its first input as it is.",
    "bias.grad": "The bias was added to both rows: its gradient is the sum, and a leaf keeps it.",
    "weight.grad": "The weight's gradient is the errors times `x`, summed over the rows.",
    "optimizer.step()": "Each parameter becomes itself minus 0.1 times its gradient. The loss "
    "below is still that of the old numbers.",
}
"""What the book says of each moment of its step, by what is new in it."""


def layers(
    program: Sequence[str], rows: Sequence[tuple[str, str]], compiler: str, ranks: str
) -> Display:
    """Draw the layers below a program, and the two ways that leave them sideways.

    :param program: the lines.
    :param rows: the layers from the top: what each is called, and what was seen there.
    :param compiler: what stands in the box on the left.
    :param ranks: what stands in the box on the right.
    """
    step, left, right = 0.74, 1.08, 4.0
    top = len(rows) * step
    axes = _canvas(5.0, top + 0.24 * len(program) + 0.5)
    height = 0.24 * len(program) + 0.2
    _box(axes, 0.0, top + 0.25, 5.0, height, INK, 0.0)
    for at, line in enumerate(program):
        y = top + 0.25 + height - 0.22 - 0.24 * at
        axes.text(0.12, y, line, family="monospace", fontsize=10, color=INK, va="center")
    for at, (name, seen) in enumerate(rows):
        y = top - (at + 1) * step
        _box(axes, left, y, right - left, step - 0.17, FORWARD, 0.16)
        title = f"{at + 1}  {name}"
        axes.text(left + 0.1, y + 0.4, title, fontsize=11, weight="bold", color=INK, va="center")
        axes.text(left + 0.1, y + 0.17, seen, fontsize=10, color=SOFT, va="center")
        _arrow(axes, (2.5, y + step), (2.5, y + step - 0.17), INK)
    first, last = top - step, top - 5 * step
    _box(axes, 0.0, last, 0.8, first - last + step - 0.17, BACKWARD, 0.14)
    middle = (first + last + step - 0.17) / 2
    axes.text(0.4, middle, compiler, fontsize=10, color=INK, ha="center", va="center")
    _arrow(axes, (left, first + 0.28), (0.8, first + 0.28), BACKWARD)
    _arrow(axes, (0.8, last + 0.28), (left, last + 0.28), BACKWARD)
    _box(axes, 4.28, 0.0, 0.72, top - 0.17, BESIDE, 0.14)
    axes.text(4.64, top / 2, ranks, fontsize=10, color=INK, ha="center", va="center")
    for at in (4, 6):
        y = top - at * step + 0.28
        axes.annotate("", (right, y), (4.28, y), arrowprops={"arrowstyle": "<->", "color": BESIDE})
    told = "; ".join(f"{at}, {name}: {seen}" for at, (name, seen) in enumerate(rows, 1))
    alt = (
        f"The five lines on top. Below them a stack of {len(rows)} layers, passed from top to "
        f"bottom. {told}. On the left, {_flat(compiler)}, which is entered from layer 1 and comes "
        f"back at layer 5. On the right, {_flat(ranks)}, tied to layers 4 and 6 by arrows in both "
        "directions."
    )
    return figure(axes.figure, alt=alt)  # type: ignore[arg-type]


def moments(states: Sequence[State]) -> list[tuple[Display, str]]:
    """Draw each moment of a step, with the sentence that the book has for it."""
    return [(moment(state), sentence(state)) for state in states]


def sentence(state: State) -> str:
    """Return what the book says of a moment."""
    return SAID[next(iter(state.changed), "") if len(state.changed) < 2 else state.line]


def moment(state: State) -> Display:
    """Draw what is in memory at one moment of a step: numbers left, gradients right."""
    names = ["x", "y", "weight", "bias", "output", "error", "squares", "loss"]
    step = 0.36
    axes = _canvas(5.0, step * (len(names) + 2))
    y = step * (len(names) + 1)
    line = state.line or "before line 3"
    axes.text(0.0, y + 0.16, line, fontsize=11, weight="bold", color=INK, va="center")
    for x, head in ((0.64, "numbers"), (2.16, "node"), (4.2, "gradient")):
        axes.text(x, y - step + 0.13, head, fontsize=10, color=SOFT, va="center")
    for at, name in enumerate(names):
        y = step * (len(names) - 1 - at)
        if name in state.values:
            axes.text(0.0, y + 0.14, name, fontsize=10, color=INK, va="center")
            _cells(axes, 0.64, y, state.values[name], FORWARD if name in state.changed else "")
        if name in state.nodes:
            made, kept = state.nodes[name]
            keeps = {0: "", FREED: ": let go"}.get(kept, f": keeps {kept}")
            axes.text(2.16, y + 0.14, f"{made}{keeps}", fontsize=10, color=SOFT, va="center")
        if name in state.gradients:
            new = f"{name}.grad" in state.changed
            _cells(axes, 4.2, y, state.gradients[name], BACKWARD if new else "")
    values = "; ".join(f"{name} is {_list(found)}" for name, found in state.values.items())
    there = "; ".join(f"of {name} {_list(found)}" for name, found in state.gradients.items())
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"{line}: {values}. Gradients: {there or 'none'}.",
    )


def reads(tensors: Mapping[str, Tensor]) -> Display:
    """Draw the storage that tensors share as a strip of cells, and which index of each reads it."""
    first = next(iter(tensors.values()))
    count = first.untyped_storage().nbytes() // first.element_size()
    whole = first.as_strided((count,), (1,), 0)
    step, wide, left = 0.46, 0.72, 1.25
    axes = _canvas(left + wide * count + 0.02, step * (len(tensors) + 1))
    said = []
    for at, (name, tensor) in enumerate([("storage", whole), *tensors.items()]):
        y = step * (len(tensors) - at) + 0.05
        axes.text(0.0, y + 0.17, name, fontsize=11, color=INK, va="center")
        places = {
            int(tensor.storage_offset())
            + sum(i * int(s) for i, s in zip(index, tensor.stride(), strict=True)): index
            for index in _indices(tensor.shape)
        }
        for cell, index in places.items():
            text = f"{whole[cell]:g}" if not at else str(list(index))
            _box(
                axes, left + wide * cell, y, wide, 0.34, INK if not at else FORWARD, 0.18 * bool(at)
            )
            x = left + wide * (cell + 0.5)
            axes.text(x, y + 0.17, text, fontsize=10, color=INK, ha="center", va="center")
        if at:
            said.append(f"{name} has strides {tuple(tensor.stride())} and reads cells {[*places]}")
    held = _list(tuple(whole.tolist()))
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"The storage has the numbers {held}. {'; '.join(said)}.",
    )


def calls(module: GraphModule) -> Display:
    """Draw the graph of calls that the compiler is handed."""
    nodes = list(module.graph.nodes)
    lines = []
    for node in nodes:
        inside = node.op == "placeholder"
        colour = SOFT if inside else BACKWARD
        lines.append(f'{node.name} [label="{_called(node)}" color="{colour}"];')
        lines += [f"{one.name} -> {node.name};" for one in node.all_input_nodes]
    said = "; ".join(
        f"{_called(node)} of {', '.join(_called(one) for one in node.all_input_nodes)}"
        for node in nodes
        if node.op != "placeholder"
    )
    return graph(
        "digraph { rankdir=TB; nodesep=0.2; ranksep=0.25; node [shape=box style=rounded "
        f"height=0.3]; {' '.join(lines)} }}",
        alt=f"A graph of calls: {said}.",
    )


def holders(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Display:
    """Draw a model and an optimizer, the parameters that both hold, and the gradients of these."""
    ends = {"model": type(model).__name__, "optimizer": type(optimizer).__name__}
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    lines = [f'{end} [label="{end}\\n{kind}" color="{SOFT}"];' for end, kind in ends.items()]
    said = []
    for name, parameter in model.named_parameters():
        values = _list(numbers(parameter))
        lines.append(f'{name} [label="{name}\\n{values}" color="{FORWARD}"]; model -> {name};')
        if id(parameter) in held:
            lines.append(f"{name} -> optimizer [dir=back];")
        if parameter.grad is not None:
            gradient = _list(numbers(parameter.grad))
            lines.append(f'{name}_grad [label="{name}.grad\\n{gradient}" color="{BACKWARD}"];')
            lines.append(f"{name} -> {name}_grad; {{rank=same; {name}; {name}_grad}}")
            said.append(f"{name} {values} has the gradient {gradient}")
    return graph(
        "digraph { nodesep=0.25; ranksep=0.35; node [shape=box style=rounded]; "
        f"{' '.join(lines)} }}",
        alt=f"{ends['model']} and {ends['optimizer']} hold the same parameters: {'; '.join(said)}.",
    )


def key_grid(keys: Mapping[str, Sequence[str]]) -> Display:
    """Draw the keys of tensors as a grid: a row for each key, a column for each tensor.

    :param keys: name of a tensor → its keys, the first one last.
    """
    order: list[str] = []
    for found in keys.values():
        place = len(order)
        for key in found:  # from the last: what is new stands above what it stands above here
            place = order.index(key) if key in order else place
            if key not in order:
                order.insert(place, key)
    step, wide, left = 0.32, 0.8, 1.75
    axes = _canvas(left + wide * len(keys), step * (len(order) + 1))
    for row, key in enumerate(order):
        y = step * (len(order) - 1 - row)
        axes.text(0.0, y + step / 2, key, fontsize=10, color=INK, va="center")
        for column, found in enumerate(keys.values()):
            x, colour = left + wide * column, FORWARD if key in found else LINE
            _box(axes, x + 0.03, y + 0.03, wide - 0.06, step - 0.06, colour, 0.5 * (key in found))
    for column, name in enumerate(keys):
        x, y = left + wide * (column + 0.5), step * (len(order) + 0.5)
        axes.text(x, y, name, fontsize=10, color=INK, ha="center", va="center")
    said = "; ".join(f"{name} has {', '.join(found[::-1])}" for name, found in keys.items())
    return figure(
        axes.figure,  # type: ignore[arg-type]
        alt=f"The keys of {len(keys)} tensors, the first key first: {said}.",
    )


def _called(node: Any) -> str:
    """Return a short name for a node of the compiler's graph."""
    if node.op == "output":
        return "result"
    if node.op == "placeholder":
        words = [word for word in str(node.target).strip("_").split("_") if word]
        return words[-1]
    return str(getattr(node.target, "__name__", node.target))


def _canvas(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    with style():
        axes: Axes = plt.subplots(figsize=(width, height))[1]
    axes.set(xlim=(-0.03, width + 0.03), ylim=(-0.03, height))
    axes.set_axis_off()
    return axes


def _box(
    axes: Axes, x: float, y: float, width: float, height: float, colour: str, alpha: float
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=alpha, linewidth=0))
    axes.add_patch(
        Rectangle((x, y), width, height, facecolor="none", edgecolor=colour, linewidth=1.2)
    )


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    arrow = {"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow)


def _cells(axes: Axes, x: float, y: float, found: Numbers, colour: str) -> None:
    """Draw numbers as a strip of cells, filled if they are new."""
    for at, number in enumerate(found):
        _box(axes, x + 0.37 * at, y, 0.37, 0.28, colour or LINE, 0.3 * bool(colour))
        axes.text(
            x + 0.37 * (at + 0.5), y + 0.14, _short(number), fontsize=10, color=INK, ha="center",
            va="center",
        )  # fmt: skip


def _short(number: float) -> str:
    return f"{round(number, 2):g}".replace("-", "−")


def _list(found: Numbers) -> str:
    return "[" + ", ".join(map(_short, found)) + "]"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _indices(shape: Sequence[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for size in shape:
        found = [(*index, i) for index in found for i in range(size)]
    return found
