"""The C++ that autograd's code generator writes for one operator, made again from the wheel."""

from __future__ import annotations

import re
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from insidetorch.display import Display, escape
from insidetorch.errors import BookError


def recording_function(operator: str) -> str:
    """Return `VariableType::…` of an operator such as ``mul.Tensor``, without debug-only checks."""
    function = _function(operator)
    with _torchgen("torchgen.context").native_function_manager(function.func):
        written = _torchgen("torchgen.packaged.autograd.gen_variable_type").gen_variable_type_func(
            function
        )
    text = "\n".join(written["type_derived_method_definitions_Default"])
    text = re.sub(r"[ \t]*#ifndef NDEBUG\n.*?#endif\n", "", text, flags=re.DOTALL)
    return text.replace("[[maybe_unused]] ", "").strip()


def node_struct(operator: str) -> str:
    """Return the declaration of an operator's node, such as ``struct MulBackward0``."""
    return _node(operator, "FUNCTION_DECLARATION")


def node_apply(operator: str) -> str:
    """Return the definitions of the functions of an operator's node."""
    return _node(operator, "FUNCTION_DEFINITION")


def shipped_header() -> str:
    """Return the header of all nodes, `torch/csrc/autograd/generated/Functions.h`, of the wheel."""
    place = Path(torch.__file__).parent / "include/torch/csrc/autograd/generated/Functions.h"
    if not place.is_file():
        raise BookError(f"{place.name} is not in this torch: install a release wheel of PyTorch.")
    return place.read_text(encoding="utf-8")


def show(code: str, caption: str, *, start: str = "", end: str = "") -> Display:
    """Show generated C++, its long lines broken.

    :param caption: what it is, such as the name of the function.
    :param start: begin with the first line that holds this text.
    :param end: stop at the first line, from there on, that holds this text.
    :raises BookError: a text is not in the code.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import CppLexer

    lines = code.splitlines()
    first = _line(lines, start, caption) if start else 0
    last = first + _line(lines[first:], end, caption) if end else len(lines) - 1
    chosen = "\n".join(_broken(line) for line in lines[first : last + 1])
    coloured = highlight(chosen, CppLexer(stripnl=False), HtmlFormatter(nowrap=True)).rstrip("\n")
    note = "written by torchgen from the installed derivatives.yaml, long lines broken"
    html = (
        f'<figure class="it it-excerpt"><figcaption><span class="it-symbol">{escape(caption)}'
        f"</span><span>{note}</span></figcaption>"
        f'<div class="highlight"><pre class="it-code" tabindex="0" role="region" '
        f'aria-label="{escape(caption)}">{coloured}</pre></div></figure>'
    )
    return Display(html, f"{caption} · {note}\n{chosen}")


def _broken(line: str, width: int = 80) -> str:
    """Return a line of C++ as lines of at most `width` characters, broken at spaces."""
    indent = line[: len(line) - len(line.lstrip())]
    further = indent + ("// " if line.lstrip().startswith("//") else "    ")
    parts = textwrap.wrap(
        line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)


def _line(lines: list[str], text: str, caption: str) -> int:
    for number, line in enumerate(lines):
        if text in line:
            return number
    raise BookError(f"The generated {caption} has no line with {text!r}: choose another text.")


def _node(operator: str, template: str) -> str:
    functions = _torchgen("torchgen.packaged.autograd.gen_autograd_functions")
    info = _function(operator).info["Default"]
    return str(functions.process_function(info, getattr(functions, template))).strip()


def _function(operator: str) -> Any:
    found = _differentiable().get(operator)
    if found is None or not found.info:
        raise BookError(f"derivatives.yaml has no entry for {operator!r}: name one, as mul.Tensor.")
    return found


@cache
def _differentiable() -> dict[str, Any]:
    """Return every operator that the generator knows, with its derivatives, by name."""
    packaged = Path(_torchgen("torchgen").__file__).parent / "packaged"
    native, tags = (
        str(packaged / f"ATen/native/{name}.yaml") for name in ("native_functions", "tags")
    )
    parsed = _torchgen("torchgen.gen").parse_native_yaml(native, tags).native_functions
    infos, _ = _torchgen("torchgen.packaged.autograd.load_derivatives").load_derivatives(
        str(packaged / "autograd/derivatives.yaml"), native, tags
    )
    matched = _torchgen("torchgen.api.autograd").match_differentiability_info(parsed, infos)
    return {str(one.func.func.name): one for one in matched}


def _torchgen(module: str) -> Any:
    return import_module(module)
