"""The kernels on a GPU, with CuPy: compiled by the first block of a PE, launched on the block's stream.

They compute the same as pic_numba.py, to the last bit. Only the order of the particles of a block differs,
from run to run.
"""

from __future__ import annotations

import functools
from typing import Any

import cupy
import cupyx
import numpy as np

import weft
from pic_problem import NUM_FIELDS, Block, Problem

_SOURCE = r"""
typedef long long Long;
const int kFields = 6;

// In the order of the array `geometry` on the host.
#define GEOMETRY Long size, Long first_column, Long end_column, Long first_row, Long end_row, \
                 Long blocks_x, Long blocks_y

// What the host reads: whether a particle is where none can be, how many leave, how many in each slot.
const int kStray = 0, kLeaving = 1, kCounts = 2;

__device__ void coulomb(double dx, double dy, double charge, double other, double* x, double* y) {
  double square = dx * dx + dy * dy, r = sqrt(square), force = charge * other / square;
  *x = force * dx / r;
  *y = force * dy / r;
}

extern "C" __global__ void move(double* values, Long capacity, Long count, const double* grid, GEOMETRY,
                                const int* slot_of_block, int* leaving, int* slots, int* totals) {
  Long i = (Long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double *xs = values, *ys = xs + capacity, *vxs = ys + capacity, *vys = vxs + capacity;
  double x = xs[i], y = ys[i], charge = vys[capacity + i];
  Long column = (Long)x, row = (Long)y, points = end_row - first_row + 1;
  double left = x - column, below = y - row, right = 1.0 - left, above = 1.0 - below;
  const double* at = grid + (column - first_column) * points + (row - first_row);
  double x0, x1, x2, x3, y0, y1, y2, y3;
  coulomb(left, below, charge, at[0], &x0, &y0);
  coulomb(left, above, charge, at[1], &x1, &y1);
  coulomb(right, below, charge, at[points], &x2, &y2);
  coulomb(right, above, charge, at[points + 1], &x3, &y3);
  double fx = x0 + x1 - x2 - x3, fy = y0 - y1 + y2 - y3, length = (double)size;
  x = x + vxs[i] + 0.5 * fx;
  y = y + vys[i] + 0.5 * fy;
  x = x - length * floor(x / length);
  y = y - length * floor(y / length);
  xs[i] = x;
  ys[i] = y;
  vxs[i] += fx;
  vys[i] += fy;

  slots[i] = -1;
  if (x >= first_column && x < end_column && y >= first_row && y < end_row) return;
  int slot = -1;
  if (x >= 0 && x < length && y >= 0 && y < length) {
    Long in_x = (((Long)x + 1) * blocks_x - 1) / size;
    Long in_y = (((Long)y + 1) * blocks_y - 1) / size;
    slot = slot_of_block[in_x * blocks_y + in_y];
  }
  if (slot < 0) {
    totals[kStray] = 1;
    return;
  }
  slots[i] = slot;
  leaving[atomicAdd(&totals[kLeaving], 1)] = (int)i;
  atomicAdd(&totals[kCounts + slot], 1);
}

// Copies the particles that leave. `places` gets the gaps among the `kept` particles at the front. Behind the
// counts of `totals` are the numbers taken of each slot, and the numbers of gaps found and filled.
extern "C" __global__ void take_out(const double* values, Long capacity, Long kept, int number,
                                    const int* leaving, const int* slots, int num_slots, int* totals,
                                    int* places, double* outgoing) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= number) return;
  int i = leaving[j], slot = slots[i], count = totals[kCounts + slot];
  int* taken = totals + kCounts + num_slots;
  Long at = 0;
  for (int before = 0; before < slot; ++before) at += (Long)kFields * totals[kCounts + before];
  at += atomicAdd(&taken[slot], 1);
  for (int field = 0; field < kFields; ++field) {
    outgoing[at + (Long)field * count] = values[field * capacity + i];
  }
  if (i < kept) places[atomicAdd(&taken[num_slots], 1)] = i;
}

// The last particles that stay fill the gaps.
extern "C" __global__ void fill_gaps(double* values, Long capacity, Long kept, int number, const int* slots,
                                     int num_slots, int* totals, const int* places) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= number || slots[kept + j] >= 0) return;
  int* filled = totals + kCounts + 2 * num_slots + 1;
  int to = places[atomicAdd(filled, 1)];
  for (int field = 0; field < kFields; ++field) {
    values[field * capacity + to] = values[field * capacity + kept + j];
  }
}

extern "C" __global__ void put_in(double* values, Long capacity, Long count, const double* incoming,
                                  Long number, GEOMETRY, int* totals) {
  Long i = (Long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= number) return;
  double x = incoming[i], y = incoming[number + i];
  if (!(x >= first_column && x < end_column && y >= first_row && y < end_row)) totals[kStray] = 1;
  for (int field = 0; field < kFields; ++field) {
    values[field * capacity + count + i] = incoming[field * number + i];
  }
}
"""
_THREADS = 256
_OPTIONS = ("--fmad=false",)  # nothing fused: the CPU's results
_NUM_HEAD = 2  # kStray, kLeaving


@functools.cache
def _kernel(name: str) -> cupy.RawKernel:
    """Compiled for this PE's device."""
    kernel = cupy.RawKernel(_SOURCE, name, options=_OPTIONS)
    kernel.compile()
    return kernel


class CudaWork:
    """See pic_device.EmulatedWork. What queues kernels does not wait for the device."""

    arrays: Any = cupy

    def __init__(self, geometry: Any, slot_of_block: Any, num_slots: int) -> None:
        self.stream = weft.Stream("cuda")  # of this PE's device
        number = int(self.stream.kind.partition(":")[2])
        cupy.cuda.Device(number).use()
        self._queue = cupy.cuda.ExternalStream(self.stream.handle, number)
        for name in ("move", "take_out", "fill_gaps", "put_in"):
            _kernel(name)  # outside of the timed part
        self._geometry = tuple(np.int64(value) for value in geometry)
        self._num_slots = num_slots
        with self._queue:
            self._slot_of_block = cupy.asarray(slot_of_block)
            self._totals = cupy.zeros(_NUM_HEAD + 2 * num_slots + 2, cupy.int32)
            self._leaving = self._slots = self._places = cupy.empty(0, cupy.int32)
        self._host = cupyx.empty_pinned(_NUM_HEAD + num_slots, np.int32)
        self._spans: list[tuple[cupy.cuda.Event, cupy.cuda.Event]] = []
        self._number = 0

    @property
    def counts(self) -> Any:
        return self._host[_NUM_HEAD:]

    def particles_of(self, problem: Problem, block: Block) -> Any:
        with self._queue:
            particles = problem.particles_of(block, cupy)
        self._queue.synchronize()
        return particles

    async def view(self, values: Any, capacity: int, count: int) -> Any:
        return cupy.asarray(values).reshape(NUM_FIELDS, capacity)[:, :count]

    def move(self, values: Any, capacity: int, count: int, grid: Any) -> None:
        with self._queue:
            if len(self._slots) < capacity:
                self._leaving, self._slots, self._places = (
                    cupy.empty(capacity, cupy.int32) for _ in range(3)
                )
            self._totals[1:] = 0
            arguments = (np.intp(values.ptr), np.int64(capacity), np.int64(count), np.intp(grid.ptr))
            scratch = (self._slot_of_block, self._leaving, self._slots, self._totals)
            self._launch("move", count, (*arguments, *self._geometry, *scratch))
            cupy.cuda.runtime.memcpyAsync(
                self._host.ctypes.data,
                self._totals.data.ptr,
                self._host.nbytes,
                cupy.cuda.runtime.memcpyDeviceToHost,
                self._queue.ptr,
            )

    def number_leaving(self) -> int:
        self._number = -1 if self._host[0] != 0 else int(self._host[1])
        return self._number

    def take_out(self, values: Any, capacity: int, count: int, outgoing: Any) -> None:
        number = self._number
        kept = count - number
        head = (np.intp(values.ptr), np.int64(capacity), np.int64(kept), np.int32(number))
        slots = (self._slots, np.int32(self._num_slots), self._totals, self._places)
        with self._queue:
            self._launch("take_out", number, (*head, self._leaving, *slots, np.intp(outgoing.ptr)))
            self._launch("fill_gaps", number, (*head, *slots))

    def put_in(self, values: Any, capacity: int, count: int, incoming: Any) -> None:
        number = incoming.size // NUM_FIELDS
        head = (np.intp(values.ptr), np.int64(capacity), np.int64(count))
        with self._queue:
            self._launch(
                "put_in",
                number,
                (*head, np.intp(incoming.ptr), np.int64(number), *self._geometry, self._totals),
            )

    def copy(self, values: Any, capacity: int, count: int, larger: Any, larger_capacity: int) -> None:
        cupy.cuda.runtime.memcpy2DAsync(
            larger.ptr,
            8 * larger_capacity,
            values.ptr,
            8 * capacity,
            8 * count,
            NUM_FIELDS,
            cupy.cuda.runtime.memcpyDeviceToDevice,
            self._queue.ptr,
        )

    def take_compute_s(self) -> float:
        """Of kernels that are done, by the device's clock."""
        spans, self._spans = self._spans, []
        return sum(cupy.cuda.get_elapsed_time(begin, end) for begin, end in spans) * 1e-3

    def _launch(self, name: str, count: int, arguments: tuple) -> None:
        if count == 0:
            return
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record(self._queue)
        _kernel(name)((-(-count // _THREADS),), (_THREADS,), arguments)
        end.record(self._queue)
        self._spans.append((begin, end))
