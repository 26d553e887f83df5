"""A dispatch mode made of a function: what sees each ATen call of a thread, and makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from insidetorch.private.modes import dispatch_mode


def each_call(run: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]) -> Any:
    """Return a `TorchDispatchMode` that leaves each call to `run`, and returns what it returns.

    :param run: takes the operator, its arguments and its keyword arguments; it makes the call
        itself, with ``operator(*args, **kwargs)``.
    """

    class Mode(dispatch_mode()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return run(func, args, kwargs or {})

    return Mode()
