"""What tests cost: the order in which they are handed out, and the account at the end of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

T = TypeVar("T")
KINDS = {"test_notebooks": "notebooks", "test_site": "site", "test_drift": "drift"}
KINDS |= {"test_miniature": "miniatures"}


def file_of(test: str) -> str:
    """Return the name of a test's file, without its suffix."""
    return PurePosixPath(test.partition("::")[0]).stem


def kind(test: str) -> str:
    """Return what a test is about, by the name of its file."""
    name = file_of(test)
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), "toolkit")


def longest_first(
    items: Sequence[T], group: Callable[[T], str], cost: Callable[[T], float]
) -> list[T]:
    """Order by the seconds of each test's whole group; a group stays together, in its order."""
    took = seconds_by((group(item), cost(item)) for item in items)
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        first.setdefault(group(item), place)
    return sorted(items, key=lambda item: (-took[group(item)], first[group(item)]))


def account(spent: Mapping[str, float], slowest: int = 20) -> list[str]:
    """Return the lines that say which tests took longest, and how long each kind took."""
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    for test, seconds in spent.items():
        kinds[kind(test)].append(seconds)
    worst = sorted(spent.items(), key=lambda pair: -pair[1])[:slowest]
    return [
        *(f"{seconds:8.1f} s  {test.removeprefix('tests/')}" for test, seconds in worst),
        "",
        *(
            f"{sum(took):8.1f} s  {name}, {len(took):,} tests"
            for name, took in sorted(kinds.items(), key=lambda pair: -sum(pair[1]))
        ),
        f"{sum(spent.values()):8.1f} s  in all, over all processes",
    ]


def seconds_by(names: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Add up what was spent under each name."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, seconds in names:
        found[name] += seconds
    return dict(found)
