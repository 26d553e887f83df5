"""Who compiles when, in a training step: Dynamo, and AOTAutograd's compilers; more of Dynamo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo as dynamo
import torch._dynamo.decorators
from torch import fx
from torch._dynamo.backends.common import aot_autograd

mark_static = dynamo.mark_static  # says of a size that it is a constant
maybe_mark_dynamic = dynamo.maybe_mark_dynamic  # as `mark_dynamic`, and no error if it cannot
mark_unbacked = dynamo.decorators.mark_unbacked  # a size about which nothing may be asked
nonstrict_trace = dynamo.nonstrict_trace  # puts a call into the graph unread
check_number = torch._check  # says what may be assumed of a number that depends on data


def aot_backend(part: Callable[[fx.GraphModule, Any], Any]) -> Any:
    """Return a backend that has AOTAutograd derive the graphs, and gives each to `part`."""
    return aot_autograd(fw_compiler=part)


class Step:
    """A backend that splits a graph as Inductor does, and notes which part is compiled when.

    Each part is run as it is. `said` holds, by the words given to `moment`, who was asked.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.said: dict[str, list[str]] = {}
        self.now = ""
        dynamo.reset()
        self.run = torch.compile(function, backend=self.backend)

    def moment(self, words: str, call: Callable[[], Any]) -> Any:
        """Make a call, and keep under these words who compiled during it.

        :param words: a name of the moment.
        """
        self.now, self.said[words] = words, []
        return call()

    def backend(self, graph: fx.GraphModule, inputs: Any) -> Any:
        """Note a graph of Dynamo's, and hand it to AOTAutograd."""
        self.said[self.now].append("Dynamo")
        return aot_autograd(
            fw_compiler=self.part("forward"),
            bw_compiler=self.part("backward"),
            inference_compiler=self.part("inference"),
        )(graph, inputs)

    def part(self, kind: str) -> Callable[[fx.GraphModule, Any], Any]:
        """Return a compiler that notes its kind and runs the graph as it is."""

        def compiler(graph: fx.GraphModule, inputs: Any) -> Any:
            self.said[self.now].append(kind)
            return graph.forward

        return compiler
