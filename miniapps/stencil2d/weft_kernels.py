"""The kernels of the Weft program, for each kind of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft
from grid import Range, UserError
from kernels import HostKernels, Kernels
from weft_bench.queued_work import capture_emulated


def make_kernels(memory: str, update: str) -> Kernels:
    """For one block. `update` names what computes on the CPU, as kernels.make_update takes it.

    Raises:
        UserError: a package that this kind needs is not installed.
    """
    if memory == "host":
        return HostKernels(update)
    if memory == "emulated":
        return EmulatedKernels(update)
    try:
        import cupy

        from cuda_kernels import CudaKernels
    except ImportError as error:
        raise UserError(f"--memory cuda needs CuPy: pip install cupy-cuda13x ({error})") from None
    stream = weft.Stream("cuda")  # of this PE's device
    device = int(stream.kind.partition(":")[2])
    cupy.cuda.Device(device).use()
    queue = cupy.cuda.ExternalStream(stream.handle, device)
    return CudaKernels(stream, queue, lambda shape: weft.DeviceArray(shape, np.float64, stream.kind))


class EmulatedKernels:
    """The host's kernels, as kernels of an emulated device."""

    def __init__(self, update: str) -> None:
        self.stream = weft.Stream("emulated")
        self._host = HostKernels(update)

    def make_array(self, shape: tuple[int, ...]) -> weft.DeviceArray:
        return weft.DeviceArray(shape, np.float64, self.stream.kind)

    def fill(self, points: weft.DeviceArray, range_: Range) -> None:
        weft.emulated.launch(self._host.fill, points, range_, stream=self.stream)

    def update(self, old: weft.DeviceArray, new: weft.DeviceArray) -> None:
        weft.emulated.launch(self._host.update, old, new, stream=self.stream)

    def columns_copier(
        self, points: weft.DeviceArray, columns: Mapping[int, weft.DeviceArray], *, packing: bool
    ) -> Callable[[], None]:
        sides = tuple(columns)

        def copy_columns(points, *arrays) -> None:
            halos = dict(zip(sides, arrays, strict=True))
            self._host.columns_copier(points, halos, packing=packing)()

        return lambda: weft.emulated.launch(copy_columns, points, *columns.values(), stream=self.stream)

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        return capture_emulated(self.stream, queue)
