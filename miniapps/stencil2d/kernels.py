"""The computations on a block's points, in memory of one kind. The programs of Weft and mpi4py share them.

Points are an array of rows with one layer of ghost points around them. Everything is queued on the kernels'
stream and done in order, later; on host memory it is done in the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from grid import Range, UserError

Values = npt.NDArray[np.float64]
# An array in memory of the kernels' kind.
Array = Any
Update = Callable[[Values, Values], None]


class Kernels(Protocol):
    """Of one kind of memory."""

    #: The stream of all queued work; None for host memory.
    stream: Any

    def make_array(self, shape: tuple[int, ...]) -> Array:
        """An array of doubles, not initialised."""

    def fill(self, points: Array, range_: Range) -> None:
        """Sets all points and ghost points to their initial values."""

    def update(self, old: Array, new: Array) -> None:
        """One Jacobi iteration from `old` to `new`. The ghost points of `new` stay as they are."""

    def columns_copier(
        self, points: Array, columns: Mapping[int, Array], *, packing: bool
    ) -> Callable[[], None]:
        """What copies the outermost columns of `points` into `columns`, or from there into ghost points.

        The keys of `columns` are sides, 2 and 3. The copier is made once and called in every iteration.
        """

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        """What launches a graph of what `queue` queues on the stream; that is not done then.

        The kernels have run before, because a capture cannot compile them. Host memory has no graphs.
        """


def initial_values(range_: Range) -> Values:
    """What the points hold at the start, and the boundary for ever, with one layer around them.

    Differs between neighbours, so that a halo in a wrong place shows; exact in binary.
    """
    rows, columns = (
        np.arange(first, first + size + 2, dtype=np.int64)
        for first, size in zip(range_.first, range_.size, strict=True)
    )
    return ((73 * rows[:, None] + 179 * columns[None, :]) % 1009) / 1024.0


def update_with_numpy(old: Values, new: Values) -> None:
    """Every inner point becomes the mean of its four neighbours.

    This order of additions makes results equal to the last bit everywhere.
    """
    inner = new[1:-1, 1:-1]
    np.add(old[:-2, 1:-1], old[2:, 1:-1], out=inner)
    inner += old[1:-1, :-2]
    inner += old[1:-1, 2:]
    inner *= 0.25


def make_update(name: str) -> Update:
    """The update `name`: numpy, numba, or auto, which is numba where it is installed.

    Raises:
        UserError: numba is asked for and is not installed.
    """
    if name != "numpy":
        try:
            from numba_update import update_with_numba
        except ImportError:
            if name == "numba":
                raise UserError(
                    "--kernel numba needs Numba: pip install numba, or use --kernel numpy"
                ) from None
        else:
            return update_with_numba
    return update_with_numpy


class HostKernels:
    """On host memory: everything is done in the call."""

    stream = None

    def __init__(self, update: str) -> None:
        self.update = make_update(update)

    def make_array(self, shape: tuple[int, ...]) -> Values:
        return np.empty(shape)

    def fill(self, points: Values, range_: Range) -> None:
        points[...] = initial_values(range_)

    def columns_copier(
        self, points: Values, columns: Mapping[int, Values], *, packing: bool
    ) -> Callable[[], None]:
        copies = column_copies(points, columns, packing)

        def copy() -> None:
            for to, source in copies:
                np.copyto(to, source)

        return copy

    def capture(self, queue: Callable[[], None]) -> Callable[[], Any]:
        raise UserError("host memory has no streams whose work a graph could have")


def column_copies(
    points: Values, columns: Mapping[int, Values], packing: bool
) -> list[tuple[Values, Values]]:
    """The target and the source of each copy that packs or unpacks `columns`."""
    copies = []
    for side, column in columns.items():
        if packing:
            copies.append((column, points[1:-1, 1 if side == 2 else -2]))
        else:
            copies.append((points[1:-1, 0 if side == 2 else -1], column))
    return copies
