"""A block's points in host memory, with one layer of ghost points around them; field.h is the same in C++.

This is all that knows where the values are and how they are computed: a variant for another kind of memory
has the same methods.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from decomposition import Range, Triple, UserError

Values = npt.NDArray[np.float64]
# Sets the inner points of the second array from the first.
Kernel = Callable[[Values, Values], None]


def initial_values(first: Triple, size: Triple) -> Values:
    """What the points hold at the start, and the boundary for ever, with one layer around `size` points.

    Differs between neighbours, so that a halo in a wrong place shows; exact in binary.
    """
    x, y, z = (np.arange(first[d], first[d] + size[d] + 2, dtype=np.int64) for d in range(3))
    number = 73 * x[:, None, None] + 179 * y[None, :, None] + 283 * z[None, None, :]
    return (number % 1009) / 1024.0


def update_with_numpy(old: Values, new: Values) -> None:
    """Every inner point becomes the mean of its six neighbours.

    Adding in this order is what makes results equal to the last bit everywhere.
    """
    inner = new[1:-1, 1:-1, 1:-1]
    np.add(old[:-2, 1:-1, 1:-1], old[2:, 1:-1, 1:-1], out=inner)
    inner += old[1:-1, :-2, 1:-1]
    inner += old[1:-1, 2:, 1:-1]
    inner += old[1:-1, 1:-1, :-2]
    inner += old[1:-1, 1:-1, 2:]
    inner *= 1.0 / 6.0


def make_kernel(name: str) -> Kernel:
    """The kernel `name`: numpy, numba, or auto, which is numba where it is installed.

    Raises:
        UserError: numba is asked for and is not installed.
    """
    if name != "numpy":
        try:
            from numba_kernel import update_with_numba
        except ImportError:
            if name == "numba":
                raise UserError(
                    "--kernel numba needs Numba: pip install numba, or use --kernel numpy"
                ) from None
        else:
            return update_with_numba
    return update_with_numpy


class HostField:
    """The points of `range_`, all at their initial values."""

    def __init__(self, range_: Range, kernel: Kernel) -> None:
        self._range = range_
        self._kernel = kernel
        self._current = initial_values(range_.first, range_.size)
        self._next = self._current.copy()

    def update(self) -> None:
        """One Jacobi iteration."""
        self._kernel(self._current, self._next)
        self._current, self._next = self._next, self._current

    def make_halo(self, face: int) -> Values:
        """An array for the points of one side."""
        size = self._range.size
        return np.empty(size[: face // 2] + size[face // 2 + 1 :])

    def pack(self, face: int, halo: Values) -> None:
        """Copies the outermost points of that side into `halo`."""
        halo[...] = self._layer(face, -2 if face % 2 else 1)

    def unpack(self, face: int, halo: Values) -> None:
        """Sets the ghost points of that side."""
        self._layer(face, -1 if face % 2 else 0)[...] = halo

    def values(self) -> Values:
        """A copy without ghost points."""
        return self._current[1:-1, 1:-1, 1:-1].copy()

    def checksum(self, grid: Triple) -> int:
        """The sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the whole grid.

        Equal for every decomposition of the same grid, and for every language.
        """
        first, size = self._range.first, self._range.size
        x, y, z = (np.arange(first[d], first[d] + size[d], dtype=np.uint64) for d in range(3))
        ny, nz = np.uint64(grid[1]), np.uint64(grid[2])
        place = (x[:, None, None] * ny + y[None, :, None]) * nz + z[None, None, :]
        terms = self.values().view(np.uint64) * (np.uint64(2) * place + np.uint64(1))
        return int(terms.sum(dtype=np.uint64))

    def _layer(self, face: int, position: int) -> Values:
        where = [slice(1, -1)] * 3
        where[face // 2] = slice(position, position + 1 or None)
        return self._current[tuple(where)].squeeze(axis=face // 2)
