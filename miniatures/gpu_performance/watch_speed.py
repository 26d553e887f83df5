"""The kernels beside PyTorch's own, ready to be timed on a GPU (or run under the interpreter)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from miniatures.gpu_performance import kernels as gpu_kernels

TRANSPOSE = """
__global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (r + i < rows && c < columns)
      tile[threadIdx.y + i][threadIdx.x] = x[(r + i) * columns + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (r + i < columns && c < rows)
      y[(r + i) * rows + c] = tile[threadIdx.x][threadIdx.y + i];
}
"""
"""The transpose in CUDA C++: the tile is 33 wide, so that a column lies in 32 different banks."""


@dataclass(frozen=True)
class Entry:
    """One operation: the bytes that it must move, PyTorch's way and the book's."""

    bytes: int
    eager: Callable[[], Tensor]
    own: Callable[[], Tensor]


def kernels() -> SimpleNamespace:
    """Return the book's kernels, each compiled by Triton when it is first called."""
    import triton

    names = [name for name, value in vars(gpu_kernels).items() if callable(value)]
    return SimpleNamespace(**{
        name: triton.jit(getattr(gpu_kernels, name))
        for name in names if getattr(gpu_kernels, name).__module__ == gpu_kernels.__name__
    })  # fmt: skip


def contest(rows: int, columns: int, device: str = "cuda") -> dict[str, Entry]:
    """Return the operations whose time memory sets, on float32 matrices.

    :param columns: at most 65536, since softmax and layer norm hold a row in registers.
    """
    own = kernels()
    x, y = torch.randn(2, rows, columns, device=device)
    weight, bias = torch.randn(2, columns, device=device)
    out, flat = torch.empty_like(x), torch.empty(columns, rows, device=device)
    sums = torch.empty(rows, device=device)
    n, row = x.numel(), 1 << (columns - 1).bit_length()

    def silu_times() -> Tensor:
        own.silu_times[(-(-n // 1024),)](x, y, out, n, BLOCK=1024)
        return out

    def row_sum() -> Tensor:
        own.row_sum[(rows,)](x, sums, columns, BLOCK=1024)
        return sums

    def softmax() -> Tensor:
        own.softmax[(rows,)](x, out, columns, BLOCK=row)
        return out

    def layer_norm() -> Tensor:
        own.layer_norm[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=row)
        return out

    def transpose() -> Tensor:
        own.transpose[(-(-rows // 32), -(-columns // 32))](x, flat, rows, columns, TALL=32, WIDE=32)
        return flat

    return {
        "silu(x) * y": Entry(12 * n, lambda: F.silu(x) * y, silu_times),
        "x.sum(1)": Entry(4 * (n + rows), lambda: x.sum(1), row_sum),
        "x.softmax(1)": Entry(8 * n, lambda: x.softmax(1), softmax),
        "layer_norm(x)": Entry(
            8 * n + 8 * columns, lambda: F.layer_norm(x, (columns,), weight, bias), layer_norm
        ),
        "x.t().contiguous()": Entry(8 * n, lambda: x.t().contiguous(), transpose),
    }


def products(size: int, dtype: torch.dtype, device: str = "cuda") -> Entry:
    """Return a matrix product; `bytes` are those of the three matrices."""
    own = kernels()
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    tiles = -(-size // 64)

    def matmul() -> Tensor:
        own.matmul[(tiles, tiles)](a, b, out, size, size, size, M=64, N=64, K=32, PRECISION="ieee")
        return out

    return Entry(3 * a.nbytes, lambda: a @ b, matmul)


def attentions(
    heads: int, length: int, dtype: torch.dtype, device: str = "cuda"
) -> tuple[tuple[Tensor, Tensor, Tensor], Callable[[], Tensor]]:
    """Return query, key and value with heads of 64 numbers, and the book's kernel on them."""
    own = kernels()
    q, k, v = (torch.randn(1, heads, length, 64, device=device).to(dtype) for _ in range(3))
    out = torch.empty_like(q)

    def attention() -> Tensor:
        own.attention[(-(-length // 64), heads)](
            q, k, v, out, length, 0.125, BLOCK=64, WIDTH=64, PRECISION="ieee"
        )
        return out

    return (q, k, v), attention


def transpose_in_cpp() -> Callable[[Tensor], Tensor]:
    """Return the transpose in CUDA C++ for float32, compiled by NVRTC, which PyTorch brings."""
    from insidetorch.private.cuda import compile_kernel

    kernel = compile_kernel(TRANSPOSE, "transpose")

    def transposed(x: Tensor) -> Tensor:
        rows, columns = x.shape
        y = x.new_empty(columns, rows)
        grid = (-(-columns // 32), -(-rows // 32), 1)
        kernel(grid=grid, block=(32, 8, 1), args=[x, y, rows, columns])
        return y

    return transposed
