"""The C++ that autograd's code generator writes for one operator, made again from the wheel."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from insidetorch.display import Display
from insidetorch.errors import BookError
from insidetorch.show.listings import listing


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
    """Show generated C++, its long lines broken; see `insidetorch.listing`."""
    note = "written by torchgen from the installed derivatives.yaml, long lines broken"
    return listing(code, caption, note=note, start=start, end=end)


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
    native, tags, packaged = tables()
    parsed = _torchgen("torchgen.gen").parse_native_yaml(native, tags).native_functions
    infos, _ = _torchgen("torchgen.packaged.autograd.load_derivatives").load_derivatives(
        f"{packaged}/autograd/derivatives.yaml", native, tags
    )
    matched = _torchgen("torchgen.api.autograd").match_differentiability_info(parsed, infos)
    return {str(one.func.func.name): one for one in matched}


def tables() -> tuple[str, str, Path]:
    """Return the paths of the installed `native_functions.yaml` and `tags.yaml`, and of the folder
    that the generator's other files are in."""
    packaged = Path(str(_torchgen("torchgen").__file__)).parent / "packaged"
    native = packaged / "ATen" / "native"
    return str(native / "native_functions.yaml"), str(native / "tags.yaml"), packaged


def _torchgen(module: str) -> Any:
    return import_module(module)
