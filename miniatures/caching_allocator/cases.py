"""Random programs of requests, and what the miniature and the rules make of them, step by step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from miniatures.caching_allocator.allocator import MiB
from miniatures.caching_allocator.cases_rules import Device
from miniatures.caching_allocator.growing import Growing
from miniatures.caching_allocator.tuning import Settings, Tuned

Step = tuple[str, int, int]
"""What to do, and two numbers: a size and a stream, a place among the live blocks, or nothing."""


def random_program(seed: int, length: int = 120) -> list[Step]:
    """Return requests, releases, uses on other streams, captures and more, at random."""
    draw = random.Random(seed)
    kinds = ["malloc"] * 10 + ["free"] * 8 + ["record"] * 2 + ["finish"] * 2 + ["empty"]
    kinds += ["capture", "end", "reset"]
    steps: list[Step] = []
    for _ in range(length):
        kind = draw.choice(kinds)
        size = draw.choice([
            draw.randint(1, 4096), draw.randint(1, 2 * MiB), draw.randint(MiB, 12 * MiB),
            draw.randint(8 * MiB, 90 * MiB),
            draw.choice([512, MiB, MiB + 1, 10 * MiB, 10 * MiB - 1, 20 * MiB]),
        ])  # fmt: skip
        steps.append((kind, size if kind == "malloc" else draw.randint(0, 99), draw.randint(0, 2)))
    return steps


def random_settings(seed: int) -> tuple[Settings, bool]:
    """Return settings, and whether segments grow."""
    draw = random.Random(-seed - 1)
    large = draw.choice([20, 20, 20, 12, 32]) * MiB
    return Settings(
        max_split=draw.choice([2**63, 2**63, large, 40 * MiB]),
        rounding=draw.choice([large, 64 * MiB]),
        large=large,
        divisions=draw.choice([0, 0, 0, 1, 2, 4, 8]),
        collect_above=draw.choice([0.0, 0.0, 0.6]),
        limit=draw.choice([None, None, 300 * MiB]),
    ), draw.random() < 0.4  # fmt: skip


def both(seed: int) -> tuple[Tuned, Device]:
    """Return the miniature and the rules, with the same random settings."""
    settings, grows = random_settings(seed)
    total = 400 * MiB
    return (Growing if grows else Tuned)(total, settings), Device(
        total, expandable=grows, **asdict(settings)
    )


def run(seed: int) -> Iterator[tuple[object, object]]:
    """Yield, after each step of a random program, the states of the miniature and of the rules.

    A state is whether there was memory, and of each block address, size, whether it is handed out
    and whether it may be.
    """
    mini, rules = both(seed)
    devices: tuple[Any, Any] = (mini, rules)
    held, graphs, alive = list[Any](), 0, list[str]()
    for kind, number, stream in random_program(seed):
        at = number % len(held) if held else 0
        said: list[object] = [None, None]
        if kind == "malloc":
            got: list[Any] = []
            for place, device in enumerate(devices):
                try:
                    got.append(device.malloc(number, stream))
                except MemoryError:
                    said[place] = "out of memory"
            if len(got) == 2:
                held.append(got)
            elif got:
                said = ["memory for one of the two", said]
        elif kind == "free" and held:
            one, other = held.pop(at)
            mini.free(one)
            rules.free(other)
        elif kind == "record" and held:
            mini.record_stream(held[at][0], stream)
            rules.record_stream(held[at][1], stream)
        elif kind == "finish":
            mini.finish(stream)
            rules.finish(stream)
        elif kind == "empty":
            mini.empty_cache()
            rules.release_cached()
        elif kind == "capture" and not mini.capturing:
            graphs += 1
            graph = random.Random(number).choice([*alive, f"graph {graphs}"])
            alive.append(graph)
            mini.capture(graph)
            rules.capture(graph)
        elif kind == "end":
            mini.end_capture()
            rules.end_capture()
        elif kind == "reset" and alive and not mini.capturing:
            graph = alive.pop(number % len(alive))
            mini.reset(graph)
            rules.reset(graph)
        layout = [(b.address, b.size, b.allocated, b.free) for b in mini.blocks()]
        yield (said[0], sorted(layout), mini.reserved, mini.retries), (
            said[1], rules.layout(), rules.reserved, rules.retries)  # fmt: skip


def agrees(seed: int) -> bool:
    """Tell whether miniature and rules are in the same state after each step of a program."""
    return all(mine == theirs for mine, theirs in run(seed))
