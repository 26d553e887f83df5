"""Random models, exported and called with sizes that fit and sizes that do not."""

from __future__ import annotations

import copy
import io
import random
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from miniatures.export.interpreter import Interpreter, Refused

STEPS = ("linear", "relu", "scale", "constant", "counter", "split", "mean", "softmax", "in place")
"""What a random model strings together; `cond` is one more, in one model of forty."""


class Drawn(nn.Module):
    """A model of random steps, with parameters, buffers, constants and writes in place."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        self.steps = [draw.choice(STEPS) for _ in range(draw.randint(1, 3))]
        if seed % 40 == 0:
            self.steps.append("cond")
        generator = torch.Generator().manual_seed(seed)
        for i, step in enumerate(self.steps):
            if step == "linear":
                layer = nn.Linear(4, 4)
                layer.weight.data = torch.randn(4, 4, generator=generator)
                layer.bias.data = torch.randn(4, generator=generator)
                self.add_module(f"linear{i}", layer)
            elif step == "scale":
                self.register_buffer(f"scale{i}", torch.randn(4, generator=generator))
            elif step == "constant":
                setattr(self, f"constant{i}", torch.randn(4, generator=generator))
            elif step == "counter":
                self.register_buffer(f"counter{i}", torch.zeros(()))

    def forward(self, x: torch.Tensor, more: dict[str, torch.Tensor]) -> dict[str, Any]:
        y = x + more["bias"]
        for i, step in enumerate(self.steps):
            if step == "linear":
                y = getattr(self, f"linear{i}")(y)
            elif step == "relu":
                y = y.relu()
            elif step == "scale":
                y = y * getattr(self, f"scale{i}")
            elif step == "constant":
                y = y + getattr(self, f"constant{i}")
            elif step == "counter":
                y = y + getattr(self, f"counter{i}").add_(1)
            elif step == "split":
                left, right = torch.split(y, 2, dim=1)
                y = torch.cat([right, left], dim=1)
            elif step == "mean":
                y = y - y.mean(0, keepdim=True)
            elif step == "softmax":
                y = y.softmax(-1)
            elif step == "in place":
                y = y.clone()
                y[:, 0].mul_(2)
                more["bias"].add_(1)
            else:
                y = torch.cond(y.sum() > 0, lambda y: y * 2, lambda y: y - 1, (y,))
        return {"y": y, "rest": [x * 2, y.sum()]}


def program(seed: int) -> ExportedProgram:
    """Export the model of this seed: with a free batch or not, decomposed or not, from a file."""
    draw = random.Random(seed + 1)
    example = (torch.randn(3, 4), {"bias": torch.zeros(4)})
    dims = {
        "fixed": None,
        "any": ({0: Dim("batch")}, {"bias": None}),
        "small": ({0: Dim("batch", max=5)}, {"bias": None}),
    }
    exported = torch.export.export(
        Drawn(seed).eval(),
        example,
        dynamic_shapes=dims[draw.choice(["fixed", "fixed", "any", "small"])],
    )
    if draw.random() < 0.15:
        exported = exported.run_decompositions({})
    if draw.random() < 0.2:
        file = io.BytesIO()
        torch.export.save(exported, file)
        file.seek(0)
        exported = torch.export.load(file)
    return exported


def compare(seed: int, runs: type[Interpreter] = Interpreter) -> dict[str, bool]:
    """Run one program twice over, in PyTorch's module and in small, and compare.

    :returns: whether outputs, what was written in place, and refusals are the same.
    """
    exported = program(seed)
    ours = runs(copy.deepcopy(exported))
    theirs, generator = exported.module(), torch.Generator().manual_seed(seed)
    same = {"outputs": True, "written": True, "refusals": True}
    for batch in (3, 5, 7):
        x = torch.randn(batch, 4, generator=generator)
        said: list[Any] = []
        for side in (theirs, ours):
            bias = torch.ones(4)
            try:
                with torch.no_grad():
                    said.append((side(x, {"bias": bias}), bias))
            except (Refused, AssertionError, RuntimeError):
                said.append(None)
        if said[0] is None or said[1] is None:
            same["refusals"] &= said[0] is said[1]
            continue
        (out, bias), (our_out, our_bias) = said
        pairs = [(out["y"], our_out["y"]), *zip(out["rest"], our_out["rest"], strict=True)]
        same["outputs"] &= all(torch.equal(a, b) for a, b in pairs)
        same["written"] &= torch.equal(bias, our_bias)
    state = ours.program.state_dict
    same["written"] &= all(
        torch.equal(value, state[name]) for name, value in exported.state_dict.items()
    )
    return same
