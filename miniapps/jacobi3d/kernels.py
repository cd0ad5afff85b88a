"""The computations on a block's points, in memory of one kind; kernels.h is the same in C++.

Everything is queued on the block's stream and done in order, later; on host memory at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

import weft
from decomposition import Range, UserError
from stencil import Update, Values, initial_values, make_update, pack_faces, unpack_faces
from weft_bench.queued_work import capture_emulated

# An array in memory of the block's kind: NumPy's or weft.DeviceArray.
Array = Any
COMPUTE, PACK = "compute", "pack"


class Interval(NamedTuple):
    """When a kernel ran, in seconds since the same moment for all blocks of a PE."""

    phase: str
    start: float
    end: float


class Kernels(Protocol):
    """One kind's. Arrays of points have one layer of ghost points around them."""

    #: The stream of all queued work; None for host memory.
    stream: weft.Stream | None

    def make_array(self, shape: tuple[int, ...]) -> Array:
        """An array of doubles on the device, not initialised."""

    def make_host_array(self, shape: tuple[int, ...]) -> Values:
        """The same in host memory that the two copies below reach without waiting."""

    def fill(self, points: Array, range_: Range) -> None:
        """Sets all points and ghost points to their initial values."""

    def update(self, old: Array, new: Array) -> None:
        """One Jacobi iteration from `old` to `new`."""

    def pack(self, points: Array, halos: Mapping[int, Array]) -> None:
        """Copies the outermost points of each side into its halo."""

    def unpack(self, points: Array, halos: Mapping[int, Array]) -> None:
        """Sets the ghost points of each side."""

    def to_host(self, array: Array, host: Values) -> None:
        """Queues a copy."""

    def to_device(self, host: Values, array: Array) -> None:
        """Queues a copy."""

    def take_intervals(self) -> list[Interval]:
        """When updating and packing ran since the last call. All queued work must be done."""

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        """What launches a graph of what `queue` queues on the stream; that is not done then.

        The kernels have run before, because a capture cannot compile them. Host memory has no graphs.
        """


def make_kernels(memory: str, update: str) -> Kernels:
    """For one block. `update` names what computes on the CPU, as stencil.make_update takes it.

    Raises:
        UserError: a package that this kind needs is not installed.
    """
    if memory == "host":
        return HostKernels(make_update(update))
    if memory == "emulated":
        return EmulatedKernels(make_update(update))
    try:
        from cuda_kernels import CudaKernels
    except ImportError as error:
        raise UserError(f"--memory cuda needs CuPy: pip install cupy-cuda13x ({error})") from None
    return CudaKernels()


class HostKernels:
    """On host memory: everything is done in the call."""

    stream = None

    def __init__(self, update: Update) -> None:
        self._update = update
        self._intervals: list[Interval] = []

    def make_array(self, shape: tuple[int, ...]) -> Values:
        return np.empty(shape)

    make_host_array = make_array

    def fill(self, points: Values, range_: Range) -> None:
        points[...] = initial_values(range_.first, range_.size)

    def update(self, old: Values, new: Values) -> None:
        start = time.perf_counter()
        self._update(old, new)
        self._intervals.append(Interval(COMPUTE, start, time.perf_counter()))

    def pack(self, points: Values, halos: Mapping[int, Values]) -> None:
        start = time.perf_counter()
        pack_faces(points, halos)
        self._intervals.append(Interval(PACK, start, time.perf_counter()))

    def unpack(self, points: Values, halos: Mapping[int, Values]) -> None:
        start = time.perf_counter()
        unpack_faces(points, halos)
        self._intervals.append(Interval(PACK, start, time.perf_counter()))

    def to_host(self, array: Values, host: Values) -> None:
        host[...] = array

    def to_device(self, host: Values, array: Values) -> None:
        array[...] = host

    def take_intervals(self) -> list[Interval]:
        intervals, self._intervals = self._intervals, []
        return intervals

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        raise UserError("host memory has no streams whose work a graph could have")


class EmulatedKernels:
    """On an emulated device: the host's kernels, run by the stream on the device's view of its memory."""

    def __init__(self, update: Update) -> None:
        self._host = HostKernels(update)
        self.stream = weft.Stream("emulated")  # of this PE's device

    def make_array(self, shape: tuple[int, ...]) -> weft.DeviceArray:
        return weft.DeviceArray(shape, np.float64, self.stream.kind)

    def make_host_array(self, shape: tuple[int, ...]) -> Values:
        return np.empty(shape)

    def fill(self, points: weft.DeviceArray, range_: Range) -> None:
        self._launch(self._host.fill, points, range_)

    def update(self, old: weft.DeviceArray, new: weft.DeviceArray) -> None:
        self._launch(self._host.update, old, new)

    def pack(self, points: weft.DeviceArray, halos: Mapping[int, weft.DeviceArray]) -> None:
        self._launch(_with_halos(self._host.pack, halos), points, *halos.values())

    def unpack(self, points: weft.DeviceArray, halos: Mapping[int, weft.DeviceArray]) -> None:
        self._launch(_with_halos(self._host.unpack, halos), points, *halos.values())

    def to_host(self, array: weft.DeviceArray, host: Values) -> None:
        self._launch(self._host.to_host, array, host)

    def to_device(self, host: Values, array: weft.DeviceArray) -> None:
        self._launch(self._host.to_device, host, array)

    def take_intervals(self) -> list[Interval]:
        return self._host.take_intervals()

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        return capture_emulated(self.stream, queue)

    def _launch(self, function: Any, *arguments: Any) -> None:
        weft.emulated.launch(function, *arguments, stream=self.stream)


def _with_halos(function: Any, halos: Mapping[int, Any]) -> Any:
    """`function` for a launch, whose arrays come one by one."""
    faces = tuple(halos)
    return lambda points, *arrays: function(points, dict(zip(faces, arrays, strict=True)))


def covered(intervals: list[Interval]) -> dict[str, float]:
    """Seconds of a PE by phase.

    Time in which several blocks compute counts once, and as compute where others pack.
    """
    compute = _union([i for i in intervals if i.phase == COMPUTE])
    return {COMPUTE: compute, PACK: _union(intervals) - compute}


def _union(intervals: list[Interval]) -> float:
    total, end = 0.0, -np.inf
    for interval in sorted(intervals, key=lambda i: i.start):
        total += max(0.0, interval.end - max(interval.start, end))
        end = max(end, interval.end)
    return float(total)
