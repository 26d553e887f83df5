"""The derivatives.yaml of the installed torch, read as rules whose formulas Python can evaluate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torchgen
import yaml
from torch import Tensor

PARTS: dict[str, Callable[[Tensor], Any]] = {
    "sym_sizes": lambda tensor: tensor.shape,
    "sym_numel": lambda tensor: tensor.numel(),
    "scalar_type": lambda tensor: tensor.dtype,
}
"""What a formula may ask of a tensor without the tensor being kept: these are read in advance."""


@dataclass(frozen=True)
class Rule:
    """An entry of derivatives.yaml: a node's name, a formula for each input."""

    node: str
    formulas: dict[str, str]

    def users(self, name: str) -> list[str]:
        """Return the inputs whose gradient needs `name`."""
        word = re.compile(rf"\b{name}\b")
        return [arg for arg, text in self.formulas.items() if word.search(text)]


@cache
def rules() -> dict[str, Rule]:
    """Return the rules by operator, such as ``mul.Tensor``.

    A node is called after the operator without its overload, and numbered: the first entry for
    ``mul`` makes ``MulBackward0``, the second ``MulBackward1``.
    """
    path = Path(torchgen.__file__).parent / "packaged/autograd/derivatives.yaml"
    found: dict[str, Rule] = {}
    count: Counter[str] = Counter()
    for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        operator, _, signature = entry["name"].partition("(")
        arguments = re.findall(r"(\w+)(?:=[^,)]*)?(?=,|\)$)", signature.rpartition(" -> ")[0])
        for key, lines in entry.get("dispatch", {"Default": entry}).items():
            formulas = {
                name: in_python(text)
                for names, text in lines.items()
                for name in names.split(", ")
                if name in arguments and text.strip() != "non_differentiable"
            }
            if formulas:
                base = "".join(part.title() for part in operator.partition(".")[0].split("_"))
                base = f"{base}Backward".replace("ForwardBackward", "Backward")
                base += "" if key == "Default" else key
                if key == "Default":
                    ordered = sorted(formulas.items(), key=lambda pair: arguments.index(pair[0]))
                    found[operator] = Rule(f"{base}{count[base]}", dict(ordered))
                count[base] += 1
    return found


def in_python(formula: str) -> str:
    """Turn a C++ formula into Python; ``self.sym_sizes()`` becomes the name ``self_sym_sizes``."""
    text = re.sub(rf"\b(\w+)\.({'|'.join(PARTS)})\(\)", r"\1_\2", formula)
    for old, new in {"at::": "", "_symint": "", "alpha.conj()": "alpha", "true": "True"}.items():
        text = text.replace(old, new)
    return text


def overload(operator: str) -> Any:
    """Return an ATen operator by its name, such as ``mul.Tensor``, or ``sin`` for the default."""
    base, _, name = operator.partition(".")
    return getattr(getattr(torch.ops.aten, base), name or "default")


class Names(dict[str, Any]):
    """The names a formula sees: what was saved, the helpers below, and every ATen operator."""

    def __missing__(self, name: str) -> Any:
        return HELPERS.get(name) or getattr(torch.ops.aten, name)


def mul_tensor_backward(grad: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the gradient of one factor of a real product."""
    return grad * other.conj()


def sum_backward(grad: Tensor, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    """Return the gradient of a sum over `dims`."""
    for dim in [] if keepdim else sorted(dim % len(shape) for dim in dims):
        grad = grad.unsqueeze(dim)
    return grad.expand(shape)


HELPERS = {
    "handle_r_to_c": lambda dtype, grad: grad,  # matters to complex numbers only
    "masked_fill_inplace_if_safe": torch.masked_fill,  # in formulas of 2.15
    "maybe_multiply": lambda grad, number: grad if number == 1 else grad * number,
    "mul_tensor_backward": mul_tensor_backward,
    "sum_backward": sum_backward,
    "unbind_backward": torch.stack,
}
"""The helpers of FunctionsManual.cpp that the programs of this book need, for real numbers."""
