"""The computations on a strip's points, in memory of one kind.

Points are rows with a ghost row above and below, and the edges left and right. On a device everything is
queued on the kernels' stream and done in order, later; on host memory it is done in the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import numpy as np

import weft
from plate import RATE, UserError, Values

# An array in memory of the kernels' kind.
Array = Any


class Kernels(Protocol):
    """Of one strip."""

    #: The stream of all queued work; None for host memory.
    stream: Any

    async def copy_of(self, points: Values) -> Array:
        """An array of the kind with these values."""

    async def to_host(self, points: Array) -> Values:
        """A copy of the points, or themselves if they are in host memory."""

    def update(self, now: Array, new: Array) -> None:
        """A step from `now` to `new`, whose ghost rows and edges stay as they are."""

    def find_hottest(self, points: Array) -> Awaitable[Values]:
        """The largest absolute value without ghost rows, in an array of one.

        It is awaited before the next call.
        """

    def on_stream(self, rows: Array) -> Array:
        """The same memory, of which sends and receives come behind what is queued."""

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        """What launches a graph of what `queue` queues on the stream; that is not done then."""


def make_kernels(memory: str) -> Kernels:
    """For one strip.

    Raises:
        UserError: a package that this kind needs is not installed.
    """
    if memory == "host":
        return HostKernels()
    if memory == "emulated":
        return EmulatedKernels()
    try:
        from cuda_kernels import CudaKernels
    except ImportError as error:
        raise UserError(f"--memory cuda needs CuPy: pip install cupy-cuda13x ({error})") from None
    return CudaKernels()


def update_on_host(now: Values, new: Values) -> None:
    flow = now[:-2, 1:-1] + now[2:, 1:-1]
    flow += now[1:-1, :-2]
    flow += now[1:-1, 2:]
    flow -= 4.0 * now[1:-1, 1:-1]
    flow *= RATE
    np.add(now[1:-1, 1:-1], flow, out=new[1:-1, 1:-1])


def hottest_on_host(points: Values, hottest: Values) -> None:
    hottest[0] = np.abs(points[1:-1]).max()


class HostKernels:
    stream = None

    async def copy_of(self, points: Values) -> Values:
        return points.copy()

    async def to_host(self, points: Values) -> Values:
        return points

    def update(self, now: Values, new: Values) -> None:
        update_on_host(now, new)

    async def find_hottest(self, points: Values) -> Values:
        hottest = np.empty(1)
        hottest_on_host(points, hottest)
        return hottest

    def on_stream(self, rows: Values) -> Values:
        return rows

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        raise UserError("host memory has no streams whose work a graph could have")


class DeviceKernels:
    """What devices have in common."""

    def __init__(self, kind: str) -> None:
        self.stream = weft.Stream(kind)
        self._hottest = weft.DeviceArray(1, np.float64, self.stream.kind)

    async def copy_of(self, points: Values) -> weft.DeviceArray:
        array = weft.DeviceArray(points.shape, np.float64, self.stream.kind)
        await array.copy_from(points)
        return array

    async def to_host(self, points: weft.DeviceArray) -> Values:
        return await points.to_host(self.stream)

    def find_hottest(self, points: weft.DeviceArray) -> Awaitable[Values]:
        self.queue_hottest(points, self._hottest)
        return self._hottest.to_host(self.stream)

    def queue_hottest(self, points: weft.DeviceArray, hottest: weft.DeviceArray) -> None:
        raise NotImplementedError

    def on_stream(self, rows: weft.DeviceArray) -> Any:
        return rows.on(self.stream)


class EmulatedKernels(DeviceKernels):
    """The host's kernels, as kernels of an emulated device."""

    def __init__(self) -> None:
        super().__init__("emulated")

    def update(self, now: weft.DeviceArray, new: weft.DeviceArray) -> None:
        weft.emulated.launch(update_on_host, now, new, stream=self.stream)

    def queue_hottest(self, points: weft.DeviceArray, hottest: weft.DeviceArray) -> None:
        weft.emulated.launch(hottest_on_host, points, hottest, stream=self.stream)

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        from weft_bench.queued_work import capture_emulated

        return capture_emulated(self.stream, queue)
