"""Programs that the chapter runs: expressions to count, a formula of nine operators, slow lines."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

COUNTED = """
import torch
from torch.nn.functional import group_norm, max_pool2d
torch.set_num_threads(1)
def last(x): return x.contiguous(memory_format=torch.channels_last)
def scatter(i): return torch.zeros(500, 64).scatter_add_(0, i, rows[start])
float32, row, square = (torch.rand(*n) for n in ((64, 64), (1, 64), (256, 256)))
bfloat16, float16 = float32.bfloat16(), float32.half()
x3, x64, norm = (torch.rand(2, c, s, s) for c, s in ((3, 28), (64, 28), (256, 14)))
x3_last, x64_last, norm_last = last(x3), last(x64), last(norm)
start, to = torch.randint(500, (2, 5000))
rows, values, sums = (torch.rand(n, 64) for n in (500, 5000, 500))
wide, full = to[:, None].expand(-1, 64), to[:, None].repeat(1, 64)
csr = torch.sparse_coo_tensor(torch.stack([to, start]), torch.ones(5000),
                              (500, 500)).coalesce().to_sparse_csr()
"""
"""What is prepared before `KERNELS` are counted, instruction by instruction."""

KERNELS = (
    "square.softmax(0)", "square.softmax(1)", "max_pool2d(x3, 2)",
    "max_pool2d(x3_last, 2)", "max_pool2d(x64, 2)", "max_pool2d(x64_last, 2)",
    "group_norm(norm, 32)", "group_norm(norm_last, 32)", "float32 @ float32",
    "bfloat16 @ bfloat16", "float16 @ float16", "scatter(wide)", "csr @ rows",
    "sums.scatter_add_(0, wide, values)", "sums.scatter_add_(0, full, values)",
    "sums.gather(0, wide)", "sums.gather(0, full)", "row @ float32",
)  # fmt: skip


SIZES = """
net = torch.nn.Conv2d(8, 8, 3)
with torch.inference_mode():
    for size in (16, 16, 17, 16):
        print("# side", size); net(torch.rand(2, 8, size, size))
"""
"""A convolution of images of two sizes, four calls, for the cache of oneDNN."""

CONVOLUTIONS = (
    """
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
                          torch.nn.Conv2d(32, 64, 3))
x = torch.rand(4, 16, 64, 64)
with torch.inference_mode():
    for name in ("contiguous_format", "channels_last"):
        form = getattr(torch, name)
        net.to(memory_format=form); y = x.to(memory_format=form)
        print("# warm"); net(y); print("#", name); net(y)
    for channels in (1, 3, 16, 32):
        print("#", channels)
        torch.nn.Conv2d(channels, 32, 3)(torch.rand(8, channels, 64, 64))
    print("# conversion")
    from torch.utils.mkldnn import to_mkldnn
    net = to_mkldnn(net.to(memory_format=torch.contiguous_format).eval())
    x = x.to_mkldnn(); net(x); print("# converted"); net(x)
"""
    + SIZES
)
"""Convolutions to be logged: two formats, few channels, converted to oneDNN's layout; SIZES."""


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Compute the activation by its formula: nine operators, each a pass through memory."""
    return 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.045 * x * x * x)))


Planted = tuple[Callable[[], object], Callable[[], object], int, int]
"""A slow call, a quick one, the threads of the slow one, and the bytes that must move."""


def planted() -> dict[str, Planted]:
    """Return six slow calls beside quick ones."""
    torch.manual_seed(0)
    matrix, short = torch.rand(256, 64), torch.rand(4096)
    weight, square = torch.rand(64, 64), torch.rand(256, 256)
    half, long = square.half(), torch.rand(12 * 2**20)
    into, tiny, usual = torch.empty_like(long), torch.full((2**20,), 1e-40), torch.rand(2**20)
    out, gelu_in = torch.empty_like(tiny), torch.rand(2**20)
    many = 16 * len(os.sched_getaffinity(0))
    return {
        "rows in a loop": (
            lambda: [row @ weight for row in matrix], lambda: matrix @ weight, 1, 0),
        "too many threads": (partial(torch.expm1, short), partial(torch.expm1, short), many, 0),
        "a float16 product": (lambda: half @ half, lambda: square @ square, 1, 0),
        "a large new result": (
            lambda: long + 1, partial(torch.add, long, 1, out=into), 1, 2 * long.nbytes),
        "denormal numbers": (
            partial(torch.div, tiny, 3, out=out), partial(torch.div, usual, 3, out=out), 1,
            2 * tiny.nbytes),
        "nine passes": (
            partial(gelu, gelu_in), partial(functional.gelu, gelu_in, approximate="tanh"), 1,
            2 * gelu_in.nbytes),
    }  # fmt: skip
