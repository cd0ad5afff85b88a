"""Kernels on a GPU, with CuPy, which compiles them when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import cupy
import numpy as np

from grid import Range

_SOURCE = r"""
// Points are rows of columns + 2 doubles, with one layer of ghost points around them.
extern "C" __global__ void fill(double* points, int rows, int columns, long long top, long long left) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= rows + 2 || j >= columns + 2) return;
  points[(size_t)i * (columns + 2) + j] = (double)((73 * (top + i) + 179 * (left + j)) % 1009) / 1024.0;
}

// This order of additions makes results equal to the last bit everywhere.
extern "C" __global__ void update(const double* __restrict__ from, double* __restrict__ to, int rows,
                                  int columns) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= rows || j >= columns) return;
  size_t row = columns + 2, at = (i + 1) * row + j + 1;
  double sum = from[at - row] + from[at + row];
  sum += from[at - 1];
  sum += from[at + 1];
  to[at] = sum * 0.25;
}

// Either column may be null.
extern "C" __global__ void columns(double* points, int rows, int columns, int packing, double* left,
                                   double* right) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  double* row = points + (size_t)(i + 1) * (columns + 2);
  if (packing) {
    if (left) left[i] = row[1];
    if (right) right[i] = row[columns];
  } else {
    if (left) row[0] = left[i];
    if (right) row[columns + 1] = right[i];
  }
}
"""
_BLOCK = (64, 4, 1)
_COLUMN_BLOCK = (256, 1, 1)
_OPTIONS = ("--fmad=false",)  # nothing fused: the CPU's results


@functools.cache
def _kernel(name: str) -> cupy.RawKernel:
    return cupy.RawKernel(_SOURCE, name, options=_OPTIONS)


def _grid(rows: int, columns: int) -> tuple[int, int, int]:
    return -(-columns // _BLOCK[0]), -(-rows // _BLOCK[1]), 1


def _address(array: Any) -> np.intp:
    """Of an array of Weft or of CuPy."""
    return np.intp(array.ptr if hasattr(array, "ptr") else array.data.ptr)


class CudaKernels:
    """See kernels.Kernels. `queue` is CuPy's view of `stream`; `make_array` makes arrays on its device."""

    def __init__(self, stream: Any, queue: Any, make_array: Callable[[tuple[int, ...]], Any]) -> None:
        self.stream = stream
        self.make_array = make_array
        self._queue = queue

    def fill(self, points: Any, range_: Range) -> None:
        (rows, columns), (top, left) = range_.size, range_.first
        sizes = np.int32(rows), np.int32(columns)
        arguments = (_address(points), *sizes, np.int64(top), np.int64(left))
        self._launch("fill", _grid(rows + 2, columns + 2), _BLOCK, arguments)

    def update(self, old: Any, new: Any) -> None:
        rows, columns = old.shape[0] - 2, old.shape[1] - 2
        arguments = (_address(old), _address(new), np.int32(rows), np.int32(columns))
        self._launch("update", _grid(rows, columns), _BLOCK, arguments)

    def columns_copier(self, points: Any, columns: Mapping[int, Any], *, packing: bool) -> Callable[[], None]:
        rows = points.shape[0] - 2
        sides = [_address(columns[side]) if side in columns else np.intp(0) for side in (2, 3)]
        sizes = np.int32(rows), np.int32(points.shape[1] - 2)
        arguments = (_address(points), *sizes, np.int32(packing), *sides)
        blocks = (-(-rows // _COLUMN_BLOCK[0]), 1, 1)
        return lambda: self._launch("columns", blocks, _COLUMN_BLOCK, arguments)

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        from weft_bench.queued_work import capture_cuda  # Weft's, which the twin on mpi4py does without

        return capture_cuda(self._queue, queue)

    def _launch(self, name: str, blocks: tuple[int, ...], block: tuple[int, ...], arguments: tuple) -> None:
        with self._queue:
            _kernel(name)(blocks, block, arguments)
