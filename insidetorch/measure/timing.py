"""Measuring time, with the spread, and against a stated limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from insidetorch.display import Display, escape, seconds, significant, table
from insidetorch.errors import BookError

if TYPE_CHECKING:
    from torch.utils.benchmark import Measurement, Timer

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = frozenset({"B", "bit", "FLOP"})
_RUN, _RUNS, _PATIENCE = 0.01, 30, 1.0


@dataclass(frozen=True, repr=False)
class Bench(Display):
    """A measured time, and how it is shown.

    :param label: what was measured.
    :param median: seconds of one call.
    :param iqr: interquartile range of the seconds of one call.
    :param runs: how many blocks of calls were timed.
    :param calls: how many calls one block has.
    :param rate: work per second at the median; None if no work was stated.
    :param ratio: with work, the rate over the limit; else the median over the limit; None if no
        limit was stated.
    :param unit: what the work counts.
    :param limit: the limit and its name.
    """

    label: str = ""
    median: float = float("nan")
    iqr: float = float("nan")
    runs: int = 0
    calls: int = 0
    rate: float | None = None
    ratio: float | None = None
    unit: str = ""
    limit: tuple[float, str] | None = None


def bench(
    stmt: str | Callable[[], object],
    *,
    label: str | None = None,
    setup: str | None = None,
    globals: Mapping[str, Any] | None = None,
    limit: tuple[float, str] | None = None,
    unit: str | None = None,
    work: float | None = None,
    threads: int = 1,
    min_run_time: float = 0.2,
) -> Bench:
    """Measure how long one call takes, by `torch.utils.benchmark.Timer`.

    Where there is a GPU, its clock waits for it, and there are some thirty runs of 10 ms at least.

    :param stmt: Python source, or a function called without arguments; calling a function adds
        some 50 ns.
    :param label: what to call it; otherwise the source, or the function's name.
    :param setup: source run once before.
    :param globals: names the source may use; `torch` is always there.
    :param limit: a bound and its name: seconds, or with `work`, units of work per second.
    :param unit: what the work counts: ``"B"``, ``"FLOP"``, ``"node"``.
    :param work: how much work one call does; gives a rate.
    :param threads: how many threads PyTorch may use.
    :param min_run_time: seconds to measure for, at least.
    :raises BookError: if a unit comes without work, or a bound that is not greater than 0.
    """
    import torch
    from torch.utils.benchmark import Timer

    if unit is not None and work is None:
        raise BookError(
            f"bench(…, unit={unit!r}) has no work: state in work= how much one call does."
        )
    for name, value in (("work", work), ("limit", limit and limit[0])):
        if value is not None and not value > 0:
            raise BookError(f"bench(…) got {name}={value!r}: state a number greater than 0.")
    source = stmt if isinstance(stmt, str) else "measured_function()"
    names: dict[str, Any] = {"torch": torch, **(globals or {})}
    if not isinstance(stmt, str):
        names["measured_function"] = stmt
    timer = Timer(source, setup=setup or "pass", globals=names, num_threads=threads)
    measured = _runs(timer, min_run_time)
    title = label or (" ".join(stmt.split()) if isinstance(stmt, str) else _name(stmt))
    rate = None if work is None else work / measured.median
    unit, runs, calls = unit or "", len(measured.times), measured.number_per_run
    ratio = None
    if limit is not None:
        ratio = (measured.median if rate is None else rate) / limit[0]
    parts = [
        f"{seconds(measured.median)} a call (median; interquartile range {seconds(measured.iqr)}; "
        f"{runs:,} runs of {calls:,}; {threads} thread{'s' * (threads != 1)})"
    ]
    if rate is not None:
        each = "" if unit in _PREFIXED else f", {seconds(1 / rate)} each"
        parts.append(_per_second(rate, unit) + each)
    if limit is not None and ratio is not None:
        parts.append(_against(ratio, limit, rate, unit))
    found: dict[str, Any] = {
        "label": title, "median": measured.median, "iqr": measured.iqr, "runs": runs,
        "calls": calls, "rate": rate, "unit": unit, "ratio": ratio,
    }  # fmt: skip
    stated = None if limit is None else {"value": limit[0], "name": limit[1]}
    return Bench(
        f'<p class="it it-timing"><strong>{escape(title)}</strong>: '
        f"{'; '.join(escape(part) for part in parts)}</p>",
        f"{title}: {'; '.join(parts)}",
        {"kind": "timing", **found, "threads": threads, "limit": stated},
        **found,
        limit=limit,
    )


def _runs(timer: Timer, min_run_time: float) -> Measurement:
    """Time a statement in runs enough for a spread.

    Where the clock waits for a GPU, `blocked_autorange` makes one or two runs, so long that the
    waiting does not count.
    """
    import torch

    if not torch.cuda.is_available():
        return timer.blocked_autorange(min_run_time=min_run_time)
    runs: list[Measurement] = []
    calls = 1
    while timer.timeit(calls).raw_times[0] < _RUN:
        calls *= 2
    while (spent := sum(run.raw_times[0] for run in runs)) < min_run_time or len(runs) < _RUNS:
        if len(runs) >= 3 and spent > _PATIENCE:
            break
        runs.append(timer.timeit(calls))
    return runs[0].merge(runs)[0]


def _name(function: Callable[[], object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _against(ratio: float, limit: tuple[float, str], rate: float | None, unit: str) -> str:
    value, name = limit
    if rate is None:
        return f"{significant(ratio)} × {name} ({seconds(value)})"
    return f"{significant(100 * ratio)} % of {name} ({_per_second(value, unit)})"


def bench_table(results: Sequence[Bench], *, caption: str = "") -> Display:
    """Return several measurements side by side, each also relative to the first.

    :param results: what `bench` returned; the columns of rates and limits appear if any has one.
    :param caption: one line above the table.
    :raises BookError: without results.
    """
    if not results:
        raise BookError("bench_table([]) has nothing to show: give it results of bench().")
    first = results[0]
    header = ["what", "median", "IQR", "runs"]
    columns = [
        [result.label for result in results],
        [seconds(result.median) for result in results],
        [seconds(result.iqr) for result in results],
        [f"{result.runs:,} × {result.calls:,}" for result in results],
    ]
    if len(results) > 1:
        header.append("to the first")
        columns.append([f"{significant(result.median / first.median)} ×" for result in results])
    if any(result.rate is not None for result in results):
        header.append("rate")
        columns.append([_per_second(r.rate, r.unit) if r.rate else "–" for r in results])
    if any(result.limit is not None for result in results):
        header.append("against the limit")
        columns.append(
            [
                _against(r.ratio, r.limit, r.rate, r.unit) if r.limit and r.ratio else "–"
                for r in results
            ]
        )
    record = {"kind": "timing", "label": caption, "results": [result.record for result in results]}
    rows = list(zip(*columns, strict=True))
    return table(header, rows, caption=caption, numeric=(1, 2, 3, 4), record=record)


def _per_second(rate: float, unit: str) -> str:
    space = "" if unit in _PREFIXED else " "
    for size, prefix in _DECIMAL:
        if rate >= size * 0.9995:
            return f"{significant(rate / size)} {prefix}{space}{unit}/s"
    return f"{significant(rate)} {unit}/s"
