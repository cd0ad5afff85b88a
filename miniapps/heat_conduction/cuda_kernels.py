"""Kernels on a GPU, with CuPy, which compiles them when they are first used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

import weft
from kernels import DeviceKernels
from plate import RATE

_SOURCE = r"""
// Points are rows of `width` doubles with one layer of ghost rows and edges around them.
extern "C" __global__ void update(const double* __restrict__ now, double* __restrict__ next, int rows,
                                  int width, double rate) {
  int j = blockIdx.x * blockDim.x + threadIdx.x + 1, i = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i > rows || j >= width - 1) return;
  size_t at = (size_t)i * width + j;
  double around = now[at - width] + now[at + width] + now[at - 1] + now[at + 1];
  next[at] = now[at] + rate * (around - 4.0 * now[at]);
}

// One block.
extern "C" __global__ void hottest(const double* __restrict__ points, int rows, int width, double* result) {
  __shared__ double largest[1024];
  double own = 0.0;
  for (size_t i = threadIdx.x; i < (size_t)rows * width; i += blockDim.x)
    own = fmax(own, fabs(points[width + i]));
  largest[threadIdx.x] = own;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) largest[threadIdx.x] = fmax(largest[threadIdx.x], largest[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) *result = largest[0];
}
"""
_BLOCK = (64, 4, 1)
_OPTIONS = ("--fmad=false",)  # nothing fused: the CPU's results


@functools.cache
def _kernel(name: str) -> cupy.RawKernel:
    return cupy.RawKernel(_SOURCE, name, options=_OPTIONS)


class CudaKernels(DeviceKernels):
    """See kernels.Kernels."""

    def __init__(self) -> None:
        super().__init__("cuda")  # of this PE's device
        device = int(self.stream.kind.partition(":")[2])
        cupy.cuda.Device(device).use()
        self._queue = cupy.cuda.ExternalStream(self.stream.handle, device)

    def update(self, now: weft.DeviceArray, new: weft.DeviceArray) -> None:
        rows, width = now.shape[0] - 2, now.shape[1]
        grid = -(-(width - 2) // _BLOCK[0]), -(-rows // _BLOCK[1]), 1
        sizes = np.int32(rows), np.int32(width)
        self._launch("update", grid, _BLOCK, (np.intp(now.ptr), np.intp(new.ptr), *sizes, np.float64(RATE)))

    def queue_hottest(self, points: weft.DeviceArray, hottest: weft.DeviceArray) -> None:
        sizes = np.int32(points.shape[0] - 2), np.int32(points.shape[1])
        arguments = (np.intp(points.ptr), *sizes, np.intp(hottest.ptr))
        self._launch("hottest", (1, 1, 1), (1024, 1, 1), arguments)

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        from weft_bench.queued_work import capture_cuda

        return capture_cuda(self._queue, queue)

    def _launch(self, name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple) -> None:
        with self._queue:
            _kernel(name)(grid, block, arguments)
