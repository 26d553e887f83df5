"""This build's CPU beside the recorded GPU: one table, each with its machine and its own limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from insidetorch import facts
from insidetorch.display import Display, escape, seconds, significant, table
from insidetorch.errors import BookError
from insidetorch.gpu import run_or_replay as cuda
from insidetorch.measure.timing import Bench, bench

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_NONE = "–"


def copy_bandwidth(device: str, *, mebibytes: int = 256) -> tuple[float, str]:
    """Measure how fast `device` copies a tensor: a limit for what reads and writes memory.

    :param device: ``"cpu"`` or ``"cuda"``.
    :param mebibytes: size of the tensor; it must be larger than the caches.
    :return: bytes read and written per second, and the limit's name.
    """
    import torch

    numel = mebibytes * 2**20 // 4
    x = torch.zeros(numel, device=device)
    y = torch.empty_like(x)
    return 2 * 4 * numel / _median(lambda: y.copy_(x)), "the bandwidth of a copy measured there"


def matmul_peak(device: str, *, dtype: str = "float32", size: int = 2048) -> tuple[float, str]:
    """Measure how fast `device` multiplies square matrices: a limit for what computes.

    They are random: on constant ones a GPU draws less power and is faster.

    :param device: ``"cpu"`` or ``"cuda"``.
    :param dtype: name of the type, such as ``"bfloat16"``.
    :param size: rows and columns; a GPU needs some 8192 to be busy.
    :return: floating-point operations per second, and the limit's name.
    """
    import torch

    a, b = torch.randn(2, size, size, device=device).to(getattr(torch, dtype))
    return 2 * size**3 / _median(lambda: a @ b), f"the {dtype} matrix product measured there"


def _median(function: Callable[[], object]) -> float:
    return bench(function, threads=facts.cores(), min_run_time=0.5).median


def measured(
    rows: Mapping[str, Bench | float],
    *,
    unit: str = "",
    limit: tuple[float, str] | None = None,
) -> dict[str, Any]:
    """Return measurements of one machine as JSON, for `record_data` and `side_by_side`.

    :param rows: what was measured → the result of `bench`, or a number. A result with a rate
        counts as its rate, another as its median in seconds.
    :param unit: of the numbers: ``"s"``, ``"B/s"``, ``"FLOP/s"``, or anything that is counted;
        the results' own unless given.
    :param limit: the limit on that machine and its name; the results' own unless given.
    :raises BookError: there are no rows, or they have different units.
    """
    if not rows:
        raise BookError("measured({}) has nothing to keep: give it results of bench() or numbers.")
    values, units = dict[str, float](), set[str]()
    for label, result in rows.items():
        if isinstance(result, Bench):
            by_rate = result.rate is not None
            values[label] = result.median if result.rate is None else result.rate
            units.add(f"{result.unit}/s" if by_rate else "s")
            limit = limit or result.limit
        else:
            values[label] = float(result)
            units.add(unit)
    if len(units) > 1:
        raise BookError(
            f"measured(…) got rows in {' and '.join(sorted(units))}: keep each unit apart."
        )
    stated = None if limit is None else {"value": limit[0], "name": limit[1]}
    return {"rows": values, "unit": unit or units.pop(), "limit": stated}


def side_by_side(name: str, cpu: Mapping[str, Any], *, caption: str) -> Display:
    """Return this build's CPU and the recorded GPU in one table.

    :param name: under which a CUDA cell kept its `measured` rows with `record_data`.
    :param cpu: what `measured` returned on this machine's CPU.
    :param caption: one line above the table.
    :raises BookError: the two measured different quantities.
    """
    kept = cuda.kept(name)
    gpu: Mapping[str, Any] = kept.value if kept else {"rows": {}, "unit": cpu["unit"]}
    if gpu["unit"] != cpu["unit"]:
        raise BookError(
            f"side_by_side({name!r}, …): the CPU is measured in {cpu['unit']} and the GPU in "
            f"{gpu['unit']}; measure both in one unit."
        )
    with_limits = bool(cpu.get("limit") or gpu.get("limit"))
    share = ["of its limit"] if with_limits else []
    header = ["", "CPU", *share, *(["GPU", *share, "GPU to CPU"] if kept else [])]
    rows = [
        [label, *_cells(cpu, label, with_limits)]
        + ([*_cells(gpu, label, with_limits), _ratio(cpu, gpu, label)] if kept else [])
        for label in dict.fromkeys([*cpu["rows"], *gpu["rows"]])
    ]
    where = f"{facts.cpu_name()}, {facts.cores()} cores, torch {_release()}, this build"
    notes = [f"CPU: {where}. {_limit(cpu)}".strip()]
    if kept:
        notes.append(f"GPU: {kept.where}. {_limit(gpu)}".strip())
    else:
        notes.append("GPU: not yet recorded; the CUDA cell that measures it was not run.")
    shown = table(header, rows, caption=caption, numeric=range(1, len(header)))
    lines = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return Display(
        f'{shown.html}<div class="it it-machines">{lines}</div>', "\n".join([shown.text, *notes])
    )


def _cells(side: Mapping[str, Any], label: str, with_limits: bool) -> list[object]:
    value = side["rows"].get(label)
    shown: list[object] = [_NONE if value is None else quantity(value, side["unit"])]
    if with_limits:
        limit = side.get("limit")
        shown.append(_NONE if value is None or not limit else _share(value, limit, side["unit"]))
    return shown


def _share(value: float, limit: Mapping[str, Any], unit: str) -> Display:
    """Return a value against its limit: a share, with a bar; for times, a multiple."""
    if unit == "s":
        text = f"{significant(value / limit['value'])} ×"
        return Display(text, text)
    share = value / limit["value"]
    text = f"{significant(100 * share)} %"
    bar = (
        '<span class="it-meter" aria-hidden="true">'
        f'<span style="width: {100 * min(max(share, 0), 1):.0f}%"></span></span>'
    )
    return Display(f"{text}{bar}", text)


def _ratio(cpu: Mapping[str, Any], gpu: Mapping[str, Any], label: str) -> str:
    ours, theirs = cpu["rows"].get(label), gpu["rows"].get(label)
    return f"{significant(theirs / ours)} ×" if ours and theirs is not None else _NONE


def _limit(side: Mapping[str, Any]) -> str:
    limit = side.get("limit")
    return f"Limit: {limit['name']}, {quantity(limit['value'], side['unit'])}." if limit else ""


def quantity(value: float, unit: str) -> str:
    """Return a number with its unit to three digits: ``1.25 ms``, ``3.4 TB/s``, ``7 kernels``."""
    if unit == "s":
        return seconds(value)
    if unit in ("B/s", "FLOP/s", "B", "FLOP"):
        for size, prefix in _PREFIXES:
            if abs(value) >= size * 0.9995:
                return f"{significant(value / size)} {prefix}{unit}"
    return f"{significant(value)} {unit}".rstrip()


def _release() -> str:
    import torch

    return str(torch.__version__)
