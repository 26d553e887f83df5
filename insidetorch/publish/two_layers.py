"""A page's two layers: what a cell demonstrates is seen, and what proves it is folded below.

A code cell of a chapter imports, demonstrates, shows excerpts and checks sentences. The page shows
the demonstration. Imports fold into a line "Setup", those of a check with the check; the code of a
check folds into the line that the check makes; a statement that only shows an excerpt is not seen,
since the excerpt's head says what it is. The notebook that readers take along is as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from insidetorch.records import RECORD_MIME

Layer = Literal["setup", "seen", "excerpt", "check"]
CHECKS = frozenset({"claim", "verdict"})
MARK = "# check"
"""A line of its own: what follows in the cell only prepares a check and folds with it."""
_BLOCK = ast.If | ast.With | ast.Try | ast.For
_TAGS_WITHOUT_LAYERS = frozenset({"it-cuda", "hide-input", "remove-input", "hide-cell"})


@dataclass(frozen=True)
class Part:
    """Statements of a cell that stand together in one layer.

    :param layer: where the page has them.
    :param text: their lines, with the comments above them.
    """

    layer: Layer
    text: str


def parts(source: str) -> list[Part]:
    """Return the statements of a cell, each with its layer; one seen part if it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [Part("seen", source)]
    lines, found, begun, folding = source.splitlines(), list[Part](), 0, False
    for place, node in enumerate(tree.body):
        last = place + 1 == len(tree.body)
        end = len(lines) if last else (node.end_lineno or begun)
        own = lines[begun:end]
        lead = lines[begun : node.lineno - 1]
        folding = folding or MARK in lead
        layer = _layer(node)
        if folding and layer in ("seen", "setup"):
            layer = "check"
        found.append(Part(layer, "\n".join(line for line in own if line != MARK).strip("\n")))
        begun = end
    return found


def _layer(node: ast.stmt) -> Layer:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "setup"
    if _checks(node):
        return "check"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        shown = call.args if _name(call) == "display" else [call]
        if shown and all(_name(each) == "source" for each in shown):
            return "excerpt"
        if _name(call) == "settled":
            return "excerpt"
    return "seen"


def _checks(node: ast.stmt) -> bool:
    """Tell whether a statement is a check, or a block with one in it."""
    return isinstance(node, ast.Expr | _BLOCK) and any(
        isinstance(one, ast.Expr) and _name(one.value) in CHECKS for one in ast.walk(node)
    )


def _name(node: ast.AST) -> str:
    return getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""


def layers(cells: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return, for each cell of a chapter, the cells that the page has for it.

    A cell that only prepares the check after it has none: its code folds with that check.

    :param cells: as staged, their outputs still with their records.
    """
    made: list[list[dict[str, Any]]] = []
    waiting: list[str] = []
    only = [_only_checks(cell) for cell in cells]
    for cell, checks, before_checks in zip(cells, only, [*only[1:], False], strict=True):
        if checks and before_checks and not cell.get("outputs"):
            waiting.append("\n".join(part.text for part in parts(cell["source"])))
            made.append([])
        else:
            made.append(layered(cell, waiting))
            waiting = []
    join_setups(made)
    return made


def _only_checks(cell: Mapping[str, Any]) -> bool:
    """Tell whether the page has nothing of a cell's code but what folds with a check."""
    return (
        cell["cell_type"] == "code"
        and not _TAGS_WITHOUT_LAYERS & set(cell.get("metadata", {}).get("tags") or ())
        and "check" in (found := {part.layer for part in parts(cell["source"])})
        and found <= {"check", "setup"}
    )


def layered(cell: Mapping[str, Any], prepared: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the cells that the page has for a code cell of a chapter.

    :param cell: as staged, its outputs still with their records.
    :param prepared: code of cells before it, which its check needs and folds with.
    :return: a cell "Setup" if it imports for what is seen, then the cell with what is seen, its
        outputs carrying the folded code.
    """
    tags = set(cell.get("metadata", {}).get("tags") or ())
    if cell["cell_type"] != "code" or tags & _TAGS_WITHOUT_LAYERS:
        return [dict(cell)]
    found = parts(cell["source"])
    if all(part.layer == "seen" for part in found):
        return [dict(cell)]
    if {part.layer for part in found} == {"setup", "check"}:
        found = [Part("check", part.text) for part in found]
    found = [*(Part("check", f"{text}\n") for text in prepared), *found]
    by = {
        layer: "\n".join(part.text for part in found if part.layer == layer)
        for layer in ("setup", "seen", "excerpt")
    }
    outputs = _with_checks(cell.get("outputs", ()), [p.text for p in found if p.layer == "check"])
    if by["excerpt"]:
        outputs = _folded_into_last(outputs, by["excerpt"], "its code", "it-quiet")
    made = []
    if by["setup"]:
        made.append(_hidden(cell, by["setup"], "Setup", "it-setup"))
    seen = by["seen"].strip("\n")
    if seen or outputs:
        metadata = dict(cell.get("metadata", {}))
        if not seen:
            # MyST-NB leaves out a cell without code, and with it what the cell shows.
            seen = cell["source"]
            metadata["tags"] = [*sorted(tags), "remove-input"]
        made.append({**cell, "source": seen, "outputs": outputs, "metadata": metadata})
    elif rest := "\n".join(part.text for part in found if part.layer != "setup"):
        made.append(_hidden(cell, rest, "What a later check needs", "it-prepares"))
    return made


def join_setups(cells: Sequence[list[dict[str, Any]]]) -> None:
    """Make lines "Setup" that follow each other one, in place.

    :param cells: for each cell of a chapter what `layered` made of it; the later takes the earlier
        in, so that some are left with nothing.
    """
    for before, after in pairwise(cells):
        if before and after and _is_setup(before[-1]) and _is_setup(after[0]):
            after[0]["source"] = f"{before.pop()['source']}\n{after[0]['source']}"


def _is_setup(cell: Mapping[str, Any]) -> bool:
    return "it-setup" in cell.get("metadata", {}).get("tags", ())


def _hidden(cell: Mapping[str, Any], code: str, said: str, tag: str) -> dict[str, Any]:
    """Return a cell that shows nothing but a line, which opens its code."""
    tags = [*sorted(cell.get("metadata", {}).get("tags") or ()), "hide-input", tag]
    prompts = {"code_prompt_show": said, "code_prompt_hide": said}
    return {
        **cell,
        "id": f"{cell['id']}-{tag.removeprefix('it-')}",
        "source": code,
        "outputs": [],
        "metadata": {"tags": tags, "mystnb": prompts},
    }


def _with_checks(outputs: Sequence[Mapping[str, Any]], code: Sequence[str]) -> list[dict[str, Any]]:
    """Put the lines of checks below all else, and each check's code below the line that it made.

    Where not every check made its one line, as in a loop, all code is below the last.
    """
    made = sorted(map(dict, outputs), key=lambda output: _kind(output) in CHECKS)
    lines = [at for at, output in enumerate(made) if _kind(output) in CHECKS]
    texts = _grouped(code)
    if len(texts) != len(lines):
        texts = ["\n".join(code)] if code else []
        lines = lines[-1:] or ([len(made) - 1] if made else [])
    for at, text in zip(lines, texts, strict=False):
        made[at] = _folded(made[at], text, "how this was checked", "")
    return made


def _grouped(code: Sequence[str]) -> list[str]:
    """Join what prepares a check with the check that follows it."""
    texts, waiting = [], []
    for text in code:
        waiting.append(text)
        if any(map(_checks, ast.parse(text).body)):
            texts.append("\n".join(waiting))
            waiting = []
    if waiting and texts:
        texts[-1] += "\n" + "\n".join(waiting)
    return texts


def _folded_into_last(
    outputs: Sequence[Mapping[str, Any]], code: str, said: str, kind: str
) -> list[dict[str, Any]]:
    made = [dict(output) for output in outputs]
    places = [at for at, output in enumerate(made) if "text/html" in output.get("data", {})]
    if places:
        made[places[-1]] = _folded(made[places[-1]], code, said, kind)
    return made


def _folded(output: Mapping[str, Any], code: str, said: str, kind: str) -> dict[str, Any]:
    data = dict(output.get("data", {}))
    html = data.get("text/html", "")
    html = html if isinstance(html, str) else "".join(html)
    names = f"it-how {kind}".strip()
    data["text/html"] = (
        f'{html}<details class="{names}"><summary>{said}</summary>'
        # The page's script parses it when it is opened; half of a page would be such code.
        f"<noscript>{highlighted(code)}</noscript></details>"
    )
    return {**output, "data": data}


def highlighted(code: str) -> str:
    """Return Python code as the page has that of its cells, with a button that copies it."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    html = highlight(code, get_lexer_by_name("ipython3"), HtmlFormatter(wrapcode=False))
    return f'<div class="highlight-ipython3 notranslate">{html}</div>'


def _kind(output: Mapping[str, Any]) -> str:
    record = output.get("data", {}).get(RECORD_MIME)
    return str(record.get("kind", "")) if isinstance(record, Mapping) else ""
