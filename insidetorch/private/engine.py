"""A backward pass that runs: its number, its node, its order, its last call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.name import Name

_GRAPH_TASK_ID = Name("torch._C._current_graph_task_id")
_CURRENT_NODE = Name("torch._C._current_autograd_node")
_EXECUTION_ORDER = Name("torch._C._current_graph_task_execution_order")
_KEEP_GRAPH = Name("torch._C._autograd._get_current_graph_task_keep_graph")
_COMPILED_AUTOGRAD = Name("torch._dynamo.compiled_autograd._enable")
_QUEUE_CALLBACK = Name("torch.autograd.Variable._execution_engine.queue_callback")
_WILL_EXECUTE = Name("torch._C._will_engine_execute_node")
_CPP_BACKWARD = Name("torch.ops.aten._backward.default")


def graph_task_id() -> int:
    """Return the number of the backward pass that runs on this thread; -1 outside of one.

    `torch._C._current_graph_task_id`.
    """
    task: int = _GRAPH_TASK_ID.get()()
    return task


def current_node() -> Any:
    """Return the autograd node that this thread evaluates now; None outside of a backward pass.

    `torch._C._current_autograd_node`.
    """
    return _CURRENT_NODE.get()()


def execution_order() -> list[Any]:
    """Return the nodes of the running backward pass in the order the engine will take them.

    `torch._C._current_graph_task_execution_order`. Call it from a hook on the root, inside
    ``torch.autograd.set_multithreading_enabled(False)``; elsewhere it raises.
    """
    order: list[Any] = _EXECUTION_ORDER.get()()
    return order


def queue_callback(callback: Callable[[], object]) -> None:
    """Have the engine call `callback` once, when the running backward pass is complete.

    `torch.autograd.Variable._execution_engine.queue_callback`; outside of a backward pass it
    raises RuntimeError. `DistributedDataParallel` finishes its reduction this way.
    """
    _QUEUE_CALLBACK.get()(callback)


def keeps_graph() -> bool:
    """Tell whether the backward pass that runs on this thread keeps what its nodes saved.

    `torch._C._autograd._get_current_graph_task_keep_graph`, what was passed as `retain_graph`.
    """
    keeps: bool = _KEEP_GRAPH.get()()
    return keeps


def will_execute(node: Any) -> bool:
    """Tell whether the backward pass that runs on this thread is to run `node`.

    `torch._C._will_engine_execute_node`. It raises outside of a pass, and for a leaf's node in a
    pass of `torch.autograd.grad` for that leaf.
    """
    executes: bool = _WILL_EXECUTE.get()(node)
    return executes


def cpp_backward(root: Any, gradient: Any) -> None:
    """Run backward from `root` with this first gradient, as `torch::autograd::backward` does.

    `torch.ops.aten._backward.default`, the operator behind `backward` of a tensor in C++.
    """
    _CPP_BACKWARD.get()(root, [], gradient)


def compiled_pass(backward: Callable[[], object]) -> list[Any]:
    """Call `backward` under compiled autograd and return the graphs that it captured.

    `torch._dynamo.compiled_autograd._enable`, with a compiler that runs each graph as it is.
    """
    graphs: list[Any] = []

    def keep(graph: Any) -> Any:
        graphs.append(graph)
        return graph

    with _COMPILED_AUTOGRAD.get()(keep):
        backward()
    return graphs
