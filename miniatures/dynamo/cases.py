"""Random functions of tensors: branches, loops, calls, lists and prints, with ways to call them."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

HELPERS = """
def twice(value, shift=1):
    value = value + shift
    return value * 2

def speaking(value):
    value = value.sin()
    print(end="")
    return value - 1
"""


@dataclass
class Program:
    """A function, its text, the ways to call it, and what happens in it."""

    function: Callable[..., Any]
    text: str
    calls: list[Callable[[], tuple[Any, ...]]]
    traits: list[str]


def random_program(seed: int, size: int = 4) -> Program:
    """Make a function ``program(a, b, n, flag, kept)`` and two ways to call it."""
    rng, traits, lines = random.Random(seed), list[str](), list[str]()
    known, count = ["a", "b"], iter(range(1000))

    def value() -> str:
        return rng.choice(known[-4:])

    def expression() -> str:
        x, y = value(), value()
        kinds = [f"{x} + {y}", f"{x} * {y}", f"{x} * n", f"{x}.cos()", f"torch.relu({x})"]
        kinds += [f"{x} - {rng.randint(1, 3)}", f"-{x}", f"torch.maximum({x}, other={y})"]
        return rng.choice(kinds)

    def simple(indent: str, name: str) -> None:
        if rng.random() < 0.2:
            traits.append("helper")
            lines.append(f"{indent}{name} = twice({value()}, {rng.randint(1, 3)})")
        else:
            lines.append(f"{indent}{name} = {expression()}")

    for _ in range(size):
        name, kind = f"v{next(count)}", rng.random()
        if kind < 0.5:
            simple("    ", name)
        elif kind < 0.6:
            traits.append("branch on data")
            lines.append(f"    if {value()}.sum() > {rng.randint(-2, 2)}:")
            simple("        ", name)
            lines.append("    else:")
            simple("        ", name)
        elif kind < 0.68:
            traits.append("branch on a flag")
            lines.append("    if flag:")
            simple("        ", name)
            lines.append("    else:")
            simple("        ", name)
        elif kind < 0.76:
            traits.append("loop")
            lines.append(f"    {name} = {value()}")
            lines.append(f"    for i in range({rng.randint(1, 3)}):")
            lines.append(f"        {name} = {name} * {value()} + i")
        elif kind < 0.84:
            traits.append("list")
            lines.append(f"    kept.append({value()})")
            continue
        elif kind < 0.92:
            traits.append("print")
            lines.append("    print(end='')")
            continue
        else:
            traits.append("print in a helper")
            lines.append(f"    {name} = speaking({value()})")
        known.append(name)
    lines.append(f"    return {value()}, [{value()}, n]")
    text = "\n".join([HELPERS, "def program(a, b, n, flag, kept):", *lines, ""])
    place = f"<random program {seed}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    scope: dict[str, Any] = {"torch": torch, "__name__": "random_program"}
    exec(compile(text, place, "exec"), scope)

    def way(sizes: int, n: int, flag: bool) -> Callable[[], tuple[Any, ...]]:
        def arguments() -> tuple[Any, ...]:
            torch.manual_seed(seed)
            return torch.randn(sizes), torch.randn(sizes), n, flag, []

        return arguments

    calls = [way(rng.choice([3, 3, 4]), rng.choice([2, 2, 5]), rng.random() < 0.5) for _ in "12"]
    return Program(scope["program"], text, calls, sorted(set(traits)))
