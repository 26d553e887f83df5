"""A backward pass that runs: its number, its node, its order, its last call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.name import Name

_GRAPH_TASK_ID = Name("torch._C._current_graph_task_id")
_CURRENT_NODE = Name("torch._C._current_autograd_node")
_EXECUTION_ORDER = Name("torch._C._current_graph_task_execution_order")
_QUEUE_CALLBACK = Name("torch.autograd.Variable._execution_engine.queue_callback")


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
