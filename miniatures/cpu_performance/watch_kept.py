"""What a thread keeps for itself: settings as other threads and processes see them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

LOOP = 100_000
"""Elements of a loop that is long enough to be cut."""


def settings() -> dict[str, Any]:
    """Return the settings that the calling thread works under."""
    return {
        "threads": torch.get_num_threads(),
        "denormals flushed": _flushes(),
        "gradients recorded": torch.is_grad_enabled(),
        "default type": str(torch.get_default_dtype()).removeprefix("torch."),
    }


def _flushes() -> bool:
    tiny = torch.tensor(1e-40, dtype=torch.float32)
    return (tiny * 0.5).item() == 0


class _Worker(Dataset[str]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> str:
        return json.dumps(settings())


def kept() -> dict[str, dict[str, Any]]:
    """Change four settings in this thread; return what others see of them.

    An *older* thread has run a loop on four threads before; a *new* one starts afterwards.
    """
    torch.set_num_threads(4)
    with ThreadPoolExecutor(1) as older:
        older.submit(lambda: torch.zeros(LOOP).add_(1)).result()
        torch.set_num_threads(2)
        torch.set_flush_denormal(True)
        torch.set_default_dtype(torch.float64)
        with torch.no_grad():
            found = {
                "this thread": settings(),
                "older thread": older.submit(settings).result(),
                "new thread": _in_new(settings),
                "DataLoader worker": json.loads(
                    next(iter(DataLoader(_Worker(), num_workers=1)))[0]
                ),
            }
    torch.set_flush_denormal(False)
    torch.set_default_dtype(torch.float32)
    return found


def part_flushed() -> list[int]:
    """Flush denormals once two threads run; return how many products of 2¹⁸ are not 0.

    With two threads, one of them older than the switch; with four; with one.
    """
    torch.set_num_threads(2)
    tiny, results = torch.full((2**18,), 1e-40), []
    tiny * 0.5  # starts the second thread
    torch.set_flush_denormal(True)
    for number in (2, 4, 1):
        torch.set_num_threads(number)
        results.append(tiny * 0.5)
    torch.set_flush_denormal(False)
    return [int((result > 0).sum()) for result in results]


def _in_new(ask: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as new:
        return new.submit(ask).result()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
