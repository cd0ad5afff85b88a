"""A block's points in memory of one kind; field.h is the same in C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft
from decomposition import Range, Triple
from kernels import Array, Kernels
from stencil import Values


class Field:
    """The points of `range_`, all at their initial values, with one layer of ghost points around them.

    What the methods do is queued on the kernels' stream; on host memory it is done at once.
    """

    def __init__(self, range_: Range, kernels: Kernels) -> None:
        self._range = range_
        self._kernels = kernels
        shape = tuple(extent + 2 for extent in range_.size)
        self._current, self._next = kernels.make_array(shape), kernels.make_array(shape)
        for points in (self._current, self._next):  # neither's boundary is ever written again
            kernels.fill(points, range_)

    @property
    def size(self) -> Triple:
        """Without ghost points."""
        return self._range.size

    def rehearse_update(self) -> None:
        """Computes the next points and does not take them, which compiles the kernel."""
        self._kernels.update(self._current, self._next)

    def update(self) -> None:
        """One Jacobi iteration."""
        self.rehearse_update()
        self._current, self._next = self._next, self._current

    def pack(self, halos: Mapping[int, Array]) -> None:
        """Copies the outermost points of each side into its halo."""
        self._kernels.pack(self._current, halos)

    def unpack(self, halos: Mapping[int, Array]) -> None:
        """Sets the ghost points of each side."""
        self._kernels.unpack(self._current, halos)

    @property
    def points(self) -> Array:
        """All points, with ghost points. Setting them gives the field the array."""
        return self._current

    @points.setter
    def points(self, points: Array) -> None:
        self._current = points

    @property
    def stream(self) -> weft.Stream | None:
        """Of all queued work; None for host memory."""
        return self._kernels.stream

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        """What launches a graph of what `queue` queues on the stream; see Kernels.capture()."""
        return self._kernels.capture(queue)

    async def done(self) -> None:
        """Waits for all queued work."""
        if self._kernels.stream is not None:
            await weft.stream_done(self._kernels.stream)

    async def values(self) -> Values:
        """A copy without ghost points."""
        host = self._kernels.make_host_array(self._current.shape)
        self._kernels.to_host(self._current, host)
        await self.done()
        return host[1:-1, 1:-1, 1:-1].copy()

    async def checksum(self, grid: Triple) -> int:
        """The sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the whole grid.

        Equal for every decomposition of the same grid, and for every language.
        """
        first, size = self._range.first, self._range.size
        x, y, z = (np.arange(first[d], first[d] + size[d], dtype=np.uint64) for d in range(3))
        ny, nz = np.uint64(grid[1]), np.uint64(grid[2])
        place = (x[:, None, None] * ny + y[None, :, None]) * nz + z[None, None, :]
        values = await self.values()
        terms = values.view(np.uint64) * (np.uint64(2) * place + np.uint64(1))
        return int(terms.sum(dtype=np.uint64))
