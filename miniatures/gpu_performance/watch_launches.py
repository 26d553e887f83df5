"""PyTorch's own choice of a reduction's launch: its C++ from the header, compiled without CUDA."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from insidetorch.errors import BookError

_AROUND = """
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <vector>
#define C10_HOST_DEVICE
#define C10_DEVICE
struct dim3 { unsigned x, y, z; dim3(unsigned a, unsigned b = 1) : x(a), y(b), z(1) {} };
dim3 threadIdx(0), blockIdx(0), blockDim(1), gridDim(1);
namespace c10 { template <class T> struct complex {}; }
struct Properties { int multiProcessorCount, maxThreadsPerMultiProcessor; };
namespace at::cuda {
  Properties properties;
  Properties* getCurrentDeviceProperties() { return &properties; }
  int warp_size() { return 32; }
}
struct TensorIterator {
  std::vector<int64_t> sizes, steps;
  int reduced;
  int64_t outputs, elements;
  int64_t num_output_elements() const { return outputs; }
  int64_t numel() const { return elements; }
  int ntensors() const { return 2; }
  int noutputs() const { return 1; }
  int ndim() const { return sizes.size(); }
  int num_reduce_dims() const { return reduced; }
  const std::vector<int64_t>& strides(int) const { return steps; }
  const std::vector<int64_t>& shape() const { return sizes; }
  void* data_ptr(int) const { return nullptr; }
};
"""
_MAIN = """
int main() {
  long rows, columns, axis;
  while (scanf("%ld %ld %ld %d %d", &rows, &columns, &axis,
               &at::cuda::properties.multiProcessorCount,
               &at::cuda::properties.maxThreadsPerMultiProcessor) == 5) {
    TensorIterator iter;
    iter.elements = rows * columns;
    iter.reduced = 1;
    iter.outputs = axis < 0 ? 1 : axis ? rows : columns;
    if (axis < 0) { iter.sizes = {rows * columns}; iter.steps = {4}; }
    else if (axis) { iter.sizes = {columns, rows}; iter.steps = {4, 4 * columns}; }
    else { iter.sizes = {rows, columns}; iter.steps = {4 * columns, 4}; }
    auto c = setReduceConfig<float, float, 4>(iter);
    printf("%u %u %u %u %d %d\\n", c.grid().x, c.grid().y, c.block().x, c.block().y,
           c.values_per_thread(), c.output_vec_size);
  }
}
"""


def launches(cases: Sequence[tuple[int, int, int | None, int, int]]) -> list[tuple[int, ...]]:
    """Return grid, block, values of a thread and vector that ``setReduceConfig`` chooses.

    :param cases: rows, columns, axis or None, number of SMs, threads of an SM.
    :raises BookError: there is no C++ compiler, or the header is no longer as it was.
    """
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise BookError("No C++ compiler: install g++ to run PyTorch's own function.")
    with tempfile.TemporaryDirectory(prefix="it-") as scratch:
        file, program = Path(scratch) / "main.cpp", Path(scratch) / "main"
        file.write_text(_AROUND + _taken() + _MAIN, encoding="utf-8")
        done = subprocess.run(
            [compiler, "-std=c++20", "-w", file, "-o", program], capture_output=True, text=True
        )
        if done.returncode:
            said = next((s for s in done.stderr.splitlines() if "error" in s), "no reason given")
            raise BookError(f"Reduce.cuh does not compile without CUDA ({said}); mend the oracle.")
        asked = "\n".join(" ".join(str(-1 if v is None else v) for v in case) for case in cases)
        out = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)
    return [tuple(map(int, line.split())) for line in out.stdout.splitlines()]


def _taken() -> str:
    """Return the functions of the installed header, as they stand there."""
    folder = Path(torch.__file__).parent / "include/ATen/native/cuda"
    text = (folder / "Reduce.cuh").read_text(encoding="utf-8")
    parts = [
        r"static inline int64_t div_up\(.*?^}", r"static inline int last_pow2\(.*?^}",
        r"template <typename T>\nstruct mnt_wrapper \{.*?^};",
        r"struct ReduceConfig \{.*?^};",
        r"template <typename scalar_t>\nint get_output_vec_size\(.*?^}",
        r"template<typename arg_t, typename scalar_t, int vt0, int input_vec_size=vt0>\n"
        r"ReduceConfig setReduceConfig\(.*?^};?$",
    ]  # fmt: skip
    found = [re.search(part, text, re.DOTALL | re.MULTILINE) for part in parts]
    if None in found:
        raise BookError("Reduce.cuh has changed: the functions of the oracle are not in it.")
    return "\n".join(match[0] for match in found if match)
