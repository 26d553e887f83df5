"""Eight kernels of the book's own, in Triton's language.

They are plain functions. `block_machine.Machine` runs them on a CPU without Triton, Triton's
interpreter runs them there too, and Triton compiles them for a GPU (`gpu_kernels_triton`).
"""

from __future__ import annotations

from typing import Any

try:
    import triton.language as tl
except ImportError:  # the machine lends them its own language
    tl: Any = None  # type: ignore[no-redef]


def silu_times(
    x: tl.tensor, y: tl.tensor, out: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr
) -> None:
    """Write ``silu(x) * y``: what eager PyTorch does in two kernels."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    gate = tl.load(x + at, mask=inside, other=0.0)
    other = tl.load(y + at, mask=inside, other=0.0)
    tl.store(out + at, gate / (1 + tl.exp(-gate)) * other, mask=inside)


def row_sum(x: tl.tensor, out: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Write the sum of each row; one program walks along one row."""
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


def softmax(
    x: tl.tensor, out: tl.tensor, columns: tl.tensor, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Write the softmax of each row; a program holds one row."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    value = tl.load(x + start + at, mask=inside, other=-float("inf"))
    value = tl.exp(value.to(tl.float32) - tl.max(value, axis=0))
    tl.store(out + start + at, value / tl.sum(value, axis=0), mask=inside)


def layer_norm(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    columns: tl.tensor,
    eps: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Write the layer norm of each row, with the variance taken around the mean."""
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    value = tl.load(x + start + at, mask=inside, other=0.0).to(tl.float32)
    away = tl.where(inside, value - tl.sum(value, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(away * away, axis=0) / columns + eps)
    gain = tl.load(weight + at, mask=inside, other=0.0)
    shift = tl.load(bias + at, mask=inside, other=0.0)
    tl.store(out + start + at, away * scale * gain + shift, mask=inside)


def transpose(
    x: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
) -> None:
    """Write the transpose; one program moves a tile of TALL rows and WIDE columns."""
    row = tl.program_id(0) * TALL + tl.arange(0, TALL)
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(x + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(out + row[:, None] + column[None, :] * rows, tile, mask=inside)


def permute(
    x: tl.tensor, out: tl.tensor, n: tl.tensor, high: tl.tensor,
    wide: tl.tensor, FIRST: tl.constexpr, SECOND: tl.constexpr,
    THIRD: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Write a view of three dimensions row by row, finding indices by division.

    The last two sizes are high and wide; FIRST, SECOND and THIRD are strides.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    rows = at // wide
    there = rows // high * FIRST + rows % high * SECOND + at % wide * THIRD
    tl.store(out + at, tl.load(x + there, mask=inside), mask=inside)


def matmul(
    a: tl.tensor, b: tl.tensor, out: tl.tensor, m: tl.tensor, n: tl.tensor, k: tl.tensor,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Write ``a @ b``; one program sums M × K by K × N tiles into one tile of the result."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros([M, N], dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left_in = (row[:, None] < m) & (inner[None, :] < k)
        right_in = (inner[:, None] < k) & (column[None, :] < n)
        left = tl.load(a + row[:, None] * k + inner[None, :], mask=left_in, other=0.0)
        right = tl.load(b + inner[:, None] * n + column[None, :], mask=right_in, other=0.0)
        total += tl.dot(left, right, input_precision=PRECISION)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(out + row[:, None] * n + column[None, :], total, mask=inside)


def attention(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, out: tl.tensor, length: tl.tensor, scale: tl.tensor,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Write attention without ever storing the scores: the softmax is corrected as keys arrive."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)[None, :]
    base = tl.program_id(1) * length * WIDTH
    at = base + row[:, None] * WIDTH + lane
    query = tl.load(q + at, mask=row[:, None] < length, other=0.0)
    best = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    mixed = tl.zeros([BLOCK, WIDTH], dtype=tl.float32)
    for start in range(0, length, BLOCK):
        other = start + tl.arange(0, BLOCK)
        there = base + other[:, None] * WIDTH + lane
        key = tl.load(k + there, mask=other[:, None] < length, other=0.0)
        value = tl.load(v + there, mask=other[:, None] < length, other=0.0)
        score = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
        score = tl.where(other[None, :] < length, score, -float("inf"))
        top = tl.maximum(best, tl.max(score, axis=1))
        share = tl.exp(score - top[:, None])
        shrink = tl.exp(best - top)
        total = total * shrink + tl.sum(share, axis=1)
        mixed *= shrink[:, None]
        mixed += tl.dot(share.to(value.dtype), value, input_precision=PRECISION)
        best = top
    tl.store(out + at, mixed / total[:, None], mask=row[:, None] < length)
