"""Random programs, and whether the miniature and PyTorch's profiler tell the same of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn import functional as F
from torch.profiler import profile, record_function, schedule

from miniatures.profilers import reading
from miniatures.profilers.steps import Schedule, Steps
from miniatures.profilers.tracer import Tracer
from miniatures.profilers.watch import Calls, chrome_of, observing, outline_of

Op = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_LAYER = torch.nn.Linear(4, 4)
OPS: dict[str, Op] = {
    "add": lambda a, b: a + b,
    "scaled": lambda a, b: a * 0.5 + b,
    "matmul": lambda a, b: a @ b,
    "linear": lambda a, b: _LAYER(a) + b,
    "softmax": lambda a, b: torch.softmax(a, -1) * b,
    "norm": lambda a, b: F.layer_norm(a, (4,)) - b,
    "double": lambda a, b: (a.double() + b).float(),
    "copy": lambda a, b: a.t().contiguous() + b.t(),
    "cat": lambda a, b: torch.cat([a, b])[1:5],
    "where": lambda a, b: torch.where(a > 0, a, b),
    "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b),
    "spread": lambda a, b: a / (1 + b.std()),
    "pooled": lambda a, b: a + b.mean(0, keepdim=True),
    "in place": lambda a, b: a.clone().mul_(b).relu_(),
    "number": lambda a, b: a * float(b.detach().sum().tanh()),
}


def program(seed: int, length: int = 7) -> Callable[[], None]:
    """Return a program of random operators in random ranges, most with a backward pass."""
    draw = random.Random(seed)
    lines = [(draw.choice(list(OPS)), draw.random(), draw.random()) for _ in range(length)]
    ranges = [draw.random() < 0.3 for _ in lines]
    ends = [draw.random() < 0.5 for _ in lines]
    backward, without = draw.random() < 0.7, draw.random() < 0.2

    def run() -> None:
        torch.manual_seed(seed)
        _LAYER.zero_grad()
        values = [torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)]
        with ExitStack() as whole:
            if without:
                whole.enter_context(torch.no_grad())
            stack = whole.enter_context(ExitStack())
            for number, (name, first, second) in enumerate(lines):
                if ranges[number]:
                    stack.enter_context(record_function(f"range {number}"))
                a, b = (values[int(where * len(values))] for where in (first, second))
                values.append(OPS[name](a, b))
                if ends[number]:
                    stack.close()
        loss = sum(value.sum() for value in values)
        if backward and not without and isinstance(loss, torch.Tensor):
            loss.backward()  # type: ignore[no-untyped-call]

    return run


def both(seed: int) -> tuple[Any, Tracer]:
    """Run a random program under PyTorch's profiler and the tracer at once."""
    run = program(seed)
    with profile() as theirs, observing(Tracer()) as mine:
        run()
    return theirs, mine


def agrees(seed: int) -> bool:
    """Tell whether both have the same tree: in the file, after merging, and in the table."""
    theirs, mine = both(seed)
    file, own = chrome_of(theirs), mine.chrome()
    raw = list(reading.outline(reading.tree(own)))
    if not raw or raw != list(reading.outline(reading.tree(file))):
        return False
    if list(reading.outline(reading.merged(reading.tree(own)))) != outline_of(theirs):
        return False
    return same_table(theirs, file)


def same_table(theirs: Any, file: Mapping[str, Any]) -> bool:
    """Tell whether the miniature makes PyTorch's table out of PyTorch's file, to the nanosecond."""
    rows = reading.averages(reading.merged(reading.tree(file)))
    table = {
        row.key: (row.count, row.self_cpu_time_total, row.cpu_time_total)
        for row in theirs.key_averages()
    }
    return rows.keys() == table.keys() and all(
        rows[name][0] == table[name][0]
        and all(abs(a - b) < 0.01 for a, b in zip(rows[name][1:], table[name][1:], strict=True))
        for name in rows
    )


def random_schedule(seed: int) -> tuple[Schedule, int]:
    """Return a schedule, and how many steps a program makes."""
    draw = random.Random(seed)
    made = Schedule(
        draw.randint(0, 3), draw.randint(1, 3), draw.randint(1, 3), draw.randint(0, 3),
        draw.randint(0, 3),
    )  # fmt: skip
    return made, draw.randint(0, 20)


def same_steps(seed: int) -> bool:
    """Tell whether a random schedule makes PyTorch's profiler do what the miniature says."""
    made, count = random_schedule(seed)
    mine = Steps(made)
    theirs = Calls(
        schedule(
            wait=made.wait, warmup=made.warmup, active=made.active, repeat=made.repeat,
            skip_first=made.skip_first,
        )
    )  # fmt: skip
    mine.enter()
    with theirs:
        for _ in range(count):
            mine.next()
            theirs.step()
    mine.leave()
    return mine.calls == theirs.calls
