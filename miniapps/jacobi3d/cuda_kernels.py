"""On a GPU, with CuPy: kernels compiled when first used, on the block's stream, timed by its events."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import cupy
import cupyx
import numpy as np

import weft
from decomposition import Range
from kernels import COMPUTE, PACK, Interval
from stencil import Values
from weft_bench.queued_work import capture_cuda

_SOURCE = r"""
// A block's points have one layer of ghost points around them; sizes are those without. z is fastest.
__device__ size_t offset(int ny, int nz, int x, int y, int z) {
  return ((size_t)(x + 1) * (ny + 2) + (y + 1)) * (nz + 2) + (z + 1);
}

extern "C" __global__ void fill(double* points, int nx, int ny, int nz, long long x0, long long y0,
                                long long z0) {
  int z = blockIdx.x * blockDim.x + threadIdx.x - 1, y = blockIdx.y * blockDim.y + threadIdx.y - 1;
  int x = (int)blockIdx.z - 1;
  if (z > nz || y > ny) return;
  long long number = (x0 + x + 1) * 73 + (y0 + y + 1) * 179 + (z0 + z + 1) * 283;
  points[offset(ny, nz, x, y, z)] = (double)(number % 1009) / 1024.0;
}

// This order of additions makes results equal to the last bit everywhere.
extern "C" __global__ void update(const double* __restrict__ from, double* __restrict__ to, int ny, int nz) {
  int z = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.z;
  if (z >= nz || y >= ny) return;
  size_t at = offset(ny, nz, x, y, z), row = nz + 2, plane = row * (ny + 2);
  double sum = from[at - plane] + from[at + plane];
  sum += from[at - row];
  sum += from[at + row];
  sum += from[at - 1];
  sum += from[at + 1];
  to[at] = sum * (1.0 / 6.0);
}

// The slowest dimension of the grid is the face's place in `faces`, whose halo has the same place in `halos`.
extern "C" __global__ void faces(double* points, int nx, int ny, int nz, int packing, const int* faces,
                                 double* const* halos) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  int face = faces[blockIdx.z], d = face / 2, n = d == 0 ? nx : d == 1 ? ny : nz;
  int rows = d == 0 ? ny : nx, columns = d == 2 ? ny : nz;
  if (column >= columns || row >= rows) return;
  int layer = packing ? (face % 2 ? n - 1 : 0) : (face % 2 ? n : -1);
  size_t at = d == 0   ? offset(ny, nz, layer, row, column)
              : d == 1 ? offset(ny, nz, row, layer, column)
                       : offset(ny, nz, row, column, layer);
  double* value = halos[blockIdx.z] + (size_t)row * columns + column;
  if (packing) *value = points[at];
  else points[at] = *value;
}
"""
_BLOCK = (64, 4, 1)
_OPTIONS = ("--fmad=false",)  # nothing fused: the CPU's results


@functools.cache
def _kernel(name: str) -> cupy.RawKernel:
    """CuPy compiles it when it is first launched on a device."""
    return cupy.RawKernel(_SOURCE, name, options=_OPTIONS)


@functools.cache
def _origin(device: int) -> cupy.cuda.Event:
    """The event from which all times on a device count."""
    with cupy.cuda.Device(device):
        event = cupy.cuda.Event()
        event.record(cupy.cuda.Stream.null)
        event.synchronize()
        return event


def _grid(z: int, y: int, x: int) -> tuple[int, int, int]:
    return -(-z // _BLOCK[0]), -(-y // _BLOCK[1]), x


class CudaKernels:
    """See kernels.Kernels. Only take_intervals() waits for the device, for events that are long done."""

    def __init__(self) -> None:
        self.stream = weft.Stream("cuda")  # of this PE's device
        self._number = int(self.stream.kind.partition(":")[2])
        self._device = cupy.cuda.Device(self._number)
        self._device.use()
        self._queue = cupy.cuda.ExternalStream(self.stream.handle, self._number)
        self._spans: list[tuple[str, cupy.cuda.Event, cupy.cuda.Event]] = []
        self._is_captured = False
        self._mark, self._mark_s = _origin(self._number), 0.0
        self._tables: dict[tuple[tuple[int, int], ...], tuple[cupy.ndarray, cupy.ndarray]] = {}

    def make_array(self, shape: tuple[int, ...]) -> weft.DeviceArray:
        return weft.DeviceArray(shape, np.float64, self.stream.kind)

    def make_host_array(self, shape: tuple[int, ...]) -> Values:
        return cupyx.empty_pinned(shape, np.float64)

    def fill(self, points: weft.DeviceArray, range_: Range) -> None:
        nx, ny, nz = range_.size
        first = (np.int64(start) for start in range_.first)
        arguments = (np.intp(points.ptr), np.int32(nx), np.int32(ny), np.int32(nz), *first)
        self._launch("fill", _grid(nz + 2, ny + 2, nx + 2), arguments)

    def update(self, old: weft.DeviceArray, new: weft.DeviceArray) -> None:
        nx, ny, nz = (extent - 2 for extent in old.shape)
        arguments = (np.intp(old.ptr), np.intp(new.ptr), np.int32(ny), np.int32(nz))
        self._timed(COMPUTE, "update", _grid(nz, ny, nx), arguments)

    def pack(self, points: weft.DeviceArray, halos: Mapping[int, weft.DeviceArray]) -> None:
        self._faces(points, halos, packing=True)

    def unpack(self, points: weft.DeviceArray, halos: Mapping[int, weft.DeviceArray]) -> None:
        self._faces(points, halos, packing=False)

    def to_host(self, array: weft.DeviceArray, host: Values) -> None:
        self._copy(host.ctypes.data, array.ptr, array.nbytes, cupy.cuda.runtime.memcpyDeviceToHost)

    def to_device(self, host: Values, array: weft.DeviceArray) -> None:
        self._copy(array.ptr, host.ctypes.data, array.nbytes, cupy.cuda.runtime.memcpyHostToDevice)

    def take_intervals(self) -> list[Interval]:
        # From one event to the next: a difference is a float, too coarse for the seconds since the origin.
        intervals = []
        for phase, start, end in self._spans:
            start_s = self._mark_s + cupy.cuda.get_elapsed_time(self._mark, start) * 1e-3
            self._mark_s = start_s + cupy.cuda.get_elapsed_time(start, end) * 1e-3
            self._mark = end
            intervals.append(Interval(phase, start_s, self._mark_s))
        self._spans.clear()
        return intervals

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        self._is_captured = True
        try:
            return capture_cuda(self._queue, queue)
        finally:
            self._is_captured = False

    def _faces(self, points: weft.DeviceArray, halos: Mapping[int, weft.DeviceArray], packing: bool) -> None:
        size = tuple(extent - 2 for extent in points.shape)
        faces, addresses = self._table(halos)
        arguments = (np.intp(points.ptr), *(np.int32(n) for n in size), np.int32(packing))
        rows = max(array.shape[0] for array in halos.values())
        columns = max(array.shape[1] for array in halos.values())
        grid = _grid(columns, rows, len(halos))
        self._timed(PACK, "faces", grid, (*arguments, faces, addresses))

    def _table(self, halos: Mapping[int, weft.DeviceArray]) -> tuple[cupy.ndarray, cupy.ndarray]:
        """Faces and addresses of halos on the device; a block has few different sets of them."""
        key = tuple((face, array.ptr) for face, array in halos.items())
        if key not in self._tables:
            with self._queue:
                faces = cupy.array([face for face, _ in key], np.int32)
                self._tables[key] = faces, cupy.array([address for _, address in key], np.uint64)
        return self._tables[key]

    def _timed(self, phase: str, name: str, grid: tuple[int, int, int], arguments: tuple) -> None:
        if self._is_captured:  # an event has the time of one launch only
            self._launch(name, grid, arguments)
            return
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(self._queue)
        self._launch(name, grid, arguments)
        end.record(self._queue)
        self._spans.append((phase, start, end))

    def _launch(self, name: str, grid: tuple[int, int, int], arguments: tuple) -> None:
        with self._queue:
            _kernel(name)(grid, _BLOCK, arguments)

    def _copy(self, to: int, source: int, size_bytes: int, kind: int) -> None:
        cupy.cuda.runtime.memcpyAsync(to, source, size_bytes, kind, self._queue.ptr)
