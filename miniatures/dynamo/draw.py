"""Pictures of one frame: its path, its guards, the pieces of its translation."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from insidetorch.display import Display
from insidetorch.show.figures import COLOURS, figure, graph, style
from miniatures.dynamo.watch_trace import Moment

INK, SOFT, LINE, NOW, GRAPH, GUARD, STACK = (
    COLOURS[role] for role in ("ink", "soft", "line", "b", "a", "c", "e")
)
_ROW = 0.2
_LEAVES = {
    "TENSOR_MATCH": "a tensor like this one",
    "TYPE_MATCH": "type {kind}",
    "ID_MATCH": "the same object",
    "EQUALS_MATCH": "equals {value}",
    "CONSTANT_MATCH": "equals {value}",
    "LENGTH_CHECK": "length {value}",
    "DICT_CONTAINS": "no forward of its own",
    "GLOBAL_STATE": "grad mode, autocast, …",
    "DEFAULT_DEVICE": "default device",
    "LAMBDA_GUARD": "hooks on saved tensors",
    "TORCH_FUNCTION_MODE_STACK": "function modes",
}


def moment(now: Moment, code: dict[int, str], stored: Sequence[str] = ()) -> Display:
    """Draw one moment: the function's bytecode on the left, what Dynamo has in hand on the right.

    :param code: the function's instructions by offset.
    :param stored: what is stored at the end; empty while Dynamo is at work.
    """
    import matplotlib.pyplot as plt

    rows = max(len(code), 23)
    width, high = 5.6, rows * _ROW + 0.35
    with style():
        fig = plt.figure(figsize=(width, high))
        fig.set_layout_engine("none")
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(high, 0))
        ax.axis("off")

        def text(x: float, y: float, words: str, colour: str, **more: Any) -> None:
            ax.text(x, y, words, color=colour, va="center", fontsize=10, **more)

        text(0.1, 0.14, "bytecode", SOFT)
        for row, (offset, words) in enumerate(code.items()):
            y = 0.4 + _ROW * row
            here = offset == now.at and not stored
            if here:
                ax.axhspan(y - 0.1, y + 0.1, 0.0, 2.72 / width, color=NOW, alpha=0.22, lw=0)
            colour = INK if offset <= now.at else LINE
            words = words.replace("_FORWARD", "")
            text(0.1, y, ("▸ " if here else "  ") + words, colour,
                 fontweight="bold" if here else "normal")  # fmt: skip
        y = 0.14
        panes = (
            ("stack, the top last", now.stack, STACK),
            ("graph", now.graph, GRAPH),
            ("guards", now.guards, GUARD),
            ("stored beside the code", stored, NOW),
        )
        for (title, items, colour), room in zip(panes, (4, 6, 4, 4), strict=True):
            if title.startswith("stored") and not stored:
                continue
            text(2.9, y, title, SOFT)
            ax.plot([2.9, width - 0.05], [y + 0.11] * 2, color=colour, linewidth=1.2)
            for row, item in enumerate(items or ["nothing"]):
                text(2.95, y + 0.24 + _ROW * row, item, INK if items else LINE)
            y += 0.24 + _ROW * room
    said = "; ".join(f"{title}: {', '.join(items) or 'nothing'}" for title, items, _ in panes)
    doing = "at its end" if stored else f"at {code.get(now.at, '')}"
    return figure(fig, alt=f"Dynamo {doing}. {said}.")


def tree(rows: Iterable[tuple[int, str, str]], without: str = "", **picture: Any) -> Display:
    """Draw an entry's guards: boxes fetch a value, lines in them compare it.

    :param rows: depth, kind and text of each node and guard, as `watch.guards` reads them.
    :param without: an expression; values whose source matches it are left out, with all below.
    """
    names: list[str] = []
    parent: list[int] = []
    leaves: list[list[str]] = []
    at: dict[int, int] = {}
    dropped = 99
    for depth, kind, text in rows:
        if depth > dropped:
            continue
        dropped = 99
        if "Manager" in kind:
            source = text.removeprefix("source=") or "a call"
            if without and re.search(without, source):
                dropped = depth
                continue
            at[depth] = len(names)
            names.append(source)
            parent.append(at.get(depth - 1, -1))
            leaves.append([])
        elif kind != "DIMENSION_DYNAMIC_MARKING_GUARD":
            leaves[at[depth - 1]].append(_leaf(kind, text))
    lines = ["digraph {", "rankdir=LR; ranksep=0.25; nodesep=0.12; margin=0.02;",
             "node [shape=box, style=rounded, margin=\"0.08,0.04\"];"]  # fmt: skip
    for n, (name, found) in enumerate(zip(names, leaves, strict=True)):
        shown = html.escape(_step(name, names[parent[n]] if parent[n] >= 0 else ""))
        label = f"<B>{shown}</B>" + "".join(
            f'<BR/><FONT COLOR="{GUARD}">{html.escape(leaf)}</FONT>' for leaf in found
        )
        lines.append(f"n{n} [label=<{label}>];")
        if parent[n] >= 0:
            lines.append(f"n{parent[n]} -> n{n} [arrowsize=0.6];")
    said = "; ".join(f"{name}: {', '.join(found) or 'only fetched'}"
                     for name, found in zip(names, leaves, strict=True))  # fmt: skip
    return graph("\n".join([*lines, "}"]), alt=f"A tree of guards. {said}.", **picture)


def _leaf(kind: str, text: str) -> str:
    words = _LEAVES.get(kind, kind)
    named = re.search(r"<class '([\w.]+)'>", text)
    value = re.search(r"== (.+)$", text)
    return words.format(
        kind=named[1].rsplit(".", 1)[-1] if named else "", value=value[1][:14] if value else ""
    )


def _step(source: str, before: str) -> str:
    """Say how a value is fetched from the one before it."""
    if before and source.startswith(before) and before != "a call":
        rest = source[len(before) :]
        name = re.sub(r"^\['__(?:import_)?(?:torch_dot_nn_dot_modules_dot_)?(\w+?)(?:___\d+)?'\]$",
                      r"\1", rest)  # fmt: skip
        return "builtins" if name == "builtins_dict" else name
    return {"G": "globals"}.get(source, re.sub(r"^L\['(\w+)'\]$", r"\1", source))


def pieces(parts: Sequence[tuple[str, str, str]], edges: Sequence[tuple[int, int, str]],
           alt: str, across: bool = False, **picture: Any) -> Display:  # fmt: skip
    """Draw what a frame became: boxes of three kinds, and what leads where.

    :param parts: kind (``graph``, ``python`` or ``frame``), title and text of each box.
    :param edges: from which box to which, and the words at the arrow.
    :param across: from left to right.
    """
    colours = {"graph": GRAPH, "python": NOW, "frame": SOFT}
    lines = ["digraph {", f"rankdir={'LR' if across else 'TB'};",
             "ranksep=0.3; nodesep=0.25; margin=0.02;",
             "node [shape=box, style=rounded, margin=\"0.1,0.05\"];"]  # fmt: skip
    for n, (kind, title, text) in enumerate(parts):
        body = "".join(f"<BR/>{html.escape(line)}" for line in text.splitlines())
        lines.append(f'n{n} [color="{colours[kind]}", penwidth=1.6, '
                     f"label=<<B>{html.escape(title)}</B>{body}>];")  # fmt: skip
    for first, second, words in edges:
        lines.append(f'n{first} -> n{second} [label="  {words}", arrowsize=0.7];')
    return graph("\n".join([*lines, "}"]), alt=alt, **picture)


CYCLE = """digraph { node [shape=box, style=rounded]; ranksep=0.25; nodesep=0.3;
call [label="a Python function\\nis about to run"];
check [label="stored guards\\nthat hold?"];
trace [label="go through its\\ninstructions with symbols"];
store [label="store graph, guards\\nand new instructions"];
run [label="run the stored\\ninstructions"];
part [label="compiled graph"]; back [label="return"];
plain [label="run it as it is"];
rest [label="Python does the step\\nthat could not be traced"];
resume [label="the rest is a function:\\nagain from the top"];
call -> check; {rank=same; check -> trace [label="no"]} check -> run [label="yes"];
trace -> plain [label="given up"]; trace -> store;
store -> run; run -> part;
part -> back [label="no break"]; part -> rest [label="break"];
{rank=same; rest -> resume} }"""
SAID = {
    "LOAD_FAST x": "Dynamo begins. Nothing is in the graph, nothing is relied on.",
    "LOAD_METHOD sin": "`x` is on the stack, but nobody has looked at it.",
    "LOAD_ATTR sin": "`x` is on the stack, but nobody has looked at it.",
    "STORE_FAST y": "The call went into the graph. Its result is a symbol.",
    "LOAD_FAST y": "The symbol has its name; the stack is empty again.",
    "COMPARE_OP >": "`sum` is in the graph too. `k` is loaded and not looked at.",
}
"""What the chapter says of the moments of its `f`, by the instruction that comes next."""


def told(now: Moment, code: dict[int, str]) -> str:
    """Say in a sentence what a moment of the chapter's `f` shows."""
    words = code[now.at]
    if "JUMP" in words:
        return (
            "The comparison used `k`: its value is in the graph, and a guard. The jump needs data "
            "that is not there."
        )
    if words.startswith("CALL") and len(now.graph) == 1:
        return (
            "The method was asked for, so `x` was looked at: it is an input of the graph now, and "
            "a guard speaks of it."
        )
    return SAID.get(words, f"Next: `{words}`.")


def cycle(**picture: Any) -> Display:
    """Draw what happens to one call of a compiled function.

    :param picture: caption and name.
    """
    return graph(
        CYCLE,
        alt="A function about to run: if stored guards hold, the stored instructions "
        "run. If not, its instructions are gone through with symbols, and graph, "
        "guards and new instructions are stored; or it is given up and runs as it "
        "is. The stored instructions call the compiled graph and return, or after a "
        "break do the step that could not be traced, then call a function for the "
        "rest, which begins at the top.",
        **picture,
    )
