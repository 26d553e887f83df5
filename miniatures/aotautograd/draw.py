"""Pictures: the way of a function, fake tensors, sizes, writes, the joint graph and its cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, style
from insidetorch.show.shapes import arrow, box
from miniatures.aotautograd.cut import kept, network, split
from miniatures.aotautograd.rules import Joint, Node, banned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 4.9


def _page(high: float) -> tuple[Any, Axes]:
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(WIDE, high))
    ax.set(xlim=(0, WIDE), ylim=(0, high))
    ax.axis("off")
    return fig, ax


def way(numbers: Mapping[str, Any], **picture: Any) -> Display:
    """Draw what becomes of a function: traced, made pure, differentiated, cut, wrapped.

    :param numbers: calls of the joint, forward and backward graph, values kept.
    """
    with style():
        fig, ax = _page(3.5)
        box(ax, (2.45, 3.22), (4.5, 0.42), "your function, run on tensors without numbers", "ink")
        box(ax, (2.45, 2.42), (4.5, 0.62), "joint graph: forward and backward, no writes\n"
             f"{numbers['joint']} calls", "d")  # fmt: skip
        box(ax, (1.15, 1.42), (1.9, 0.62), f"forward graph\n{numbers['forward']} calls", "a")
        box(ax, (3.75, 1.42), (1.9, 0.62), f"backward graph\n{numbers['backward']} calls", "b")
        box(ax, (2.45, 0.42), (4.5, 0.6), "one node of autograd; around it, what the graphs\n"
             "leave out: writes to inputs, views, errors", "c")  # fmt: skip
        arrow(ax, (2.45, 3.0), (2.45, 2.75), "ink")
        arrow(ax, (1.6, 2.1), (1.15, 1.75), "d")
        arrow(ax, (3.3, 2.1), (3.75, 1.75), "d")
        arrow(ax, (2.12, 1.42), (2.77, 1.42), "e")
        ax.text(2.45, 1.5, f"keeps {numbers['kept']}", ha="center", va="bottom", fontsize=9,
                color=COLOURS["e"])  # fmt: skip
        arrow(ax, (1.15, 1.1), (1.6, 0.74), "a")
        arrow(ax, (3.75, 1.1), (3.3, 0.74), "b")
        ax.text(2.45, 1.98, "cut", ha="center", fontsize=10, color=COLOURS["d"])
    return figure(
        fig,
        alt="A function is run on tensors without numbers; that gives a joint graph of "
        f"{numbers['joint']} calls. It is cut into a forward graph of {numbers['forward']} calls "
        f"and a backward graph of {numbers['backward']}, with {numbers['kept']} values kept "
        "between them. Both become one node of autograd, with wrappers around it.",
        **picture,
    )


def faked(a: Any, b: Any, result: Any, **picture: Any) -> Display:
    """Draw a product of fake tensors: devices outside, meta tensors inside."""

    def inside(tensor: Any) -> str:
        return f"{tuple(tensor.shape)}\nstrides {tensor.stride()}"

    with style():
        fig, ax = _page(2.75)
        for x, tensor, name in ((1.05, a, "a"), (3.85, b, "b")):
            box(ax, (x, 2.22), (2.0, 1.0), "", "a")
            ax.text(x, 2.58, f"{name}: fake, {tensor.device}", ha="center", va="center",
                    fontsize=10)  # fmt: skip
            box(ax, (x, 2.1), (1.8, 0.55), inside(tensor), "e", fontsize=9)
        box(ax, (2.45, 1.3), (2.9, 0.36), "the meta kernel of mm: sizes only", "d")
        box(ax, (2.45, 0.5), (2.4, 0.95), "", "a")
        ax.text(2.45, 0.82, f"a @ b: fake, {result.device}", ha="center", va="center", fontsize=10)
        box(ax, (2.45, 0.35), (2.1, 0.52), inside(result), "e", fontsize=9)
        arrow(ax, (1.6, 1.83), (2.0, 1.49), "e")
        arrow(ax, (3.3, 1.83), (2.9, 1.49), "e")
        arrow(ax, (2.45, 1.11), (2.45, 0.98), "e")
    return figure(
        fig,
        alt=f"Two fake tensors on {a.device}, each with a meta tensor inside: {tuple(a.shape)} and "
        f"{tuple(b.shape)}. The meta kernel works out {tuple(result.shape)}, and the result is "
        f"wrapped with the device {result.device}.",
        **picture,
    )


def sizes(found: Mapping[tuple[int, int], int], **picture: Any) -> Display:
    """Draw which graph each pair of sizes runs: the regions that guards leave.

    :param found: for each pair of sizes the number of the graph.
    """
    from matplotlib.patches import Rectangle

    numbers = {graph: place for place, graph in enumerate(dict.fromkeys(found.values()))}
    most = sorted(numbers, key=lambda graph: -list(found.values()).count(graph))[:2]
    roles = {most[0]: "a", most[1]: "b"}
    rows, columns = (1 + max(pair[k] for pair in found) for k in (0, 1))
    import matplotlib.pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(4.6, 3.7))
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal")
        ax.grid(visible=False)
        ax.tick_params(length=0)
        ax.set(xticks=range(columns), yticks=range(rows), xlabel="size of y", ylabel="size of x")
        for (x, y), graph in found.items():
            role = roles.get(graph, "pane")
            ax.add_patch(
                Rectangle((y - 0.46, x - 0.46), 0.92, 0.92, fc=COLOURS[role],
                          alpha=0.45 if role != "pane" else 0.22)
            )  # fmt: skip
            ax.text(y, x, str(graph), ha="center", va="center", fontsize=10)
    return figure(
        fig,
        alt=f"A grid of sizes of x and y from 0 to {rows - 1}; each cell has the number of the "
        f"graph that runs. Two graphs, {most[0]} and {most[1]}, serve the sizes from 2 on, one "
        "for each side of the comparison; sizes 0 and 1 have graphs of their own, "
        f"{len(numbers)} in all.",
        **picture,
    )


def writing(lines: Sequence[tuple[str, Sequence[tuple[str, bool]]]], **picture: Any) -> Display:
    """Draw a program beside the calls that functionalisation makes of it, line by line.

    :param lines: each line, and its calls with whether they stay.
    """
    count = sum(max(1, len(made)) for _, made in lines)
    step = 0.27
    high = count * step + 0.55
    with style():
        fig, ax = _page(high)
        ax.text(0.05, high - 0.2, "program", fontsize=10, color=COLOURS["soft"], va="center")
        ax.text(1.75, high - 0.2, "graph", fontsize=10, color=COLOURS["soft"], va="center")
        y = high - 0.5
        for line, made in lines:
            write = "_(" in line
            ax.text(0.05, y, line, fontsize=10, family="monospace", va="center",
                    color=COLOURS["b"] if write else COLOURS["ink"])  # fmt: skip
            for text, stays in made:
                role = ("c" if "scatter" in text else "a") if stays else "soft"
                ax.text(1.75, y, text, fontsize=10, family="monospace", va="center",
                        color=COLOURS[role], alpha=1 if stays else 0.55)  # fmt: skip
                if not stays:
                    ax.plot([1.72, 1.75 + 0.083 * len(text)], [y, y], color=COLOURS["soft"], lw=0.9)
                y -= step
            y -= 0 if made else step
            ax.axhline(y + step / 2, color=COLOURS["line"], lw=0.5, alpha=0.5)
    told = "; ".join(
        f"{line} gives {', '.join(text for text, stays in made if stays) or 'nothing'}"
        for line, made in lines
    )
    return figure(fig, alt=f"A program beside the graph made of it. {told}.", **picture)


PLACES: dict[str, Any] = {"step": 0.31, "left": 0.95, "right": 3.6}


def _layout(joint: Joint) -> tuple[dict[Node, tuple[float, float]], float]:
    """Return a place for each node: forward goes down on the left, the rest up on the right."""
    step = PLACES["step"]
    left = [node for node in joint.nodes if node in joint.early and node.op != "primal"]
    right = [node for node in joint.nodes if node not in joint.early and node.op != "tangent"]
    inputs = [node for node in joint.nodes if node.op == "primal"]
    rows = max(len(left) + len(inputs), len(right) + 1)
    high = rows * step + 0.3
    at: dict[Node, tuple[float, float]] = {}
    for place, node in enumerate([*inputs, *left]):
        at[node] = (PLACES["left"], high - 0.35 - place * step)
    start = [node for node in joint.nodes if node.op == "tangent"]
    for place, node in enumerate([*start, *right]):
        at[node] = (PLACES["right"], 0.3 + place * step)
    return at, high


def drawn_joint(
    joint: Joint,
    roles: Mapping[str, str],
    notes: Mapping[str, str],
    *,
    again: Sequence[str] = (),
    apart: bool = False,
    **picture: Any,
) -> Display:
    """Draw a joint graph, with a colour and a note for some of its nodes.

    :param again: names of nodes that are computed a second time, drawn in a third column.
    :param apart: leave out the arrows between the passes that the cut removes.
    """
    at, high = _layout(joint)
    with style():
        fig, ax = _page(high)
        small = (1.15, 0.23)
        lower = 2.2 * PLACES["step"]  # below the arrows of what is kept
        copies = {
            node: (2.28, at[node][1] - lower)
            for node in joint.nodes
            if node.name in again and apart
        }
        for node in joint.nodes:
            for user in dict.fromkeys(node.users):
                start, end = at[node], at[user]
                if start[0] == end[0]:
                    near = abs(start[1] - end[1]) < PLACES["step"] * 1.5
                    sign = -1 if start[0] < 2 else 1
                    if near:
                        way = 0.115 if start[1] < end[1] else -0.115
                        arrow(ax, (start[0], start[1] + way), (end[0], end[1] - way), "soft")
                    else:
                        x = start[0] + sign * small[0] / 2
                        arrow(ax, (x, start[1]), (x, end[1]), "soft", bend=0.35)
                else:
                    source = copies.get(node, start)
                    role = "e" if roles.get(node.name) == "e" else "soft"
                    arrow(ax, (source[0] + small[0] / 2 * (0.85 if node in copies else 1),
                                source[1]), (end[0] - small[0] / 2, end[1]), role)  # fmt: skip
        for node, place in copies.items():
            box(ax, place, (small[0] * 0.85, small[1]), node.op, "c")
            for arg in node.args:
                source = copies.get(arg, at[arg])
                if arg in copies:
                    arrow(ax, (source[0], source[1] - 0.13), (place[0], place[1] + 0.13), "c")
                else:
                    arrow(ax, (source[0] + small[0] / 2, source[1]),
                           (place[0] - small[0] / 2 * 0.85, place[1]), "e")  # fmt: skip
        for node in joint.nodes:
            role = roles.get(node.name, "a" if node in joint.early else "b")
            shown = node.name.replace("primals_", "input ").replace("tangents_1", "gradient in")
            shown = shown if node.op in ("primal", "tangent") else node.op
            if node.name in notes:
                shown += f"  {notes[node.name]}"
            tint = 0.45 if node.name in roles else 0.15
            box(ax, at[node], (1.25 if node.name in notes else small[0], small[1]), shown, role,
                tint=tint, fontsize=9.5)  # fmt: skip
    marked = ", ".join(f"{name}" for name in roles)
    again_text = f" Computed again: {', '.join(again)}." if again else ""
    return figure(
        fig,
        alt="Joint graph: forward calls "
        + ", ".join(n.op for n in joint.nodes if n in joint.early and n.op != "primal")
        + "; the others "
        + ", ".join(n.op for n in joint.nodes if n not in joint.early and n.op != "tangent")
        + f". Marked: {marked or 'nothing'}.{again_text}",
        **picture,
    )


def splitting(joint: Joint) -> list[tuple[Display, str]]:
    """Return the states of a cut: the graph, what may not be done, the prices, cut, two graphs."""
    no = banned(joint)
    pipes = network(joint)
    price = {
        node.name: pipes[f"{node.name}.in", f"{node.name}.out"]
        for node in joint.nodes
        if node not in joint.late and joint.distance[node] < 100
    }
    cut = kept(joint)
    held, forward, backward = split(joint, cut)
    again = [name for name in backward if name in forward]
    total = sum(price[name] for name in held)
    return [
        (drawn_joint(joint, {}, {}), "The joint graph: your operators in blue, on the left. "
         "The others, in orange, are needed by no result."),
        (drawn_joint(joint, {node.name: "f" for node in no}, {}),
         "The pink ones may not be computed again: inputs, dear operators, and sums, "
         "which are small to keep."),
        (drawn_joint(joint, {}, {name: f"{wide:.0f}" for name, wide in price.items()}),
         "Keeping a value has a price: its bytes, more if it is far from the backward pass, "
         "and twice that if a loop would not have stored it anyway."),
        (drawn_joint(joint, dict.fromkeys(held, "e"), {k: f"{price[k]:.0f}" for k in held}),
         f"The cheapest cut keeps {', '.join(held)}, for {total:.0f}."),
        (drawn_joint(joint, dict.fromkeys(held, "e"), {}, again=again, apart=True),
         f"Two graphs. What backward wants and does not get, it computes again, in green: "
         f"{', '.join(again) or 'nothing'}."),
    ]  # fmt: skip


def layers(rows: Sequence[tuple[str, str, str]], **picture: Any) -> Display:
    """Draw what runs around the graphs at a call and at backward, from outside to inside.

    :param rows: part, what it does, and its role as a colour.
    """
    high = 0.46 * len(rows) + 0.1
    with style():
        fig, ax = _page(high)
        for place, (part, does, role) in enumerate(rows):
            y = high - 0.28 - 0.46 * place
            box(ax, (0.95, y), (1.75, 0.36), part, role)
            ax.text(1.95, y, does, va="center", fontsize=9.5)
    told = "; ".join(f"{part}: {does}" for part, does, _ in rows)
    return figure(fig, alt=f"What runs at a call, in order. {told}.", **picture)


def bars(found: Mapping[str, tuple[int, int]], **picture: Any) -> Display:
    """Draw bytes kept and operators run in backward, for each way to cut."""
    import matplotlib.pyplot as plt

    names = list(found)
    with style():
        fig, axes = plt.subplots(1, 2, figsize=(WIDE, 2.6), sharey=True)
        for ax, values, role, title in (
            (axes[0], [found[name][0] / 1024 for name in names], "a", "KiB kept"),
            (axes[1], [found[name][1] for name in names], "b", "calls in backward"),
        ):
            ax.barh(range(len(names)), values, color=COLOURS[role], height=0.62)
            ax.set_title(title, fontsize=10.5)
            ax.set(yticks=range(len(names)))
            ax.set_yticklabels(names, fontsize=10)
            ax.set_xlim(0, max(values) * 1.25)
            ax.grid(visible=False)
            ax.tick_params(length=0)
            for place, value in enumerate(values):
                ax.text(value, place, f" {value:.0f}", va="center", fontsize=10)
            ax.set(xticks=[])
        axes[0].invert_yaxis()
    told = "; ".join(f"{name}: {kept} bytes, {ran} calls" for name, (kept, ran) in found.items())
    return figure(fig, alt=f"Bytes kept and calls in backward. {told}.", **picture)
