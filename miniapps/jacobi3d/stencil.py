"""The kernels' work on NumPy arrays, for memory that the CPU reaches; stencil.h is the same in C++.

A block's points are an array with one layer of ghost points around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from decomposition import Triple, UserError

Values = npt.NDArray[np.float64]
# Sets the inner points of the second array from the first.
Update = Callable[[Values, Values], None]


def initial_values(first: Triple, size: Triple) -> Values:
    """What the points hold at the start, and the boundary for ever, with one layer around `size` points.

    Differs between neighbours, so that a halo in a wrong place shows; exact in binary.
    """
    x, y, z = (np.arange(first[d], first[d] + size[d] + 2, dtype=np.int64) for d in range(3))
    number = 73 * x[:, None, None] + 179 * y[None, :, None] + 283 * z[None, None, :]
    return (number % 1009) / 1024.0


def update_with_numpy(old: Values, new: Values) -> None:
    """Every inner point becomes the mean of its six neighbours.

    This order of additions makes results equal to the last bit everywhere.
    """
    inner = new[1:-1, 1:-1, 1:-1]
    np.add(old[:-2, 1:-1, 1:-1], old[2:, 1:-1, 1:-1], out=inner)
    inner += old[1:-1, :-2, 1:-1]
    inner += old[1:-1, 2:, 1:-1]
    inner += old[1:-1, 1:-1, :-2]
    inner += old[1:-1, 1:-1, 2:]
    inner *= 1.0 / 6.0


def make_update(name: str) -> Update:
    """The update `name`: numpy, numba, or auto, which is numba where it is installed.

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


def face_shape(size: Triple, face: int) -> tuple[int, int]:
    """The shape of the points of one side of a block."""
    rows, columns = size[: face // 2] + size[face // 2 + 1 :]
    return rows, columns


def pack_faces(points: Values, halos: Mapping[int, Values]) -> None:
    """Copies the outermost points of each side into its halo."""
    for face, halo in halos.items():
        halo[...] = _layer(points, face, -2 if face % 2 else 1)


def unpack_faces(points: Values, halos: Mapping[int, Values]) -> None:
    """Sets the ghost points of each side."""
    for face, halo in halos.items():
        _layer(points, face, -1 if face % 2 else 0)[...] = halo


def _layer(points: Values, face: int, position: int) -> Values:
    where: list[slice | int] = [slice(1, -1)] * 3
    where[face // 2] = position
    return points[tuple(where)]
