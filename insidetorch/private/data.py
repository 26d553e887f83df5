"""The data loader: what comes in at a pass over workers, and what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from insidetorch.private.name import Name

_ITERATOR = "torch.utils.data.dataloader._MultiProcessingDataLoaderIter"
_TRY_GET = Name(f"{_ITERATOR}._try_get_data")
_TRY_PUT = Name(f"{_ITERATOR}._try_put_index")
_PIN = Name("torch.utils.data._utils.pin_memory.pin_memory")


def watch_pass(
    iterator: Any, came: Callable[[int, Any], object], asked: Callable[[], object]
) -> None:
    """Have a pass over workers tell what comes in and when it asks for more.

    `_MultiProcessingDataLoaderIter._try_get_data` and `_try_put_index`, replaced on the object.

    :param iterator: `iter` of a loader with workers.
    :param came: called with the number of a batch and the batch, as soon as it is there.
    :param asked: called after each try to hand out the next task.
    """
    get, put = _TRY_GET.of(iterator), _TRY_PUT.of(iterator)

    def watched_get(*options: Any, **more: Any) -> Any:
        found, data = get(*options, **more)
        if found:
            came(*data)
        return found, data

    def watched_put() -> None:
        put()
        asked()

    iterator._try_get_data, iterator._try_put_index = watched_get, watched_put


def pinned_batch(batch: Any) -> Any:
    """Return what the loader's thread makes of a batch when it pins.

    `torch.utils.data._utils.pin_memory.pin_memory`, which calls ``pin_memory()`` of what has it and
    walks through containers.
    """
    return _PIN.get()(batch)
