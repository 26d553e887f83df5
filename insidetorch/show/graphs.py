"""Drawing the autograd graph that PyTorch built: its nodes, edges, leaves and saved tensors."""

from __future__ import annotations

import html
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display, escape
from insidetorch.errors import BookError
from insidetorch.private.graph import input_metadata, saved_values, sequence_nr
from insidetorch.show.figures import COLOURS, graph

if TYPE_CHECKING:
    import torch

LIMIT = 120
"""A graph of more nodes than this is refused: nobody reads it."""


@dataclass(frozen=True)
class GraphNode:
    """One node of an autograd graph.

    :param name: the class, such as ``MulBackward0``, without its namespace.
    :param sequence: the number it got when it was made; None for `AccumulateGrad`.
    :param shapes: the shape of each gradient it takes; for a leaf, the leaf's.
    :param tensors: names of the tensors it made in the forward pass; for a leaf, the leaf's.
    :param leaf: whether it accumulates into a leaf.
    :param order: its place in a backward pass, from 1; None if not asked for.
    :param saved: what it kept of the forward pass, as ``name (shape)``.
    :param edges: (index of the next node, which of that node's gradients this one feeds).
    """

    name: str
    sequence: int | None
    shapes: tuple[tuple[int, ...], ...]
    tensors: tuple[str, ...]
    leaf: bool
    order: int | None
    saved: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Graph:
    """An autograd graph: nodes in the order a walk from the roots meets them, and the roots."""

    nodes: tuple[GraphNode, ...]
    roots: tuple[int, ...]


def autograd_graph(
    outputs: torch.Tensor | Sequence[torch.Tensor],
    *,
    names: Mapping[str, torch.Tensor] | None = None,
    order: Iterable[Any] | None = None,
    saved: bool = False,
) -> Display:
    """Draw the graph that a backward pass from `outputs` walks.

    Arrows point the way gradients flow: from the outputs to the leaves. ``#`` is a node's
    sequence number; a node made later has a greater one.

    :param outputs: one tensor or several, each with a ``grad_fn``.
    :param names: tensors by the name to show for them, such as ``{"x": x}`` or
        ``dict(model.named_parameters())``; the tensors need not be leaves.
    :param order: autograd nodes in the order a backward pass took them, such as
        `insidetorch.execution_order` gives it; each is drawn with its place.
    :param saved: show what each node kept of the forward pass.
    :raises BookError: if an output has no graph, a node of `order` is not in it, or it has more
        than `LIMIT` nodes.
    """
    found = read(outputs, names=names, order=order, saved=saved)
    tree = as_text(found)
    if shutil.which("dot") is None and not os.environ.get("INSIDETORCH_BUILD"):
        note = "Drawn as text: for a picture install Graphviz, which brings the command dot."
        return Display(
            f'<div class="it"><pre class="it-tree">{escape(tree)}</pre><p>{escape(note)}</p></div>',
            f"{tree}\n{note}",
        )
    picture = graph(as_dot(found), alt=describe(found))
    key = "# is the sequence number of a node, […] the shape of a value that its operation returned"
    key += "; circled, its turn in the backward pass." if order is not None else "."
    return Display(f'{picture.html}<p class="it it-key">{escape(key)}</p>', tree)


def read(
    outputs: torch.Tensor | Sequence[torch.Tensor],
    *,
    names: Mapping[str, torch.Tensor] | None = None,
    order: Iterable[Any] | None = None,
    saved: bool = False,
) -> Graph:
    """Return the graph behind `outputs` as data. Parameters and errors: `autograd_graph`."""
    roots = [_root(tensor) for tensor in _as_list(outputs)]
    nodes = _walk(roots)
    index = {node: i for i, node in enumerate(nodes)}
    places = _places(order, index)
    labels = _labels(names or {}, index)
    return Graph(
        tuple(
            GraphNode(
                name=_short(node),
                sequence=sequence_nr(node),
                shapes=_shapes(node),
                tensors=tuple(labels.get(i, ())),
                leaf=_is_leaf(node),
                order=places.get(i),
                saved=_saved(node) if saved else (),
                edges=tuple((index[n], number) for n, number in node.next_functions if n),
            )
            for i, node in enumerate(nodes)
        ),
        tuple(dict.fromkeys(index[root] for root in roots)),
    )


def _as_list(outputs: torch.Tensor | Sequence[torch.Tensor]) -> list[torch.Tensor]:
    import torch

    found = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    if not found or not all(isinstance(tensor, torch.Tensor) for tensor in found):
        raise BookError(
            f"autograd_graph takes a tensor or a sequence of tensors, not {outputs!r:.60}: "
            "pass the result of a forward computation."
        )
    return found


def _root(tensor: torch.Tensor) -> Any:
    from torch.autograd.graph import get_gradient_edge

    if not tensor.requires_grad:
        raise BookError(
            f"A tensor of shape {tuple(tensor.shape)} given to autograd_graph has no autograd "
            "graph: compute it from a tensor with requires_grad=True, outside torch.no_grad()."
        )
    return get_gradient_edge(tensor).node


def _walk(roots: Sequence[Any]) -> list[Any]:
    """Return the nodes reached from `roots`, each once, in depth-first order.

    The list keeps the Python wrappers alive, so that a node stays one object while we look.
    """
    seen: dict[Any, None] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        if len(seen) > LIMIT:
            raise BookError(
                f"The autograd graph has more than {LIMIT} nodes, too many to draw: "
                "draw a smaller computation, or one layer of it."
            )
        stack.extend(n for n, _ in reversed(node.next_functions) if n is not None)
    return list(seen)


def _places(order: Iterable[Any] | None, index: Mapping[Any, int]) -> dict[int, int]:
    places: dict[int, int] = {}
    for place, node in enumerate(order or (), start=1):
        if node not in index:
            raise BookError(
                f"Node {place} of the order ({_short(node)}) is not in the graph of these "
                "outputs: record the order in a backward pass from the same outputs."
            )
        places.setdefault(index[node], place)
    return places


def _labels(names: Mapping[str, torch.Tensor], index: Mapping[Any, int]) -> dict[int, list[str]]:
    from torch.autograd.graph import get_gradient_edge

    labels: dict[int, list[str]] = {}
    for name, tensor in names.items():
        if tensor.requires_grad:
            node = get_gradient_edge(tensor).node
            if node in index:
                labels.setdefault(index[node], []).append(name)
    return labels


def _short(node: Any) -> str:
    name = node.name() if hasattr(node, "name") else type(node).__name__
    return str(name).rsplit("::", 1)[-1]


def _is_leaf(node: Any) -> bool:
    return _short(node) == "AccumulateGrad"


def _shapes(node: Any) -> tuple[tuple[int, ...], ...]:
    if _is_leaf(node):
        return (tuple(node.variable.shape),)
    return tuple(tuple(entry.shape) for entry in input_metadata(node))


def _saved(node: Any) -> tuple[str, ...]:
    import torch

    try:
        values = saved_values(node)
    except RuntimeError:
        return ("freed",)
    found = []
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            found.append(f"{name} {shape_text(tuple(value.shape))}")
        elif isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
            found.append(f"{name} ({len(value)} tensors)")
    return tuple(found)


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as text: ``[3, 4]``, or ``scalar`` for no dimensions."""
    return str(list(shape)) if shape else "scalar"


def circled(number: int) -> str:
    """Return a positive number as one circled character where Unicode has it: ① to ㊿."""
    for first, last, start in ((1, 20, 0x2460), (21, 35, 0x3251), (36, 50, 0x32B1)):
        if first <= number <= last:
            return chr(start + number - first)
    return f"({number})"


def as_dot(found: Graph) -> str:
    """Return the graph in Graphviz's language, in the book's colours."""
    import graphviz

    drawing = graphviz.Digraph(
        graph_attr={"rankdir": "TB", "nodesep": "0.25", "ranksep": "0.35", "margin": "0.02"},
        node_attr={"shape": "box", "style": "filled", "fillcolor": COLOURS["pane"]},
        edge_attr={"arrowsize": "0.7"},
    )
    for i, node in enumerate(found.nodes):
        look = {"color": COLOURS["soft"]}
        if node.leaf:
            look = {"color": COLOURS["c"], "style": "filled,rounded", "penwidth": "1.6"}
        elif i in found.roots:
            look = {"color": COLOURS["a"], "penwidth": "1.6"}
        drawing.node(str(i), label=_html_label(node), **look)
    for i, node in enumerate(found.nodes):
        for target, number in node.edges:
            several = len(found.nodes[target].shapes) > 1
            drawing.edge(str(i), str(target), **({"label": f" {number}"} if several else {}))
    return str(drawing.source)


def _html_label(node: GraphNode) -> str:
    soft = COLOURS["soft"]
    place = f'<FONT COLOR="{COLOURS["b"]}">{circled(node.order)}</FONT> ' if node.order else ""
    rows = [f"{place}<B>{html.escape(_title(node))}</B>"]
    rows += [
        f'<FONT COLOR="{soft}" POINT-SIZE="11">{html.escape(line)}</FONT>' for line in _lines(node)
    ]
    return f"<{'<BR/>'.join(rows)}>"


def _title(node: GraphNode) -> str:
    if node.leaf and node.tensors:
        return ", ".join(node.tensors)
    return node.name


def _lines(node: GraphNode) -> list[str]:
    shapes = ", ".join(shape_text(shape) for shape in node.shapes)
    if node.leaf:
        kind = f"{node.name}  {shapes}" if node.tensors else shapes
        return [kind, *(f"saves {item}" for item in node.saved)]
    made = f"{', '.join(node.tensors)}: {shapes}" if node.tensors else shapes
    number = [] if node.sequence is None else [f"#{node.sequence}"]
    return ["  ".join([*number, made]), *(f"saves {item}" for item in node.saved)]


def as_text(found: Graph) -> str:
    """Return the graph as an indented tree; a node met again is shown by its mark."""
    fed = [target for node in found.nodes for target, _ in node.edges] + list(found.roots)
    shared = [i for i in range(len(found.nodes)) if fed.count(i) > 1]
    marks = {node: f"[{number}]" for number, node in enumerate(shared, start=1)}
    lines: list[str] = []
    done: set[int] = set()

    def put(i: int, lead: str, branch: str, below: str) -> None:
        node = found.nodes[i]
        place = f"{circled(node.order)} " if node.order else ""
        mark = f" {marks[i]}" if i in marks else ""
        if i in done:
            lines.append(f"{lead}{branch}{place}{_title(node)}  ↑{marks[i]}")
            return
        done.add(i)
        detail = "  ".join(_lines(node))
        lines.append(f"{lead}{branch}{place}{_title(node)}{mark}  {detail}".rstrip())
        for n, (target, _) in enumerate(node.edges):
            last = n == len(node.edges) - 1
            put(target, lead + below, "└─ " if last else "├─ ", "   " if last else "│  ")

    for root in found.roots:
        put(root, "", "", "")
    return "\n".join(lines)


def describe(found: Graph) -> str:
    """Return one sentence that says what the drawing shows, for those who do not see it."""
    edges = "; ".join(
        f"{_title(node)} to {' and '.join(_title(found.nodes[target]) for target, _ in node.edges)}"
        for node in found.nodes
        if node.edges
    )
    count = len(found.nodes)
    return f"Autograd graph of {count} node{'s' * (count != 1)}: {edges or _title(found.nodes[0])}."
